"""Job engine verbs.

    enqueue_many ──► queued ──claim──► running ──finish──► completed
                       ▲  ▲               │ │
        wake_due ──────┘  └── retry_later ┘ ├──fail────────► failed      park: back to queued, asleep until unpark
        rescue, release                     └──cancel_claimed► canceled

Every verb that changes claimed work takes the claim (`seq`, `attempts`, lease token) and returns whether it was still
ours: a worker presumed dead changes nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import IllegalMove, LeaseLost, NotFound, StoreError
from postroom.core.jobs.job import Claim, Enqueued, Job, JobView, NewJob
from postroom.core.lifecycle import JOB
from postroom.store.engine.clock_jumps import SLACK
from postroom.store.engine.codecs import as_optional_time, as_uuid, from_json, rows_text
from postroom.store.engine.database import Notify, Rows, Script, Single, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs.job_steps import record_events, steps_of

CHANNEL = "jobs"
# Jobs that wait for the end of a pause are parked under this prefix and its scope.
PAUSE = "pause:"
_KEY_ROUNDS = 10


def _wake(*priorities: int) -> Notify:
    return Notify(CHANNEL, str(max(priorities)))


@transaction
def enqueue_many(jobs: Sequence[NewJob], now: datetime) -> Script[list[Enqueued]]:
    """Accept the jobs whose keys are free; answer for all of them, in order."""
    owners = yield from _take_keys({job.key: job.id for job in reversed(jobs) if job.key is not None})
    fresh = [job for job in jobs if job.key is None or owners[job.key] == job.id]
    ready = [job.not_before is None or job.not_before <= now for job in fresh]
    if fresh:
        yield sql("insert_jobs", _rows(fresh, ready), now)
    if any(ready):
        yield _wake(*(job.priority for job, is_ready in zip(fresh, ready, strict=True) if is_ready))
    if not all(ready):
        yield Notify("scheduler", "sleeping")
    return [Enqueued(owners.get(job.key, job.id), owners.get(job.key, job.id) != job.id) for job in jobs]


@transaction
def enqueue_plain(jobs: Sequence[NewJob], now: datetime) -> Script[list[Enqueued]]:
    """The same for jobs without keys that are ready at once: one statement, and so one round trip."""
    yield Single(sql("insert_jobs", _rows(jobs, [True] * len(jobs)), now), _wake(*(job.priority for job in jobs)))
    return [Enqueued(job.id, duplicate=False) for job in jobs]


def _rows(jobs: Sequence[NewJob], ready: Sequence[bool]) -> str:
    return rows_text([(*job, is_ready) for job, is_ready in zip(jobs, ready, strict=True)])


def _take_keys(wanted: dict[str, UUID]) -> Script[dict[str | None, UUID]]:
    """Take the keys; return the owner of each: the wanted job, or the one that had it first.

    Keys are taken in order, so that two callers cannot deadlock. A key that is refused and then found free has just
    been released: ask again.
    """
    owners: dict[str | None, UUID] = {}
    for _ in range(_KEY_ROUNDS):
        open_keys = sorted(key for key in wanted if key not in owners)
        if not open_keys:
            return owners
        taken = yield sql("take_keys", rows_text([(key, wanted[key]) for key in open_keys]))
        owners.update((key, wanted[key]) for (key,) in taken)
        refused = [key for key in open_keys if key not in owners]
        if refused:
            held = yield sql("select_keys", refused)
            owners.update((key, as_uuid(job_id)) for key, job_id in held)
    raise StoreError(f"keys were taken and released {_KEY_ROUNDS} times while we asked for them; try again")


@transaction
def open_lease(token: UUID, holder: str, now: datetime, until: datetime) -> Script[None]:
    """Register a worker process; without a lease it can claim nothing."""
    yield sql("insert_lease", token, holder, until, now)


class HeartbeatReply(NamedTuple):
    """The answer to a heartbeat: whether the lease still holds, and which running jobs to cancel."""

    alive: bool
    canceled: frozenset[int]


@transaction
def heartbeat(token: UUID, now: datetime, until: datetime, running: Sequence[int]) -> Script[HeartbeatReply]:
    """Renew the lease of everything the worker has claimed."""
    alive = yield sql("renew_lease", token, until, now)
    canceled = Rows()
    if alive and running:
        canceled = yield sql("select_cancel_requests", list(running), token)
    return HeartbeatReply(bool(alive), frozenset(seq for (seq,) in canceled))


@transaction
def close_lease(token: UUID, now: datetime) -> Script[None]:
    """Close a worker's lease: what it still holds goes back to the queue as if it had died."""
    yield from _take_over(token, "the worker that had claimed it", now)


