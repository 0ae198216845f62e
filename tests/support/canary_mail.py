"""A thousand messages full of canaries, and how some of them fail."""

from collections.abc import Callable, Iterator
from email.message import EmailMessage
from typing import Any

from support.canaries import Canaries
from support.product import ENDPOINT, OWNER

STRANGER = "gmail:user:stranger@nowhere.example"
UNREADABLE = "this mail cannot be read"
UNDECIDABLE = "this mail cannot be decided about"
Spoil = Callable[[dict[str, Any], Canaries], None]


def event(canaries: Canaries, endpoint: str, number: int) -> dict[str, Any]:
    """An event for the gateway, of every class by turns, with a canary in everything that a producer may choose."""
    word = canaries.word
    kind = ("deploy.failed", "test.run", "callback_query", f"deploy.{word('kind')}")[number % 4]
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": endpoint},
        "event": {
            "external_event_id": word("eventid"),
            "external_thread_id": word("threadid"),
            "observed_at": "2026-11-15T08:00:00Z",
            "kind": kind,
        },
        "sender": {"identity": f"{word('sender')}@example.com"},
        "payload": {
            "raw": {word("rawkey"): word("rawvalue")},
            "normalized_text": f"{'/' if number % 7 == 0 else ''}run {word('text')}",
            "attachments": [{"filename": f"{word('filename')}.pdf", "mime_type": word("mimetype"), "size": 7}],
        },
        "control": {
            "idempotency_key": word("key"),
            "trace_context": {"traceparent": word("traceparent"), "tracestate": f"a={word('tracestate')}"},
        },
    }


def message(canaries: Canaries, number: int) -> dict[str, Any]:
    """A mail as an envelope. Some are nobody's, some cannot be read, a few cannot be decided about."""
    word, fate = canaries.word, number % 40
    whole = event(canaries, STRANGER if fate % 10 == 0 else ENDPOINT, number)
    whole["source"] |= {"channel": "email", "provider": "gmail"}
    del whole["event"]["kind"]
    headers: Any = [["Subject", f"about {word('subject')}"], ["From", f"{word('name')} <{word('from')}@example.com>"]]
    if fate % 5 == 2:
        headers = {word("header"): word("headervalue")}
    whole["payload"]["raw"] = {"headers": headers, "snippet": word("snippet"), "labels": [word("label")]}
    whole["payload"]["normalized_text"] += f" {trouble(fate)}"
    whole["control"]["policy_tier"] = ("high_priority", "interactive", "default")[number % 3]
    return whole


def trouble(number: int) -> str:
    """Few cannot be decided about: that is tried again and again, and holds up the others."""
    return {3: UNREADABLE, 4: UNDECIDABLE, 13: UNREADABLE, 23: UNREADABLE}.get(number, "")


def raw_mail(canaries: Canaries, number: int) -> bytes:
    """A mail as it lies in the mailbox, with an attachment. Every tenth has a sender that nobody can have."""
    word = canaries.word
    mail = EmailMessage()
    mail["Subject"] = f"{'Receipt' if number % 4 == 0 else 'News'} {word('subject')}"
    mail["From"] = f"{word('name')} <{word('from')}@store.example>"
    mail["To"] = f"{OWNER}, {word('to')}@example.com"
    mail["Message-ID"] = f"<{word('messageid')}@store.example>"
    mail["List-Unsubscribe"] = f"<https://store.example/{word('url')}>"
    mail.set_content(f"Hello {word('body')} {trouble(number % 50)}")
    mail.add_attachment(word("content").encode(), "application", "pdf", filename=f"{word('filename')}.pdf")
    raw = mail.as_bytes()
    return raw.replace(b"@store.example>\nTo:", b"\x01@store.example>\nTo:") if number % 10 == 9 else raw


def unknown_key(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["payload"][canaries.word("unknownkey")] = 1


def unknown_channel(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["source"]["channel"] = canaries.word("channel")


def unknown_version(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["schema_version"] = canaries.word("version")


def unknown_tier(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["control"]["policy_tier"] = canaries.word("tier")


def naive_time(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["event"]["observed_at"] = "2026-11-15T08:00:00"


def foreign_endpoint(whole: dict[str, Any], canaries: Canaries) -> None:
    whole["source"]["endpoint_identity"] = canaries.word("foreignendpoint")


SPOILS: tuple[Spoil, ...] = (unknown_key, unknown_channel, unknown_version, unknown_tier, naive_time, foreign_endpoint)


def thousand(canaries: Canaries, endpoint: str, count: int) -> Iterator[dict[str, Any]]:
    """Envelopes, every third of them mail; of ten, one is a copy, one a conflict, and one is refused."""
    earlier = event(canaries, endpoint, 0)
    for number in range(count):
        fresh = event(canaries, endpoint, number) if number % 3 else message(canaries, number // 3)
        match number % 10:
            case 4:
                yield earlier
            case 6:
                yield fresh | {"control": earlier["control"]}
            case 8:
                SPOILS[number // 10 % len(SPOILS)](fresh, canaries)
                yield fresh
            case _:
                yield (earlier := fresh)
