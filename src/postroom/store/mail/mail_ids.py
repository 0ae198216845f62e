"""The messages and actions that an id of any kind means."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.short_ids import PartOfId
from postroom.store.engine.codecs import as_uuid, from_json
from postroom.store.engine.database import Rows, Script, query, sql
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.jobs import show_job
from postroom.store.short_ids import MOST_MATCHES, NO_ID

# The members of a job's payload that lead to its message.
_ABOUT = ("message_id", "action_id", "original_action_id")


class IdMatch(NamedTuple):
    """A message or an action whose id was meant, with its message."""

    id: UUID
    message_id: UUID


@query
def messages_of_id(id: UUID) -> Script[list[UUID]]:
    """The message with this id, or the one that the action, decision, envelope or job with this id is about."""
    if found := _ids((yield sql("select_messages_of_id", id))):
        return found
    job = yield from show_job.script(id)
    payload: Mapping[str, Any] = {} if job is None else from_json(job.payload_json)
    for name in _ABOUT:
        if isinstance(about := payload.get(name), str):
            return (yield from _named_by_job(about))
    return []


def _named_by_job(about: str) -> Script[list[UUID]]:
    """The messages of an id in a job's payload: one of ours, or, where mail is fetched, the mailbox's own."""
    try:
        id = UUID(about)
    except ValueError:
        return (yield from messages_of_name.script(about, about))
    return _ids((yield sql("select_messages_of_id", id)))


@query
def messages_of_name(provider_message_id: str, header_id: str) -> Script[list[UUID]]:
    """The messages with this id in their mailbox, or with this Message-ID."""
    return _ids((yield sql("select_messages_of_name", provider_message_id, header_id)))


@query
def messages_of_part(part: PartOfId) -> Script[list[IdMatch]]:
    """The messages whose id has this part; without any, the actions whose id has it."""
    low, high = part.whole or (NO_ID, NO_ID)
    found = _fitting(part, (yield sql("select_messages_of_part", *part.ends, low, high, MOST_MATCHES)))
    return found or (yield from actions_of_part.script(part))


@query
def actions_of_part(part: PartOfId) -> Script[list[IdMatch]]:
    """The actions whose id has this part."""
    low, high = part.whole or (NO_ID, NO_ID)
    return _fitting(part, (yield sql("select_actions_of_part", *part.ends, low, high, MOST_MATCHES)))


def _ids(rows: Rows) -> list[UUID]:
    return [as_uuid(id) for (id,) in rows]


def _fitting(part: PartOfId, rows: Rows) -> list[IdMatch]:
    return [each for each in read_rows(IdMatch, rows) if part.fits(each.id)]
