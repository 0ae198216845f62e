"""The `ingest.gmail` job: ask an account's connector to ingest messages, whatever happened to them before."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

from postroom.core.errors import BadInput, Fatal, Retryable
from postroom.core.jobs.job import Job
from postroom.core.mail.mailbox_requests import message_ids
from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.asking import PATIENCE, AskingConnector
from postroom.triage.handlers.payload import text_field, uuid_field

MOST_NAMED = 10


class End(NamedTuple):
    """The connector's result for one message; `missing` if its answer does not name the message."""

    id: str
    end: str
    reason: str | None

    def in_words(self) -> str:
        match self.end:
            case "gone":
                return f"message {self.id} is no longer in the mailbox: it was deleted there"
            case "refused":
                return f"message {self.id} was refused: {self.reason}; `postroom connector refused` lists it"
            case _:
                return f"message {self.id} could not be read: {self.reason or 'the answer does not name it'}"


class IngestGmail:
    """Ask, and end as the messages did. `classify` decides about them later.

    The results for several messages are kept as a step of the job, one for each attempt. A further attempt asks for all
    of them again; those that are already stored only cost one read each.
    """

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        account_id, ids = uuid_field(run.job, "account_id"), _messages_of(run.job)

        async def ask() -> list[Sequence[Any]]:
            answer = await self._asking.ask(account_id, "ingest", {"message_ids": ids})
            return [[*_end_of(id, answer)] for id in ids]

        ends = await (ask() if len(ids) == 1 else run.step(f"asked, attempt {run.job.attempts}", ask))
        _end_as([End(*each) for each in ends])


def _messages_of(job: Job) -> list[str]:
    """One is named by `message_id`, several by `message_ids`."""
    if "message_ids" not in job.payload:
        return [text_field(job, "message_id")]
    try:
        return message_ids(job.payload["message_ids"])
    except BadInput as error:
        raise Fatal(f"the payload of {job.type} was enqueued wrongly: {error}") from None


def _end_as(ends: Sequence[End]) -> None:
    """Retry what failed for now first; then end with what failed for good."""
    done, lost = ("new", "duplicate", "skipped"), ("gone", "refused")
    if failed := [each for each in ends if each.end not in (*done, *lost)]:
        raise Retryable(_summary(failed, ends))
    if left_out := [each for each in ends if each.end in lost]:
        raise Fatal(_summary(left_out, ends))


def _summary(some: Sequence[End], ends: Sequence[End]) -> str:
    if len(ends) == 1:
        return some[0].in_words()
    more = f"; and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
    return f"{len(some)} of {len(ends)}: {'; '.join(each.in_words() for each in some[:MOST_NAMED])}{more}"


def _end_of(message_id: str, answer: Mapping[str, Any]) -> End:
    """Find one message's result. The connector may be another version or a third party's: it may not name the
    message."""
    listed = answer.get("messages")
    for each in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            if fields.get("id") == message_id:
                reason = fields.get("reason")
                return End(message_id, str(fields.get("end")), None if reason is None else str(reason)[:200])
    return End(message_id, "missing", None)