@transaction
def claim(token: UUID, most: int, now: datetime) -> Script[list[Job]]:
    """Claim the next jobs for this lease, the most urgent first. Empty if the lease is lost."""
    rows = yield sql("claim_jobs", token, now, most)
    return [
        Job(seq, as_uuid(id), type, from_json(payload), priority, attempts, most_attempts, bool(releases), trace, token)
        for seq, id, type, payload, priority, attempts, most_attempts, releases, trace in rows
    ]


@transaction
def finish(claims: Sequence[Claim], releasing: Sequence[int], now: datetime) -> Script[set[int]]:
    """Complete the claimed jobs; return the seqs that were still ours. `releasing` are those whose keys end too."""
    done: set[int] = set()
    for (token, attempts), seqs in _alike(claims).items():
        rows = yield sql("complete_jobs", seqs, attempts, token, now)
        done.update(seq for (seq,) in rows)
    if freed := [seq for seq in releasing if seq in done]:
        yield sql("release_keys", freed)
    return done


def completing_one(job: Job, now: datetime) -> Script[None]:
    """Part of a handler's last transaction: commit its effects and the end of its job together. Raises if not ours."""
    done = yield from finish.script([job.claim], [job.seq] if job.releases_key else [], now)
    if not done:
        raise LeaseLost(f"job {job.id} was taken over by another worker; attempt {job.attempts} changes nothing")


@transaction
def fail(job: Job, error: str, now: datetime) -> Script[bool]:
    """End the job as failed, with the reason."""
    return (yield from _end(job, "failed", error, now))


@transaction
def cancel_claimed(job: Job, now: datetime) -> Script[bool]:
    """End a running job as canceled, once its handler has seen the request."""
    return (yield from _end(job, "canceled", None, now))


def _end(job: Job, state: str, error: str | None, now: datetime) -> Script[bool]:
    rows = yield sql("end_job", *job.claim, state, error, now)
    if rows and job.releases_key:
        yield sql("release_keys", [job.seq])
    if rows:
        yield Notify("job_ends", state)
    return bool(rows)


@transaction
def retry_later(claim: Claim, not_before: datetime, error: str, now: datetime) -> Script[bool]:
    """Return the job to the queue after a failed attempt, asleep until `not_before`. Refused after the last attempt."""
    rows = yield sql("retry_job_later", *claim, not_before, error, now)
    yield from _cancel_if_asked(rows, now)
    yield Notify("scheduler", "sleeping")
    return bool(rows)


def _cancel_if_asked(rows: Sequence[Sequence[Any]], now: datetime) -> Script[None]:
    """Cancel a job that was to be canceled while it ran and is queued again. Rows end with the request."""
    for seq, *_, cancel_requested in rows:
        if cancel_requested:
            yield sql("cancel_queued_job", seq, now)
            yield sql("release_keys", [seq])


@transaction
def park(claim: Claim, key: str, reason: str, now: datetime, until: datetime | None = None) -> Script[bool]:
    """Return the job to the queue without using an attempt, asleep until `unpark(key)`, or `until` if given.

    If the account became usable or the pause ended after the handler looked, the jobs were released before this one
    could be parked, so it is not. With `until` the account is usable, and something else is amiss.
    """
    released = until is None and (yield from _has_been_released(key))
    rows = yield sql("park_job", *claim, key, reason, until, now)
    yield from _cancel_if_asked(rows, now)
    if rows and released:
        yield from _made_claimable((yield sql("unpark_jobs", key, now)))
    if until is not None:
        yield Notify("scheduler", "sleeping")
    return bool(rows)


