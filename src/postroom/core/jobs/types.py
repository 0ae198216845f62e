"""The job types of Postroom as data: how often each is tried, and how long its idempotency key holds.

The engine in `postroom.jobs` knows none of them; it is given a catalogue.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from postroom.core.errors import BadInput, UnknownJobType
from postroom.core.jobs import retry
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.suggestions import did_you_mean

PRIORITIES = range(-1000, 1001)
LONGEST_KEY = 512
MOST_ATTEMPTS = 1000


class KeyLifetime(Enum):
    """How long an idempotency key prevents a second job."""

    FOR_GOOD = "for_good"
    WHILE_LIVE = "while_live"


@dataclass(frozen=True, slots=True)
class JobType:
    """One job type, as far as the engine knows it."""

    name: str
    key_lifetime: KeyLifetime = KeyLifetime.FOR_GOOD
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: timedelta | None = None


class Catalogue(Mapping[str, JobType]):
    """The job types that a process knows. Looking up an unknown one suggests the nearest."""

    def __init__(self, *types: JobType) -> None:
        self._types = {each.name: each for each in types}

    def __getitem__(self, name: str) -> JobType:
        try:
            return self._types[name]
        except KeyError:
            raise UnknownJobType("type", f"there is no job type {name!r}", self._remedy(name)) from None

    def retry_policy(self, name: str) -> RetryPolicy:
        """The retry policy of a job type; the default one for a type that this process does not know."""
        return self._types[name].retry if name in self._types else retry.DEFAULT

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def _remedy(self, name: str) -> str:
        return did_you_mean(str(name), self._types, f"known are: {', '.join(sorted(self._types))}")


# In the payload of a job that waits: the time was given as an amount, such as two hours.
BY_AMOUNT = "by_amount"

INGEST_GMAIL = JobType("ingest.gmail", retry=retry.GMAIL)
CLASSIFY = JobType("classify", retry=retry.CLASSIFY)
ACTION_GMAIL = JobType("action.gmail", retry=retry.GMAIL)
UNSNOOZE_GMAIL = JobType("unsnooze.gmail", retry=retry.WAKING)
APPROVAL_NOTIFY = JobType("approval.notify", retry=retry.GMAIL)
UNDO_ACTION = JobType("undo.action", KeyLifetime.WHILE_LIVE, retry.GMAIL)
OUTBOUND_SEND = JobType("outbound.send", retry=retry.GMAIL)
BACKFILL_GMAIL = JobType("backfill.gmail", KeyLifetime.WHILE_LIVE, retry.GMAIL)
HISTORY_SYNC_GMAIL = JobType("history.sync.gmail", KeyLifetime.WHILE_LIVE, retry.GMAIL)
LABELS_SYNC_GMAIL = JobType("labels.sync.gmail", KeyLifetime.WHILE_LIVE, retry.GMAIL)
SENDER_NOTIFY = JobType("sender.notify", retry=retry.GMAIL)
RETENTION_PRUNE = JobType("retention.prune", KeyLifetime.WHILE_LIVE)

CATALOGUE = Catalogue(
    INGEST_GMAIL,
    CLASSIFY,
    ACTION_GMAIL,
    UNSNOOZE_GMAIL,
    APPROVAL_NOTIFY,
    UNDO_ACTION,
    OUTBOUND_SEND,
    BACKFILL_GMAIL,
    HISTORY_SYNC_GMAIL,
    LABELS_SYNC_GMAIL,
    SENDER_NOTIFY,
    RETENTION_PRUNE,
)


def is_counted_wait(type: str, payload: Mapping[str, Any]) -> bool:
    """Whether a job that was not tried yet waits for a time that was counted from when it was enqueued.

    Otherwise a person may have chosen the time, as that of a snooze until nine.
    """
    return type == APPROVAL_NOTIFY.name or bool(payload.get(BY_AMOUNT))


def check_priority(priority: object) -> None:
    if type(priority) is not int or priority not in PRIORITIES:
        lowest, highest = PRIORITIES[0], PRIORITIES[-1]
        raise BadInput("priority", f"{priority!r} is out of range", f"use a whole number from {lowest} to {highest}")


def check_attempts(attempts: object) -> None:
    if type(attempts) is not int or not 1 <= attempts <= MOST_ATTEMPTS:
        raise BadInput("max_attempts", f"{attempts!r} is out of range", f"use a whole number from 1 to {MOST_ATTEMPTS}")


def check_text(field: str, text: str) -> None:
    """Check a text that is to be stored: its length is bounded, and both databases can hold it."""
    if not text or len(text) > LONGEST_KEY:
        raise BadInput(field, f"has {len(text)} characters", f"use 1 to {LONGEST_KEY}; hash longer ones")
    if "\0" in text:
        raise BadInput(field, "contains a NUL character", "leave it out")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise BadInput(field, "contains half a character (a lone surrogate)", "leave it out")
