"""The emulator's mailbox behaves like one at Gmail."""

import base64
import traceback
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from random import Random
from typing import Any

import pytest

from postroom_sandbox.mailbox import Mailbox, Message
from postroom_sandbox.mime import Mail
from postroom_sandbox.refusal import Refusal

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OWNER = "mara@lindqvist.example"


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(OWNER, Random(1), clock=lambda: NOW)


def raw_mail(subject: str = "Hello", text: str = "Good morning", **headers: str) -> bytes:
    message = EmailMessage()
    message["From"] = "Ida <ida@example.org>"
    message["To"] = OWNER
    message["Subject"] = subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes()


def found(mailbox: Mailbox, q: str = "", **options: Any) -> list[str]:
    return [message.mail.header("Subject") for message in mailbox.search(q, **options)]


def kinds(mailbox: Mailbox, start: int, only: frozenset[str] = frozenset(), label: str | None = None) -> list[str]:
    return [change.kind for change in mailbox.changes_since(start, only, label)]


def text_of(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64decode(part["body"]["data"]).decode()


def test_a_delivered_message_is_new_in_the_inbox(mailbox: Mailbox) -> None:
    message = mailbox.deliver(raw_mail())
    assert message.labels == {"INBOX", "UNREAD"}
    assert message.internal_date == int(NOW.timestamp() * 1000)


def test_an_id_is_sixteen_hexadecimal_digits_and_begins_its_own_thread(mailbox: Mailbox) -> None:
    message = mailbox.deliver(raw_mail())
    assert len(message.id) == 16
    assert int(message.id, 16) >> 20 == message.internal_date
    assert message.thread_id == message.id


def test_mail_of_one_moment_is_listed_newest_first(mailbox: Mailbox) -> None:
    subjects = [str(number) for number in range(50)]
    for subject in subjects:
        mailbox.deliver(raw_mail(subject))
    assert found(mailbox) == subjects[::-1]


def test_every_change_raises_the_history_id(mailbox: Mailbox) -> None:
    seen = [mailbox.history_id]
    message = mailbox.deliver(raw_mail())
    seen.append(mailbox.history_id)
    mailbox.modify(message.id, add=["STARRED"])
    seen.append(mailbox.history_id)
    mailbox.delete(message.id)
    seen.append(mailbox.history_id)
    assert seen == sorted(set(seen))


def test_a_change_that_changes_nothing_leaves_no_trace(mailbox: Mailbox) -> None:
    message = mailbox.deliver(raw_mail())
    before = mailbox.history_id
    mailbox.modify(message.id, add=["INBOX"], remove=["STARRED"])
    assert mailbox.history_id == before


@pytest.mark.parametrize("header", ["In-Reply-To", "References"])
def test_an_answer_joins_the_thread_of_what_it_answers(mailbox: Mailbox, header: str) -> None:
    first = mailbox.deliver(raw_mail("Lunch?", Message_ID="<a@example.org>"))
    answer = mailbox.deliver(raw_mail("Re: Lunch?", **{header: "<unknown@example.org> <a@example.org>"}))
    assert answer.thread_id == first.thread_id


def test_an_answer_under_a_new_subject_begins_a_new_thread(mailbox: Mailbox) -> None:
    first = mailbox.deliver(raw_mail("Lunch?", Message_ID="<a@example.org>"))
    answer = mailbox.deliver(raw_mail("Something else", In_Reply_To="<a@example.org>"))
    assert answer.thread_id != first.thread_id


@pytest.mark.parametrize(("place", "others"), [("TRASH", "INBOX"), ("SPAM", "INBOX"), ("INBOX", "TRASH")])
def test_putting_a_message_into_one_place_takes_it_out_of_the_others(mailbox: Mailbox, place: str, others: str) -> None:
    message = mailbox.deliver(raw_mail(), [others, "UNREAD"])
    assert mailbox.modify(message.id, add=[place]).labels == {place, "UNREAD"}


@pytest.mark.parametrize(
    ("add", "remove", "why"),
    [
        (["Label_99"], [], "Invalid label: Label_99"),
        (["SENT"], [], "Invalid label: SENT"),
        ([], ["DRAFT"], "Invalid label: DRAFT"),
        (["STARRED"], ["STARRED"], "both add and remove"),
        (["INBOX", "TRASH"], [], "Can only add one of"),
    ],
)
def test_a_label_change_that_gmail_refuses_changes_nothing(
    mailbox: Mailbox, add: list[str], remove: list[str], why: str
) -> None:
    message = mailbox.deliver(raw_mail())
    with pytest.raises(Refusal, match=why) as caught:
        mailbox.modify(message.id, add, remove)
    assert caught.value.code == 400
    assert message.labels == {"INBOX", "UNREAD"}


def test_history_tells_what_happened_in_order(mailbox: Mailbox) -> None:
    start = mailbox.history_id
    message = mailbox.deliver(raw_mail())
    mailbox.modify(message.id, add=["TRASH"])
    mailbox.delete(message.id)
    assert kinds(mailbox, start) == ["messageAdded", "labelAdded", "labelRemoved", "messageDeleted"]


def test_history_from_now_on_is_empty(mailbox: Mailbox) -> None:
    mailbox.deliver(raw_mail())
    assert kinds(mailbox, mailbox.history_id) == []


def test_history_can_be_narrowed_to_kinds_and_a_label(mailbox: Mailbox) -> None:
    start = mailbox.history_id
    message = mailbox.deliver(raw_mail())
    mailbox.deliver(raw_mail(), ["SPAM"])
    mailbox.modify(message.id, remove=["INBOX"])
    mailbox.modify(message.id, add=["STARRED"])
    assert kinds(mailbox, start, frozenset({"messageAdded"})) == ["messageAdded", "messageAdded"]
    assert kinds(mailbox, start, label="INBOX") == ["messageAdded", "labelRemoved"]


def test_history_that_has_expired_is_not_found(mailbox: Mailbox) -> None:
    old = mailbox.history_id
    mailbox.deliver(raw_mail())
    mailbox.history.forget(mailbox.history_id)
    with pytest.raises(Refusal) as caught:
        kinds(mailbox, old)
    assert caught.value.code == 404
    assert kinds(mailbox, mailbox.history_id) == []


def test_history_from_the_future_is_not_found(mailbox: Mailbox) -> None:
    with pytest.raises(Refusal, match="not found"):
        kinds(mailbox, mailbox.history_id + 1)


def test_only_so_much_history_is_remembered() -> None:
    mailbox = Mailbox(OWNER, Random(1), clock=lambda: NOW, remembered=2)
    first = mailbox.deliver(raw_mail())
    before = mailbox.history_id
    for _ in range(2):
        mailbox.deliver(raw_mail())
    assert kinds(mailbox, before) == ["messageAdded", "messageAdded"]
    with pytest.raises(Refusal):
        kinds(mailbox, first.history_id - 1)


def test_an_emptied_mailbox_has_forgotten_its_history(mailbox: Mailbox) -> None:
    old = mailbox.history_id
    mailbox.deliver(raw_mail())
    mailbox.clear()
    assert len(mailbox) == 0
    with pytest.raises(Refusal):
        kinds(mailbox, old)


def test_a_deleted_label_goes_from_every_message(mailbox: Mailbox) -> None:
    label = mailbox.labels.create("Work", {}).id
    message = mailbox.deliver(raw_mail())
    mailbox.modify(message.id, add=[label])
    start = mailbox.history_id
    mailbox.delete_label(label)
    assert label not in message.labels
    assert kinds(mailbox, start) == ["labelRemoved"]


@pytest.mark.parametrize(("name", "code"), [("", 400), ("Inbox", 400), ("a\nb", 400), ("wOrK", 409)])
def test_a_label_name_that_is_empty_reserved_or_taken_is_refused(mailbox: Mailbox, name: str, code: int) -> None:
    mailbox.labels.create("Work", {})
    with pytest.raises(Refusal) as caught:
        mailbox.labels.create(name, {})
    assert caught.value.code == code


def test_a_system_label_cannot_be_deleted(mailbox: Mailbox) -> None:
    with pytest.raises(Refusal) as caught:
        mailbox.delete_label("INBOX")
    assert caught.value.code == 400


def test_a_label_counts_its_messages_and_threads(mailbox: Mailbox) -> None:
    first = mailbox.deliver(raw_mail("Lunch?", Message_ID="<a@example.org>"))
    mailbox.deliver(raw_mail("Re: Lunch?", In_Reply_To="<a@example.org>"))
    mailbox.modify(first.id, remove=["UNREAD"])
    counted = mailbox.count(mailbox.labels.get("INBOX"))
    numbers = [counted[key] for key in ("messagesTotal", "messagesUnread", "threadsTotal", "threadsUnread")]
    assert numbers == [2, 1, 1, 1]


@pytest.fixture
def searched(mailbox: Mailbox) -> Mailbox:
    work = mailbox.labels.create("Work/Big Library", {}).id
    ago = {name: NOW - timedelta(days=days) for name, days in (("week", 7), ("month", 30), ("year", 365))}
    mailbox.deliver(raw_mail("old", "the tender"), ["INBOX", work], ago["year"])
    mailbox.deliver(raw_mail("junk"), ["SPAM"], ago["month"])
    mailbox.deliver(raw_mail("read", Message_ID="<read@example.org>"), ["INBOX", "STARRED"], ago["week"])
    mailbox.deliver(raw_mail("sent").replace(b"Ida <ida@example.org>", b"Mara <mara@lindqvist.example>"), ["SENT"])
    mailbox.deliver(raw_mail("new offer"), received_at=NOW + timedelta(seconds=1))
    return mailbox


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("", ["new offer", "sent", "read", "old"]),
        ("in:inbox", ["new offer", "read", "old"]),
        ("in:anywhere", ["new offer", "sent", "read", "junk", "old"]),
        ("in:spam", ["junk"]),
        ("label:work-big-library", ["old"]),
        ('label:"Work/Big Library"', ["old"]),
        ("label:nowhere", []),
        ("is:unread", ["new offer"]),
        ("is:read in:inbox", ["read", "old"]),
        ("is:starred", ["read"]),
        ("from:mara", ["sent"]),
        ("-from:mara -is:unread", ["read", "old"]),
        ("subject:OFFER", ["new offer"]),
        ('subject:"new offer"', ["new offer"]),
        ("tender", ["old"]),
        ("newer_than:8d", ["new offer", "sent", "read"]),
        ("older_than:2m", ["old"]),
        ("newer_than:999999y", ["new offer", "sent", "read", "old"]),
        ("after:2026/11/01 before:2026/11/10", ["read"]),
        ("rfc822msgid:<read@example.org>", ["read"]),
    ],
)
def test_a_search_finds_newest_first(searched: Mailbox, q: str, expected: list[str]) -> None:
    assert found(searched, q) == expected