def _has_been_released(key: str) -> Script[bool]:
    """Return whether the awaited condition is already met. If it is met later, the job is found under the key."""
    if key.startswith(PAUSE):
        return not (yield sql("lock_pause", key.removeprefix(PAUSE)))
    return any(state == "active" for (state,) in (yield sql("lock_parking", key)))


@transaction
def unpark(key: str, now: datetime) -> Script[int]:
    """Make everything parked under the key claimable."""
    rows = yield sql("unpark_jobs", key, now)
    return (yield from _made_claimable(rows))


@transaction
def release(claims: Sequence[Claim], now: datetime) -> Script[int]:
    """Give back claimed jobs that were never started; the attempt does not count."""
    released: list[Sequence[Any]] = []
    for (token, attempts), seqs in _alike(claims).items():
        released += yield sql("release_jobs", seqs, attempts, token, now)
    yield from _cancel_if_asked(released, now)
    yield from _made_claimable([row[:2] for row in released if not row[2]])
    return len(released)


@transaction
def disown(token: UUID, known: Sequence[int], now: datetime) -> Script[int]:
    """Give back jobs that are under the lease but unknown to its owner; no attempt was made."""
    rows = yield sql("disown_jobs", token, list(known), now)
    yield from _cancel_if_asked(rows, now)
    return (yield from _made_claimable([row[:2] for row in rows if not row[2]]))


def _alike(claims: Sequence[Claim]) -> dict[tuple[UUID, int], list[int]]:
    """Group claims by lease and attempt, so that one statement serves each group."""
    groups: dict[tuple[UUID, int], list[int]] = {}
    for seq, attempts, token in claims:
        groups.setdefault((token, attempts), []).append(seq)
    return groups


def _made_claimable(rows: Sequence[Sequence[Any]]) -> Script[int]:
    """Note that old jobs can be claimed again: rewind the marks, and wake a claimer."""
    if rows:
        yield sql("rewind_marks", rows_text([(seq, priority) for seq, priority in rows]))
        yield _wake(*(priority for _, priority in rows))
    return len(rows)


@query
def any_lease_over(now: datetime) -> Script[bool]:
    """Whether a worker's lease has ended, or was renewed at a time yet to come."""
    return bool((yield sql("select_lease_over", now, now + SLACK)))


@transaction
def cancel_job(id: UUID, now: datetime) -> Script[str]:
    """Cancel a queued job at once (`canceled`), a running one at its next step (`requested`)."""
    seq, state, _, _, releases_key, _ = yield from _lock(id)
    if (yield sql("cancel_queued_job", seq, now)):
        if releases_key:
            yield sql("release_keys", [seq])
        return "canceled"
    if (yield sql("request_cancel", seq, now)):
        return "requested"
    if state == "failed":
        raise IllegalMove(
            f"job {id}: a job is failed and cannot become canceled by this; `postroom jobs dismiss` does it"
        )
    JOB.check(state, "canceled")
    raise IllegalMove(f"job {id} has just ended and cannot be canceled")


@transaction
def retry_job(id: UUID, now: datetime) -> Script[None]:
    """Queue a failed or canceled job again with all its attempts; make a sleeping one due at once."""
    seq, state, _, key, releases_key, _ = yield from _lock(id)
    if state == "queued":
        yield from _made_claimable((yield sql("hasten_job", seq, now)))
        return
    JOB.check(state, "queued")
    if state == "running":
        raise IllegalMove(f"job {id} is running; wait for its end, or cancel it first")
    if releases_key and key is not None and not (yield sql("take_keys", rows_text([(key, id)]))):
        raise IllegalMove(f"job {id} cannot be retried: another live job holds its key {key!r}; wait for that one")
    revived = yield sql("revive_job", seq, now)
    yield from _made_claimable(revived)
    yield from record_events("retried", [(id, 0, {"by": "user"})], now)


