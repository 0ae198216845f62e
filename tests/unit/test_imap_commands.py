"""Writing IMAP commands, and the names of folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mailboxes.imap.commands import (
    Literal,
    command,
    flag_list,
    is_keyword,
    read_uid_set,
    string,
    uid_set,
    wire_pieces,
)
from postroom.mailboxes.imap.errors import BadAnswer
from postroom.mailboxes.imap.folder_names import decoded, encoded
from postroom.mailboxes.imap.responses import Data, ResponseReader


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_a_value_from_outside_stays_one_value(value: bytes | str) -> None:
    """It is read again by our own reader; no value can begin another command."""
    raw = value.encode() if isinstance(value, str) else value
    (piece,) = wire_pieces(command("X", string(value), b"END").parts, "P1", 1_000)
    (found,) = ResponseReader().feed(b"* " + piece.removeprefix(b"P1 "))
    assert isinstance(found, Data)
    assert found.values == (raw, "END")


def test_a_literal_waits_for_the_server_unless_it_need_not() -> None:
    parts = command("LOGIN", string("ada"), Literal(b"p\xc3\xa4ss"), b"x").parts
    assert wire_pieces(parts, "P1", 0) == [b'P1 LOGIN "ada" {5}\r\n', b"p\xc3\xa4ss x\r\n"]
    assert wire_pieces(parts, "P1", 4096) == [b'P1 LOGIN "ada" {5+}\r\np\xc3\xa4ss x\r\n']


def test_a_command_shows_only_its_name() -> None:
    assert "secret" not in repr(command("LOGIN", string("ada"), string("secret")))


@given(st.sets(st.integers(1, 2**32 - 1) | st.integers(1, 60), min_size=1, max_size=60))
def test_a_set_of_uids_is_read_again(uids: set[int]) -> None:
    assert read_uid_set(uid_set(uids)) == sorted(uids)


@pytest.mark.parametrize("text", ["", "a", "1,", "0", "1:*", "4294967296", "1:4294967295", "-1"])
def test_a_set_that_is_malformed_or_endless_is_refused(text: str) -> None:
    with pytest.raises(BadAnswer):
        read_uid_set(text)


def test_a_set_may_be_written_backwards() -> None:
    assert read_uid_set("5:3,9") == [5, 4, 3, 9]


@pytest.mark.parametrize("flag", ["a b", "a)", "\\Seen)", "ä", "", "(", 'a"', "a\r\nX"])
def test_a_flag_that_is_no_atom_is_refused(flag: str) -> None:
    assert not is_keyword(flag.removeprefix("\\"))
    with pytest.raises(ValueError, match="not a flag"):
        flag_list([flag])


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("Entwürfe", b"Entw&APw-rfe"),
        ("R&D", b"R&-D"),
        ("台北", b"&U,BTFw-"),
        ("a😀/b", b"a&2D3eAA-/b"),
        ("&ü", b"&-&APw-"),
        ("Plain \"quoted\" 'name'", b"Plain \"quoted\" 'name'"),
    ],
)
def test_a_folder_name_is_modified_utf7_on_the_wire(name: str, wire: bytes) -> None:
    assert encoded(name) == wire
    assert decoded(wire) == name


@given(st.text(max_size=40).filter(lambda each: each.isprintable()))
def test_every_folder_name_is_read_again(name: str) -> None:
    assert decoded(encoded(name)) == name


@pytest.mark.parametrize(
    ("wire", "shown"),
    [(b"&broken", "&broken"), (b"&A-x", "&A-x"), (b"&!!-", "&!!-"), ("Entwürfe".encode(), "Entwürfe")],
)
def test_a_name_that_is_not_valid_is_shown_as_it_came(wire: bytes, shown: str) -> None:
    assert decoded(wire) == shown
