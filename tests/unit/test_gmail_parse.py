"""A Gmail message as an envelope: always one that the switchboard accepts, with its problems listed."""

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy, parse_rule
from postroom.core.mail.message import read_mail
from postroom.core.mail.tiers import Known
from postroom.core.queue.envelope import parse_envelope
from postroom.mailboxes.following.envelopes import LONGEST_GIST, MOST_GIST_HEADERS, PreparedMessage, prepare
from postroom.mailboxes.gmail.reading import parsed_from
from postroom.mailboxes.gmail.resources import Body, GmailPart, Header, Message

ENDPOINT = "gmail:user:mara@lindqvist.example"
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
KNOWN = Known.of(["mara@lindqvist.example"])
HEADERS = (("From", "Ida <ida@x.example>"), ("To", "mara@lindqvist.example"), ("Subject", "Hello"))


def part(mime_type: str, data: bytes | None = None, parts: tuple[GmailPart, ...] = (), **more: Any) -> GmailPart:
    headers = tuple(Header(name, value) for name, value in more.pop("headers", ()))
    size = more.pop("size", len(data or b""))
    return GmailPart("", mime_type, more.pop("filename", ""), headers, Body(size, data), parts)


def message(payload: GmailPart | None, **more: Any) -> Message:
    whole = Message("18c0ffee", "18c0ffee", frozenset({"INBOX"}), 7, NOW, 100, "the snippet", payload)
    return replace(whole, **more)


def plain(headers: tuple[tuple[str, str], ...] = HEADERS, text: bytes = b"Good morning") -> Message:
    return message(part("text/plain", text, headers=headers))


def prepared(of: Message, policy: IngestionPolicy | None = None) -> PreparedMessage:
    made = prepare(of, ENDPOINT, KNOWN, NOW, policy or IngestionPolicy())
    if made.envelope is not None:
        parse_envelope(made.envelope)
    return made


def payload_of(of: Message, policy: IngestionPolicy | None = None) -> dict[str, Any]:
    envelope = prepared(of, policy).envelope
    assert envelope is not None
    return envelope["payload"]


def test_an_honest_message_is_carried_whole():
    made = prepared(plain())
    assert made.envelope is not None
    assert made.envelope["control"] == {
        "idempotency_key": f"gmail:{ENDPOINT}:18c0ffee",
        "policy_tier": "interactive",
        "ingestion_tier": "full",
    }
    assert made.envelope["sender"] == {"identity": "ida@x.example"}
    assert made.envelope["payload"]["normalized_text"] == "Good morning"
    assert "problems" not in made.envelope["payload"]["raw"]
    mail = read_mail(parse_envelope(made.envelope))
    assert (mail.subject, mail.sender, mail.labels, mail.sent_at) == ("Hello", "ida@x.example", {"INBOX"}, NOW)


@pytest.mark.parametrize("policy", [IngestionPolicy(), DEFAULT_POLICY], ids=["whole", "metadata"])
def test_the_size_and_whether_it_answers_the_user_are_carried(policy: IngestionPolicy) -> None:
    headers = (*HEADERS, ("List-Id", "<x>"), ("In-Reply-To", "<sent@x.example>"))
    known = Known.of(["mara@lindqvist.example"], ["ida@x.example"], ["<sent@x.example>"])
    for known_to_user, answers in ((known, True), (KNOWN, False)):
        made = prepare(plain(headers), ENDPOINT, known_to_user, NOW, policy)
        assert made.envelope is not None
        mail = read_mail(parse_envelope(made.envelope))
        assert (mail.size, mail.reply_to_mine) == (100, answers)
        assert (mail.attachments is None) == (policy is DEFAULT_POLICY)


@pytest.mark.parametrize("policy", [IngestionPolicy(), DEFAULT_POLICY], ids=["whole", "metadata"])
def test_doubt_about_the_sender_is_carried(policy: IngestionPolicy) -> None:
    known = replace(KNOWN, own_hosts=frozenset({"mx.google.com"}))
    results = ("Authentication-Results", "mx.google.com; dmarc=fail")
    for headers, doubt in (((results, *HEADERS), "failed"), ((*HEADERS, *HEADERS), "unclear"), (HEADERS, None)):
        made = prepare(plain((*headers, ("List-Id", "<x>"))), ENDPOINT, known, NOW, policy)
        assert made.envelope is not None
        assert read_mail(parse_envelope(made.envelope)).sender_doubt == doubt


@pytest.mark.parametrize("told", [{"size": -1}, {"size": True}, {"size": "9"}, {"size": 2**70}, {"reply_to_mine": 1}])
def test_facts_that_make_no_sense_are_not_known(told: dict[str, Any]) -> None:
    envelope = prepared(plain()).envelope
    assert envelope is not None
    raw = {name: value for name, value in envelope["payload"]["raw"].items() if name not in ("size", "reply_to_mine")}
    envelope["payload"]["raw"] = raw | told
    if told.get("size") == 2**70:
        with pytest.raises(BadInput, match="64 bits"):
            parse_envelope(envelope)
        return
    mail = read_mail(parse_envelope(envelope))
    assert (mail.size, mail.reply_to_mine) == (None, None)


