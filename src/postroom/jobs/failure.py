"""How a job whose handler raised ends: canceled, parked, retried later, or failed."""

from datetime import datetime
from random import Random
from typing import Literal, NamedTuple

from postroom.core.errors import Canceled, Fatal, JobError, Parked, Retryable
from postroom.core.jobs.job import Job
from postroom.core.jobs.retry import RetryPolicy, next_delay
from postroom.store.engine.database import Transaction
from postroom.store.jobs import jobs as store

LONGEST_ERROR = 2000


class Ending(NamedTuple):
    """The outcome as it is counted, and the transaction that records it."""

    outcome: Literal["canceled", "parked", "failed", "retried"]
    transaction: Transaction[bool]


def ending_of(job: Job, error: Exception, policy: RetryPolicy, rng: Random, now: datetime) -> Ending:
    """Choose how the job ends. An unexpected error is retried like a Retryable one."""
    text = error_text(error)
    match error:
        case Canceled():
            return Ending("canceled", store.cancel_claimed(job, now))
        case Parked():
            until = None if error.after is None else now + error.after
            return Ending("parked", store.park(job.claim, error.key, text, now, until))
        case Fatal():
            return Ending("failed", store.fail(job, text, now))
        case _ if job.is_last_attempt:
            return Ending("failed", store.fail(job, text, now))
        case _:
            after = error.after if isinstance(error, Retryable) else None
            not_before = now + next_delay(policy, job.attempts, after, rng)
            return Ending("retried", store.retry_later(job.claim, not_before, text, now))


def error_text(error: Exception) -> str:
    """The error as it is stored with the job: of bounded length, and storable in both databases."""
    text = str(error) or type(error).__name__
    if not isinstance(error, JobError):
        text = f"{type(error).__name__}: {text}"
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:LONGEST_ERROR]
