"""The `ingest.gmail` job: has the connector of an account take in one message, whatever became of it before."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from postroom.core.errors import Fatal, Retryable
from postroom.handlers.asking import PATIENCE, AskingConnector
from postroom.handlers.payload import text_field, uuid_field
from postroom.jobs.run import JobRun
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database


class IngestGmail:
    """Asks, and ends as the message did. What is decided about it comes later, by `classify`."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        account_id, message_id = uuid_field(run.job, "account_id"), text_field(run.job, "message_id")
        answer = await self._asking.ask(account_id, "ingest", {"message_ids": [message_id]})
        end, reason = _end_of(message_id, answer)
        match end:
            case "new" | "duplicate" | "skipped":
                return
            case "gone":
                raise Fatal(f"message {message_id} is no longer in the mailbox: it was deleted there")
            case "refused":
                raise Fatal(f"message {message_id} was refused: {reason}; `postroom connector refused` lists it")
            case _:
                raise Retryable(f"message {message_id} could not be read: {reason or 'the answer does not name it'}")


def _end_of(message_id: str, answer: Mapping[str, Any]) -> tuple[str, str | None]:
    """The connector may be of another version, or somebody else's: what does not name the message tells nothing."""
    listed = answer.get("messages")
    for each in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            if fields.get("id") == message_id:
                reason = fields.get("reason")
                return str(fields.get("end")), None if reason is None else str(reason)[:200]
    return "missing", None