def _lock(id: UUID) -> Script[Sequence[Any]]:
    rows = yield sql("lock_job", id)
    if not rows:
        raise NotFound(f"there is no job {id}; see `postroom jobs list`")
    return rows[0]


def hastening(id: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: make a sleeping job due at once; one that runs or has ended stays as it is."""
    seq, state, *_ = yield from _lock(id)
    if state == "queued":
        yield from _made_claimable((yield sql("hasten_job", seq, now)))


@transaction
def wake_due(now: datetime, most: int) -> Script[int]:
    """Make due sleeping jobs claimable, the longest due first."""
    rows = yield sql("wake_due_jobs", now, most)
    return (yield from _made_claimable(rows))


@query
def next_due() -> Script[datetime | None]:
    """When the next sleeping job is due."""
    rows = yield sql("select_next_due")
    return as_optional_time(rows[0][0])


class Rescue(NamedTuple):
    """The result of one round of the rescuer."""

    workers: int
    requeued: int
    ended: int


@transaction
def rescue(now: datetime) -> Script[Rescue]:
    """Take over the jobs of one worker whose lease has run out; zero workers means there was none."""
    dead = yield sql("lock_dead_lease", now)
    if not dead:
        return Rescue(0, 0, 0)
    ((token, holder),) = dead
    requeued, ended = yield from _take_over(as_uuid(token), holder, now)
    return Rescue(1, requeued, ended)


def _take_over(token: UUID, holder: str, now: datetime) -> Script[tuple[int, int]]:
    """Take over a worker's jobs. The lease first: from then on its owner can neither claim nor renew."""
    yield sql("delete_lease", token)
    ended = yield sql("end_dead_jobs", token, now)
    if ended:
        yield sql("release_keys", [seq for seq, *_ in ended])
    requeued = yield sql("requeue_dead_jobs", token, now)
    rescued = [(as_uuid(id), attempts, state) for _, id, attempts, state in ended]
    rescued += [(as_uuid(id), attempts, "queued") for _, _, id, attempts in requeued]
    yield from record_events(
        "rescued", [(id, attempt, {"worker": holder, "outcome": outcome}) for id, attempt, outcome in rescued], now
    )
    yield from _made_claimable([(seq, priority) for seq, priority, *_ in requeued])
    return len(requeued), len(ended)


@transaction
def prune(state: str, before: datetime, most: int) -> Script[int]:
    """Delete jobs that ended before then. Keys that are permanent stay taken."""
    rows = yield sql("prune_jobs", state, before, most)
    if rows:
        yield sql("delete_pruned", [seq for seq, _ in rows], [as_uuid(id) for _, id in rows])
    return len(rows)


@transaction
def prune_receipts(before: datetime) -> Script[None]:
    """Delete receipts of writes whose outcome can no longer be in doubt."""
    yield sql("prune_receipts", before)


@query
def list_jobs(state: str | None = None, type: str | None = None, limit: int = 50) -> Script[list[JobView]]:
    """The newest jobs, newest first."""
    rows = yield sql("list_jobs", state, type, limit)
    return read_rows(JobView, rows)


@query
def show_job(id: UUID) -> Script[JobView | None]:
    """One job with its steps."""
    rows = yield sql("show_job", id)
    if not rows:
        return None
    return read_first(JobView, rows, steps=(yield from steps_of.script(id)))


@query
def active_among(ids: Sequence[UUID]) -> Script[set[UUID]]:
    """The jobs among these that run or could run now, not those that ended, sleep or are parked."""
    rows = yield sql("select_active_jobs", list(ids))
    return {as_uuid(id) for (id,) in rows}


@query
def count_failed_jobs(most: int) -> Script[int]:
    """The number of failed jobs, `most` at the highest."""
    rows = yield sql("count_failed_jobs", most)
    return rows[0][0]


@query
def count_jobs() -> Script[dict[str, int]]:
    """The number of jobs in each state."""
    rows = yield sql("count_jobs")
    return {row[0]: row[1] for row in rows}