def test_an_unknown_search_operator_is_refused_instead_of_ignored(searched: Mailbox) -> None:
    with pytest.raises(Refusal, match="circle:friends"):
        found(searched, "circle:friends")


def test_spam_is_found_when_it_is_asked_for(searched: Mailbox) -> None:
    assert "junk" in found(searched, include_spam_trash=True)
    assert found(searched, label_ids=["SPAM"]) == ["junk"]


def test_new_mail_between_two_pages_shifts_nothing(searched: Mailbox) -> None:
    first, following, _ = searched.page(2)
    searched.deliver(raw_mail("even newer"), received_at=NOW + timedelta(seconds=2))
    second, end, _ = searched.page(2, before=following)
    assert [message.mail.header("Subject") for message in first + second] == ["new offer", "sent", "read", "old"]
    assert end is None


def test_text_comes_as_utf8_whatever_its_charset_was() -> None:
    raw = b"Subject: =?iso-2022-jp?B?GyRCTWg9NRsoQg==?=\r\nContent-Type: text/plain; charset=iso-2022-jp\r\n\r\n"
    payload = Mail(raw + "来週".encode("iso-2022-jp")).payload()
    assert text_of(payload) == "来週"
    assert payload["headers"][0] == {"name": "Subject", "value": "来週"}
    assert payload["headers"][1]["value"] == "text/plain; charset=iso-2022-jp"