def test_the_plain_alternative_is_read_and_the_rest_is_attached():
    whole = part(
        "multipart/mixed",
        parts=(
            part("multipart/alternative", parts=(part("text/plain", "für dich".encode()), part("text/html", b"<b>x"))),
            part("application/pdf", None, filename="../../etc/passwd.pdf", size=1234),
            part("message/rfc822", None, (part("text/plain", b"within"),), filename="forwarded.eml"),
        ),
        headers=HEADERS,
    )
    payload = payload_of(message(whole))
    assert payload["normalized_text"] == "für dich"
    assert payload["attachments"][0] == {"filename": "passwd.pdf", "mime_type": "application/pdf", "size": 1234}
    assert [each["filename"] for each in payload["attachments"]] == ["passwd.pdf", "forwarded.eml"]


def test_html_alone_becomes_text():
    payload = payload_of(message(part("text/html", b"<p>Good <b>morning</b></p>", headers=HEADERS)))
    assert payload["normalized_text"] == "Good morning"


def test_text_that_is_an_attachment_is_not_the_text():
    attached = part("text/plain", b"notes", headers=(("Content-Disposition", "attachment; filename=notes.txt"),))
    payload = payload_of(message(part("multipart/mixed", parts=(part("text/plain", b"hi"), attached), headers=HEADERS)))
    assert payload["normalized_text"] == "hi"
    assert payload["attachments"][0]["filename"] == "notes.txt"


def test_encoded_words_are_read_in_subjects_and_do_not_change_who_wrote():
    headers = (("From", "=?utf-8?q?Ida=2C?= <ida@x.example>"), ("Subject", "=?utf-8?b?R3LDvMOfZQ==?="))
    made = prepared(plain(headers))
    assert made.envelope is not None
    assert made.envelope["sender"] == {"identity": "ida@x.example"}
    assert dict(made.envelope["payload"]["raw"]["headers"])["Subject"] == "Grüße"


@pytest.mark.parametrize(
    "awkward",
    [
        message(None),
        message(part("")),
        message(part("multipart/mixed")),
        message(part("multipart/mixed", b"", tuple(part("text/plain", b"x") for _ in range(5000)))),
        plain(()),
        plain((("Subject", "x" * 2**20), *HEADERS)),
        plain(tuple(("X-Many", "y" * 60_000) for _ in range(100))),
        plain((("From", "a\0b\x01@x.example"), ("Subject", "a\0\ud800b"), ("", ""), ("Be ll", "\a"))),
        plain((("From", "=?utf-8?q?a=0D=0Ab=0D=0A?= <" + "c" * 2000 + "@x.example>"),)),
        plain(HEADERS, b"\xff\xfe\0" * 1000),
        plain(HEADERS, b"x" * 3_000_000),
        message(part("multipart/mixed", parts=tuple(part("image/png", None, filename="n") for _ in range(999)))),
        message(part("text/plain", b"x", filename="\u202egpj.exe" * 100, size=-1)),
        message(part("TEXT/PLAIN; charset=nonsense", b"x")),
        plain(HEADERS, b""),
    ],
    ids=lambda each: f"{len(each.headers)} headers",
)
def test_whatever_it_is_the_switchboard_takes_it(awkward: Message):
    assert prepared(awkward).envelope is not None


def test_what_had_to_be_left_out_is_reported():
    payload = payload_of(plain((("Subject", "x" * 2**20), *HEADERS)))
    assert payload["raw"]["problems"] == ["a header is longer than 64 KiB: Subject"]
    assert payload_of(message(None))["raw"]["problems"] == ["there is no header", "it came without its content"]


def test_a_thread_without_an_id_has_none():
    made = prepared(message(part("text/plain", b"x"), thread_id=""))
    assert made.envelope is not None
    assert made.envelope["event"]["external_thread_id"] is None


def test_a_raw_message_is_read_and_kept_as_it_is():
    raw = b"From: ida@x.example\r\nSubject: Raw\r\n\r\nGood morning\r\n"
    payload = payload_of(message(None, raw=raw))
    assert payload["normalized_text"] == "Good morning"
    assert base64.b64decode(payload["raw"]["rfc822"]) == raw


def test_a_body_that_cannot_be_read_leaves_its_headers(monkeypatch: pytest.MonkeyPatch):
    def fail(*given: object) -> object:
        raise RecursionError

    monkeypatch.setattr("postroom.mailboxes.gmail.reading.read_parts", fail)
    letter = parsed_from(plain())
    assert dict(letter.headers)["Subject"] == "Hello"
    assert letter.problems == ("its body cannot be read (RecursionError)",)


def test_as_metadata_the_subject_and_what_rules_look_at_is_carried_and_nothing_of_the_text():
    headers = (*HEADERS[:2], ("Subject", "A\r\n  folded one"), ("List-Id", "<x>"))
    given = plain(headers)
    assert payload_of(given, DEFAULT_POLICY) == {
        "raw": None,
        "normalized_text": "A folded one",
        "metadata": {
            "headers": [list(pair) for pair in headers],
            "labels": sorted(given.label_ids),
            "sent_at": given.internal_date.isoformat(),
            "size": 100,
            "reply_to_mine": False,
        },
        "attachments": [],
    }


def test_of_endless_headers_as_much_is_carried_as_has_a_use():
    many = [("List-Id", "y" * 60_000), *((f"X-{n}", "z") for n in range(900))]
    carried = payload_of(plain(tuple(many)), DEFAULT_POLICY)["metadata"]["headers"]
    assert len(carried) == MOST_GIST_HEADERS
    assert carried[0] == ["List-Id", "y" * LONGEST_GIST]


def test_what_is_skipped_has_no_envelope():
    rule = parse_rule({"number": 1, "name": "no", "kind": "sender_domain", "value": "x.example", "tier": "skip"})
    made = prepared(plain(), IngestionPolicy([rule]))
    assert (made.envelope, made.decision.tier) == (None, "skip")
