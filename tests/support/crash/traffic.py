"""What the switchboard is given in the chaos suite: rounds of messages of every kind, and queues that are impatient.

A round has something for every tier of both queues. Each round echoes the one before it as producers do: the same
message again, the whole of what was known by its metadata, the same words under another id, and two that claim to
be what they are not. A message is known by its name, which is its event id.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from postroom.core.queue.queues import EMAIL, GATEWAY, Queues
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.backfills import NAMED, open_backfill

OWNER = "me@example.com"
ENDPOINT = f"gmail:user:{OWNER}"
LEASE = timedelta(seconds=0.4)
FRESH = timedelta(seconds=0.1)
MOST_DELIVERIES = 3
POLICIES = (
    replace(EMAIL, lease=LEASE, most_deliveries=MOST_DELIVERIES),
    replace(
        GATEWAY,
        guards={"P0": 2, "P1": 1, "P2": 1, "P3": 1},
        lease=LEASE,
        most_deliveries=MOST_DELIVERIES,
        coalesce_within={"P3": FRESH},
        auto_ack_after={"P3": FRESH},
    ),
)
QUEUES = Queues(POLICIES)


async def open_account(database: Database) -> None:
    """Mail is accepted only for an account that there is, and for a backfill that is active."""
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    await open_backfill(database, ENDPOINT, wall_clock())


class Sent(NamedTuple):
    """A message on its way, and whether it has a right to be accepted."""

    name: str
    data: dict[str, Any]
    honest: bool = True


def rounds(prefix: str) -> Iterator[list[Sent]]:
    """Round after round, the same ones for the same prefix."""
    number = 0
    while True:
        yield whole_round(prefix, number)
        number += 1


def whole_round(prefix: str, number: int) -> list[Sent]:
    echoes = list(_echoes(f"{prefix}-{number - 1}")) if number else []
    return [*_fresh(f"{prefix}-{number}"), *echoes]


def number_of(name: str) -> tuple[str, int]:
    """The prefix and the round that a message belongs to."""
    prefix, number, _ = name.rsplit("-", 2)
    return prefix, int(number)


def _fresh(stem: str) -> Iterator[Sent]:
    yield _mail(f"{stem}-urgent", idempotency_key=f"{stem}-urgent", policy_tier="high_priority")
    yield _mail(f"{stem}-chat", policy_tier="interactive")
    yield _mail(f"{stem}-letter", idempotency_key=f"{stem}-letter")
    yield _mail(f"{stem}-old", **NAMED)
    yield _mail(f"{stem}-outline", ingestion_tier="metadata")
    yield _event(f"{stem}-call", channel="telegram")
    yield _event(f"{stem}-broken", kind="deploy.failed")
    yield _event(f"{stem}-said", kind="deploy.done", text=f"{stem} is done")
    for letter in "abc":
        yield _event(f"{stem}-{letter}", kind="test.passed")


def _echoes(stem: str) -> Iterator[Sent]:
    yield _mail(f"{stem}-urgent", idempotency_key=f"{stem}-urgent", policy_tier="high_priority")
    yield _mail(f"{stem}-outline")
    yield _event(f"{stem}-repeated", kind="deploy.done", text=f"{stem} is done")
    yield _mail(f"{stem}-thief", idempotency_key=f"{stem}-letter")._replace(honest=False)
    yield _mail(f"{stem}-chat", sender="mallory@example.com", idempotency_key=f"{stem}-forged")._replace(honest=False)


def _mail(name: str, sender: str = "ada@example.com", **control: str) -> Sent:
    full = control.get("ingestion_tier", "full") == "full"
    source = {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT}
    return _sent(name, source, {}, sender, {"subject": name} if full else None, f"Hello, this is {name}", control)


def _event(name: str, channel: str = "webhook", kind: str | None = None, text: str | None = None) -> Sent:
    source = {"channel": channel, "provider": channel, "endpoint_identity": "ci"}
    raw = {"name": name} if text is None else {}
    return _sent(name, source, {"kind": kind}, "ci", raw, text or f"event {name}", {})


def _sent(
    name: str,
    source: Mapping[str, str],
    event: Mapping[str, str | None],
    sender: str,
    raw: Mapping[str, str] | None,
    text: str,
    control: Mapping[str, str],
) -> Sent:
    return Sent(
        name,
        {
            "schema_version": "ingest.v1",
            "source": dict(source),
            "event": {"external_event_id": name, "observed_at": "2026-11-15T08:00:00Z", **event},
            "sender": {"identity": sender},
            "payload": {"raw": None if raw is None else dict(raw), "normalized_text": text},
            "control": dict(control),
        },
    )
