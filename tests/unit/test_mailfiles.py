"""Messages in files: mbox, Maildir, folders, single messages."""

import os
import re
from pathlib import Path
from random import Random

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.files import STEP, mail_in
from support.scale import scale

ONE, TWO = b"Subject: one\n\nHello\n", b"Subject: two\n\nWorld\n"


def names(path: Path) -> list[str]:
    return [os.path.relpath(mail.path, path) for mail in mail_in(path)]


def test_a_folder_gives_its_messages_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("2.eml", "1.EML", "b/3.eml"):
        (tmp_path / name).write_bytes(ONE)
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    assert names(tmp_path) == ["1.EML", "2.eml", "b/3.eml"]


def test_in_a_folder_without_eml_files_every_file_is_a_message(tmp_path: Path) -> None:
    for name in ("1", "2.txt", ".hidden"):
        (tmp_path / name).write_bytes(ONE)
    assert names(tmp_path) == ["1", "2.txt"]


def test_an_mbox_gives_its_messages_by_number(tmp_path: Path) -> None:
    box = tmp_path / "all.mbox"
    box.write_bytes(b"From a@b Mon\n" + ONE + b"\nFrom a@b Tue\n" + TWO + b">From x\n>>From y\n\n\nFrom c\n\nlast")
    found = list(mail_in(box))
    assert [mail.path for mail in found] == [f"{box}#1", f"{box}#2", f"{box}#3"]
    assert [mail.raw for mail in found] == [ONE + b"\n", TWO + b"From x\n>From y\n\n\n", b"\nlast"]


def test_from_within_a_paragraph_begins_no_message(tmp_path: Path) -> None:
    box = tmp_path / "all.mbox"
    box.write_bytes(b"From a@b Mon\n" + ONE + b"From here on\n")
    assert [mail.raw for mail in mail_in(box)] == [ONE + b"From here on\n"]


def test_an_eml_file_is_one_message_even_with_a_line_of_an_mbox(tmp_path: Path) -> None:
    path = tmp_path / "1.eml"
    path.write_bytes(b"From a@b Mon\n" + ONE + b"\nFrom here on\n")
    assert [mail.path for mail in mail_in(path)] == [str(path)]


def test_a_maildir_gives_what_is_in_cur_and_new_and_not_in_tmp(tmp_path: Path) -> None:
    for folder in ("cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1:2,S").write_bytes(b"From : x\n\nFrom y\n\nFrom z")
    (tmp_path / "dovecot.index").write_bytes(b"x")
    assert sorted(names(tmp_path)) == [".Sent/cur/1:2,S", ".Sent/new/1:2,S", "cur/1:2,S", "new/1:2,S"]


def test_an_mbox_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    box = tmp_path / "all.mbox"
    box.write_bytes((b"From a@b Mon\n" + ONE + b"\n") * 10_000)
    first = next(iter(mail_in(box)))
    assert first.raw == ONE + b"\n"


def test_a_line_without_end_in_an_mbox_is_no_beginning(tmp_path: Path) -> None:
    box = tmp_path / "all.mbox"
    box.write_bytes(b"From a@b Mon\n\n" + b"x" * STEP + b"From y\n")
    assert len(list(mail_in(box))) == 1


PIECES = (b"From ", b"\n", b"\r\n", b">", b">From ", b"abc", b"\nFrom ", b"\n\nFrom x\n", b"\r")


def _line_by_line(box: bytes) -> list[bytes]:
    messages: list[bytes] = []
    was_empty = True
    for line in re.findall(rb"[^\n]*\n|[^\n]+", box):
        if was_empty and line.startswith(b"From "):
            messages.append(b"")
        else:
            messages[-1] += line[1:] if re.match(rb">+From ", line) else line
        was_empty = line in (b"\n", b"\r\n")
    return messages


@pytest.mark.parametrize("step", [1, 2, 5, 11, 1_000])
def test_an_mbox_read_in_blocks_is_the_one_read_line_by_line(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.core.mail.files.STEP", step)
    rng, path = Random(step), tmp_path / "all.mbox"
    for _ in range(scale(200, 20_000)):
        box = b"From " + b"".join(rng.choices(PIECES, k=rng.randrange(25)))
        path.write_bytes(box)
        assert [mail.raw for mail in mail_in(path)] == _line_by_line(box), box


def test_of_a_message_in_an_mbox_that_is_too_large_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("STEP", 10), ("LARGEST_MESSAGE", 60), ("_KEPT", 80)):
        monkeypatch.setattr(f"postroom.core.mail.files.{name}", value)
    large = b"Subject: large\n\n" + b"0123456789" * 50 + b"\n\n"
    (tmp_path / "all.mbox").write_bytes(b"From a\n" + large + b"From b\n" + ONE)
    assert [mail.raw for mail in mail_in(tmp_path)] == [large[:61], ONE[:61]]


def test_nothing_to_read_is_told_of_the_file_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "1.eml").symlink_to(tmp_path / "1.eml")
    (tmp_path / "2.eml").write_bytes(ONE)
    (tmp_path / "3.eml").mkdir()
    os.mkfifo(tmp_path / "4.eml")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = list(mail_in(tmp_path))
    assert [Path(mail.path).name for mail in found] == ["1.eml", "2.eml"]
    assert [mail.problem for mail in found] == ["it cannot be read (Too many levels of symbolic links)", None]


def test_a_name_that_is_not_text_is_written_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.eml")).write_bytes(ONE)
    assert [Path(mail.path).name for mail in mail_in(tmp_path)] == ["\\xff.eml"]


def test_an_empty_folder_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    assert names(tmp_path) == []
    (tmp_path / "1.eml").touch()
    assert [mail.raw for mail in mail_in(tmp_path)] == [b""]


@pytest.mark.parametrize("path", ["missing", "missing/inner", "a\0b", "x" * 5000])
def test_a_path_that_is_not_there_is_refused_at_once(path: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="PATH"):
        mail_in(tmp_path / path)


def test_a_pipe_is_refused_since_mail_is_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(BadInput, match="is neither a file nor a folder; save the mail in a file first"):
            mail_in(path)
