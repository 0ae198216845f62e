"""How much each sender had accepted, delivered, bounced and rejected, by hour; and the scores that follow from it.

Counts are written in the transaction of what they count. Every recipient counts as a message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.core.outbound.abuse import HISTORY_DAYS, WINDOW, Activity, Score
from postroom.core.outbound.limits import day_of
from postroom.core.outbound.priority import Throttle
from postroom.store.engine.codecs import as_time, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.installation.rollups import hour_of

KEEP = timedelta(days=HISTORY_DAYS + 7)
MOST_DETECTIONS = 1000


class SenderCount(NamedTuple):
    """Messages of one sender that were accepted, or have ended."""

    sender_id: int
    accepted: int = 0
    delivered: int = 0
    bounced: int = 0
    rejected: int = 0


def counting(counts: Iterable[SenderCount], now: datetime) -> Script[None]:
    """Part of a transaction: add the counts to the hour. Senders are sorted, so that two callers cannot deadlock."""
    sums: dict[int, tuple[int, ...]] = {}
    for sender_id, *numbers in counts:
        before = sums.get(sender_id, (0,) * len(numbers))
        sums[sender_id] = tuple(map(sum, zip(before, numbers, strict=True)))
    if sums:
        rows = [(sender_id, *numbers) for sender_id, numbers in sorted(sums.items())]
        yield sql("add_sender_hours", rows_text(rows), hour_of(now), now)


def next_hour(now: datetime) -> datetime:
    return hour_of(now) + timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ScoredSender:
    """A sender whose score may have changed, with the counts of the last day."""

    id: int
    username: str
    tenant: str
    abuse_score: int
    created_at: datetime
    throttle: Throttle | None
    first_accepted_at: datetime | None
    accepted: int
    delivered: int
    bounced: int
    rejected: int
    active_since: datetime | None
    """When the first of the messages that were counted was counted."""
    failing_since: datetime | None
    """When the first of them bounced or was rejected."""
    history: int

    def activity(self, now: datetime) -> Activity:
        days = 0
        if self.first_accepted_at is not None:
            days = ((now - WINDOW).date() - self.first_accepted_at.date()).days
        counts = (self.accepted, self.delivered, self.bounced, self.rejected)
        return Activity(self.created_at, *counts, self.history, max(0, min(days, HISTORY_DAYS)))

    def first_sign(self, score: Score) -> datetime | None:
        """When the first sign of what the score is for was seen."""
        return self.failing_since if score.is_for_failures else self.active_since


@query
def scored_senders(since: datetime, after_id: int, most: int, now: datetime) -> Script[list[ScoredSender]]:
    """Senders with counts since the hour of `since`, and all with a score or a throttle; by id, after `after_id`."""
    start = now - WINDOW
    first_day = day_of(start - timedelta(days=HISTORY_DAYS))
    rows = yield sql("select_scored_senders", start, hour_of(since), first_day, day_of(start), after_id, most)
    return read_rows(ScoredSender, rows)


@transaction
def record_scores(scores: Sequence[tuple[int, int]]) -> Script[None]:
    """Store the scores by the senders' ids."""
    yield sql("record_scores", rows_text(sorted(scores)))


@transaction
def prune_sender_counts(now: datetime) -> Script[None]:
    """Forget counts that are too old to matter."""
    yield sql("prune_sender_counts", hour_of(now - KEEP), day_of(now - KEEP))


class ThrottleFigures(NamedTuple):
    """How the detection of abuse works. `waiting` and `draining` are senders now; the rest is since a time."""

    waiting: int
    draining: int
    throttled: int
    released_by_hand: int
    detection_s: tuple[float, ...]
    """Seconds from the first sign of what led to a throttle to the throttle, newest first."""


@query
def throttle_figures(since: datetime, now: datetime) -> Script[ThrottleFigures]:
    """How many senders were throttled for their score, and how many of them a person has released."""
    detections = yield sql("select_detections", since, MOST_DETECTIONS)
    spans = tuple((as_time(started) - as_time(active)).total_seconds() for active, started in detections)
    rows = yield sql("select_throttle_figures", since, now)
    return read_rows(ThrottleFigures, rows, detection_s=spans)[0]