def test_attachments_are_named_and_left_out_of_the_tree() -> None:
    message = EmailMessage()
    message.set_content("See the plan.")
    message.add_alternative("<p>See the plan.</p>", subtype="html")
    message.add_attachment(b"%PDF", "application", "pdf", filename="Grundriß.pdf")
    payload = Mail(message.as_bytes()).payload()
    alternative, plan = payload["parts"]
    assert [part["partId"] for part in alternative["parts"]] == ["0.0", "0.1"]
    assert plan["filename"] == "Grundriß.pdf"
    assert plan["body"].keys() == {"attachmentId", "size"}
    assert plan["body"]["size"] == 4


def test_a_snippet_is_escaped_text_without_style() -> None:
    raw = b"Content-Type: text/html\r\n\r\n<style>p {}</style><p>Tom &amp; Ida's   <b>news</b></p>"
    assert Mail(raw).snippet == "Tom &amp; Ida&#39;s news"


HOSTILE = {
    "nothing": b"",
    "no header": b"\r\n\r\nhello",
    "only a colon": b":\r\n\r\n",
    "zero bytes": b"Subject: a\x00b\r\n\r\n\x00\x00",
    "raw eight bit": b"Subject: gr\xfc\xdfe\r\nFrom: \xff\xfe\r\n\r\n\xff",
    "unknown charset": b"Subject: =?klingon?Q?x?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\nx\xff",
    "broken encoded word": b"Subject: =?utf-8?B?!!!?= =?utf-8?Q?=ZZ?= =?utf-8\r\n\r\n",
    "surrogate": b"Subject: =?utf-16?B?2AA=?=\r\nContent-Type: text/plain; charset=utf-16\r\n\r\n\xd8\x00x",
    "binary codec": b"Subject: =?hex?Q?00?=\r\nContent-Type: text/plain; charset=base64\r\n\r\nAAAA",
    "broken base64": b"Content-Transfer-Encoding: base64\r\n\r\n!!!A",
    "broken uuencode": b"Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 666 x\r\n\x80\r\n",
    "multipart without boundary": b"Content-Type: multipart/mixed\r\n\r\nhello",
    "unfinished multipart": b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\n\r\nhello',
    "encoded multipart": b"Content-Transfer-Encoding: base64\r\nContent-Type: multipart/x; boundary=x\r\n\r\n--x\r\n",
    "odd parameters": b"Content-Type: text/plain; charset*=x'y; name*0*=%; filename*1=z\r\n\r\nx",
    "odd filename": b"Content-Disposition: attachment; filename*=utf-99'en'%ff%fe\r\n\r\nx",
    "mail in mail": b"Content-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nhello",
    "folded forever": b"Subject:" + b"\r\n " * 5000 + b"\r\n\r\nx",
    "nested 300 deep": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(300)
    ),
    "nested 3000 deep": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(3000)
    ),
    "a mebibyte of encoded words": b"Subject: " + b"=?utf-8?q?=C3=A4?= " * 60_000 + b"\r\n\r\nx",
    "folded 300,000 times": b"Subject: a" + b"\r\n b" * 300_000 + b"\r\n\r\nx",
    "five megabytes of html": b"Content-Type: text/html\r\n\r\n" + b"<p>a" * 1_250_000,
    "unclosed html": b"Content-Type: text/html\r\n\r\n<![if <!-- <a href='x <style>",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_mail_is_shown_without_a_crash(mailbox: Mailbox, raw: bytes) -> None:
    shown = shown_in_every_format(mailbox.deliver(raw))
    assert base64.urlsafe_b64decode(shown["raw"]["raw"]) == raw
    assert "payload" in shown["full"]


def test_damaged_mail_is_shown_without_a_crash(mailbox: Mailbox) -> None:
    seed = 20261115
    print(f"seed {seed}")
    rng = Random(seed)
    message = EmailMessage()
    message["Subject"] = "Grüße aus Österreich"
    message["From"] = "Åsa <asa@example.org>"
    message.set_content("Schöne Grüße\n" * 5)
    message.add_alternative("<p>Schöne Grüße</p>", subtype="html")
    message.add_attachment(b"\x00\x01", "application", "octet-stream", filename="Übung.bin")
    whole = message.as_bytes()
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 12)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            shown_in_every_format(mailbox.deliver(bytes(damaged)))
        except Exception:
            pytest.fail(f"{bytes(damaged)!r}\n{traceback.format_exc()}")


def shown_in_every_format(message: Message) -> dict[str, Any]:
    shown = {name: message.as_json(name) for name in ("full", "metadata", "minimal", "raw")}
    for answer in shown.values():
        str(answer).encode("utf-8")
    return shown
