"""Summaries: one event that an agent reads instead of many small ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.queue.envelope import Control, Envelope, Event, Payload, Sender, Source

LONGEST_SAMPLE = 200
MOST_KINDS = 20
SOURCE = Source(channel="mcp", provider="internal", endpoint_identity="postroom")


def summarise(
    id: UUID, kinds: Mapping[str | None, int], samples: Sequence[str], since: datetime, now: datetime
) -> Envelope:
    """One envelope for many events: the number of each kind, and the text of the first few."""
    total = sum(kinds.values())
    named: Counter[str] = Counter()
    for kind, count in list(kinds.items())[:MOST_KINDS]:
        named[kind or "event"] += count
    headline = f"{total} events: " + ", ".join(f"{count} × {kind}" for kind, count in named.items())
    lines = [f"- {_line(sample)}" for sample in samples]
    rest = [f"- and {total - len(samples)} more"] if total > len(samples) else []
    raw = {"kinds": dict(named), "total": total, "since": since.isoformat(), "until": now.isoformat()}
    return Envelope(
        schema_version="ingest.v1",
        source=SOURCE,
        event=Event(external_event_id=f"summary:{id}", observed_at=now, kind="summary"),
        sender=Sender(identity="postroom"),
        payload=Payload(raw=raw, normalized_text="\n".join([headline, *lines, *rest])),
        control=Control(),
    )


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_SAMPLE else words[:LONGEST_SAMPLE] + "…"
