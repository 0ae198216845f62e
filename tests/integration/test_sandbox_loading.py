"""Mail from a disk: mbox, Maildir and folders of messages, however broken they are."""

import mailbox as stdlib
import os
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from random import Random

import pytest

from postroom.compose.demo import SandboxPlan, sandbox_mailbox
from postroom.core.errors import BadInput
from postroom.core.mail.files import mail_in
from postroom_sandbox.loading import Loaded, load
from postroom_sandbox.mailbox import Mailbox
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, raw_mail


@pytest.fixture
def mailbox(clock: ManualClock) -> Mailbox:
    return Mailbox(OWNER, Random(5), clock)


def loaded(mailbox: Mailbox, path: Path) -> int:
    result = load(mailbox, mail_in(path))
    assert result.problems == ()
    assert result.messages == len(mailbox)
    return result.messages


def subjects(mailbox: Mailbox) -> set[str]:
    return {message.mail.header("Subject") for message in mailbox.search("in:anywhere")}


def test_an_mbox_as_the_standard_library_writes_it(mailbox: Mailbox, tmp_path: Path) -> None:
    written = stdlib.mbox(tmp_path / "mail")
    for number in range(20):
        message = EmailMessage()
        message["Subject"] = f"number {number}"
        message.set_content("hello\n\nFrom here on\nFrom there\n")
        written.add(message)
    written.close()
    assert loaded(mailbox, tmp_path / "mail") == 20
    assert subjects(mailbox) == {f"number {number}" for number in range(20)}
    assert all("hello From here on From there" in message.mail.text for message in mailbox.search())


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_an_mbox_is_cut_only_after_a_blank_line(mailbox: Mailbox, tmp_path: Path, line_end: bytes) -> None:
    lines = [b"From a@b Mon Nov  2 10:00:00 2026", b"Subject: one", b"", b"text", b"From the text", b">From us", b""]
    lines += [b"From a@b Mon Nov  2 10:00:01 2026", b"Subject: two", b"", b"more", b""]
    (tmp_path / "mail").write_bytes(line_end.join(lines))
    assert loaded(mailbox, tmp_path / "mail") == 2
    one = next(mailbox.search("subject:one"))
    assert one.mail.text == "text From the text From us"


def test_a_maildir_with_its_flags_and_folders(mailbox: Mailbox, tmp_path: Path) -> None:
    written = stdlib.Maildir(tmp_path / "mail")
    for flags, subject in (("", "new"), ("S", "seen"), ("FS", "starred"), ("T", "gone")):
        message = stdlib.MaildirMessage(raw_mail(subject))
        message.set_subdir("cur" if flags else "new")
        message.set_flags(flags)
        written.add(message)
    written.add_folder("Sent").add(stdlib.MaildirMessage(raw_mail("sent", sender=OWNER, To=OTHER)))
    written.add_folder("Work.Library").add(stdlib.MaildirMessage(raw_mail("filed")))
    assert loaded(mailbox, tmp_path / "mail") == 6
    labels = {message.mail.header("Subject"): message.labels for message in mailbox.search("in:anywhere")}
    filed = mailbox.labels.named("Work/Library")
    assert filed is not None
    assert labels == {
        "new": {"INBOX", "UNREAD"},
        "seen": {"INBOX"},
        "starred": {"INBOX", "STARRED"},
        "gone": {"TRASH", "UNREAD"},
        "sent": {"SENT"},
        "filed": {filed.id, "UNREAD"},
    }


def test_a_folder_of_messages_at_any_depth(mailbox: Mailbox, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "1.eml").write_bytes(raw_mail("deep"))
    (tmp_path / "2").write_bytes(raw_mail("mine", sender=OWNER, To=OTHER))
    (tmp_path / ".hidden").write_bytes(raw_mail("hidden"))
    assert loaded(mailbox, tmp_path) == 2
    assert next(mailbox.search("subject:deep")).labels == {"INBOX", "UNREAD"}
    assert next(mailbox.search("subject:mine")).labels == {"SENT"}


def test_labels_of_googles_own_export_are_kept(mailbox: Mailbox, tmp_path: Path) -> None:
    raw = raw_mail("exported", X_Gmail_Labels="Archived,Opened,Important,Category Updates,Trips/Norway")
    (tmp_path / "1.eml").write_bytes(raw)
    loaded(mailbox, tmp_path)
    trips = mailbox.labels.named("Trips/Norway")
    assert trips is not None
    assert next(mailbox.search()).labels == {"IMPORTANT", "CATEGORY_UPDATES", trips.id}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Date": "Mon, 2 Nov 2026 10:00:00 +0100"}, datetime(2026, 11, 2, 9, tzinfo=UTC)),
        (
            {"Received": "from x by y; Tue, 3 Nov 2026 00:00:00 +0000", "Date": "Mon, 2 Nov 2026 10:00:00 +0000"},
            datetime(2026, 11, 3, tzinfo=UTC),
        ),
        ({"Date": "Mon, 2 Nov 2099 10:00:00 +0000"}, None),
        ({"Date": "yesterday"}, None),
        ({"Date": "Mon, 2 Nov 99999 10:00:00 +9999"}, None),
        ({}, None),
    ],
)
def test_a_message_came_when_its_headers_say_and_never_in_the_future(
    mailbox: Mailbox, tmp_path: Path, headers: dict[str, str], expected: datetime | None
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    (tmp_path / "1.eml").write_bytes(f"{lines}Subject: x\r\n\r\n".encode())
    loaded(mailbox, tmp_path)
    assert next(mailbox.search()).received_at == (expected or mailbox.clock())


def test_damaged_mail_is_loaded_all_the_same(mailbox: Mailbox, tmp_path: Path) -> None:
    seed = 20261115
    print(f"seed {seed}")
    rng = Random(seed)
    whole = raw_mail("Grüße aus Österreich", "Schöne Grüße\n" * 5, Date="Mon, 2 Nov 2026 10:00:00 +0100")
    for number in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / f"{number}.eml").write_bytes(bytes(damaged))
    (tmp_path / "noise.eml").write_bytes(rng.randbytes(5000))
    assert loaded(mailbox, tmp_path) == 301


def test_what_cannot_be_read_is_told_and_the_rest_is_loaded(mailbox: Mailbox, tmp_path: Path) -> None:
    (tmp_path / "1.eml").write_bytes(raw_mail("fine"))
    with (tmp_path / "2.eml").open("wb") as huge:
        huge.truncate(36_700_161)
    os.mkfifo(tmp_path / "3.eml")
    result = load(mailbox, mail_in(tmp_path))
    assert result == Loaded(1, result.problems)
    assert [(Path(problem.where).name, problem.why) for problem in result.problems] == [
        ("2.eml", "more than the 36700160 bytes that Gmail accepts")
    ]


def test_a_path_with_nothing_at_it_is_named(mailbox: Mailbox, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        load(mailbox, mail_in(tmp_path / "nowhere"))


async def test_the_sandbox_runs_on_mail_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "1.eml").write_bytes(raw_mail("fine"))
    told: list[str] = []
    plan = SandboxPlan(port=0, mail=tmp_path, user="me@example.org", units_per_minute=100)
    async with sandbox_mailbox(plan, "a-token", told.append) as address:
        assert address.startswith("http://127.0.0.1:")
    assert told == [f"1 messages from {tmp_path}"]
