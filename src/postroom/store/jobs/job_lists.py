"""Jobs by stage, in pages by key, and how many there are of each: bounded, however many jobs there are.

A stage says more than a state: a queued job may be ready, wait for its time, wait for another attempt, or be parked
until a pause ends. Every list looks at a limited number of jobs, and says where the next page goes on.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from postroom.core.lifecycle import JobState
from postroom.core.views import Internal, Untrusted
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_rows

LiveStage = Literal["ready", "running", "scheduled", "retrying", "parked"]
EndStage = Literal["failed", "canceled", "completed"]
Stage = LiveStage | EndStage
LIVE: tuple[LiveStage, ...] = get_args(LiveStage)
STAGES: tuple[Stage, ...] = (*LIVE, *get_args(EndStage))
# How many jobs one page looks at to find those of a type, an account or an error.
LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in a list."""

    seq: Internal[int]
    id: UUID
    type: str
    state: JobState
    ready: Internal[bool]
    attempts: int
    max_attempts: int
    not_before: datetime | None
    last_error: Untrusted[str | None]
    created_at: datetime
    finished_at: datetime | None
    cancel_requested: bool
    parked_by: str | None


class ListedJobs(NamedTuple):
    """The jobs of a page, and the key of the next; None if there is nothing more to look at."""

    jobs: list[JobLine]
    before: str | None


class JobQuestion(NamedTuple):
    """Jobs in a stage, or in any; with a type, an account or a part of their last error, only those."""

    stage: Stage | None = None
    type: str | None = None
    account_id: UUID | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker process that may claim jobs, and how many it runs."""

    holder: str
    heartbeat_at: datetime
    lease_until: datetime
    running: int


@query
def list_by_stage(asked: JobQuestion, before: str | None, most: int) -> Script[ListedJobs]:
    """The jobs of a stage, newest first: by the time they ended if they failed or were canceled."""
    account = None if asked.account_id is None else str(asked.account_id)
    error = None if asked.error is None else f"%{literally(asked.error.lower())}%"
    matching = (asked.type, account, error)
    match asked.stage:
        case "failed" | "canceled":
            return (yield from _list_ended(asked.stage, matching, before, most))
        case None | "completed":
            return (yield from _list_newest(asked.stage, matching, before, most))
        case stage:
            return (yield from _list_live(stage, matching, before, most))


_Matching = tuple[str | None, str | None, str | None]


def _list_live(stage: LiveStage, matching: _Matching, before: str | None, most: int) -> Script[ListedJobs]:
    rows = yield sql("select_live_jobs", stage, *matching, _seq(before), LOOKED_AT, most)
    found = read_rows(JobLine, rows)
    if len(found) == most:
        return ListedJobs(found, str(found[-1].seq))
    rest = yield sql("select_live_rest", stage, _seq(before), LOOKED_AT)
    return ListedJobs(found, str(rest[0][0]) if rest else None)


def _list_ended(stage: str, matching: _Matching, before: str | None, most: int) -> Script[ListedJobs]:
    at, seq = _moment_and_seq(before)
    rows = yield sql("select_ended_jobs", stage, *matching, at, seq, LOOKED_AT, most)
    found = read_rows(JobLine, rows)
    if len(found) == most:
        return ListedJobs(found, f"{found[-1].finished_at:%Y-%m-%dT%H:%M:%S.%fZ}_{found[-1].seq}")
    rest = yield sql("select_ended_rest", stage, at, seq, LOOKED_AT)
    return ListedJobs(found, f"{as_time(rest[0][0]):%Y-%m-%dT%H:%M:%S.%fZ}_{rest[0][1]}" if rest else None)


def _list_newest(stage: str | None, matching: _Matching, before: str | None, most: int) -> Script[ListedJobs]:
    ((lowest, highest),) = yield sql("select_job_seqs")
    first = min(_seq(before), (highest or 0) + 1)
    last = max(first - LOOKED_AT, lowest or 0)
    found = read_rows(JobLine, (yield sql("select_newest_jobs", stage, *matching, first, last, most)))
    if len(found) == most:
        return ListedJobs(found, str(found[-1].seq))
    return ListedJobs(found, str(last) if last > (lowest or 0) else None)


@query
def count_stages(most: int) -> Script[dict[str, int]]:
    """How many jobs there are in each stage but `completed`; `most` of one means at least as many."""
    return {stage: count for stage, count in (yield sql("count_stages", most))}  # noqa: C416


@query
def list_workers() -> Script[list[WorkerView]]:
    """The worker processes with a lease, and how much each has claimed."""
    return read_rows(WorkerView, (yield sql("select_workers")))


LARGEST = 2**62
_FAR = datetime.fromisoformat("9999-01-01T00:00:00+00:00")


def _seq(before: str | None) -> int:
    return LARGEST if before is None else int(before)


def _moment_and_seq(before: str | None) -> tuple[datetime, int]:
    if before is None:
        return _FAR, LARGEST
    moment, _, seq = before.partition("_")
    return as_time(moment), int(seq)


def is_key(stage: Stage | None, text: str) -> bool:
    """Whether a page of this stage could begin after this key."""
    try:
        if stage in ("failed", "canceled"):
            moment, seq = _moment_and_seq(text)
            return moment.tzinfo is not None and 0 <= seq <= LARGEST
        return text.isascii() and text.isdecimal() and int(text) <= LARGEST
    except ValueError:
        return False


def literally(text: str) -> str:
    """A text in which LIKE finds no sign of its own; `|` is the escape sign."""
    return text.translate({ord(sign): f"|{sign}" for sign in "%_|"})
