"""Find the message or action that a person means by an id of any kind."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.tiers import message_ids
from postroom.core.short_ids import FEWEST, SHOWN, part_of_id, short_id
from postroom.operations.operation import Argument, FoundBy
from postroom.store.engine.database import Database
from postroom.store.mail.mail_ids import IdMatch, actions_of_part, messages_of_id, messages_of_name, messages_of_part

MOST_SHOWN = 5
LONGEST_NAME = 998
TYPED_ACTION = Argument("The action: its short id, or the whole one.", typed_as="ID")
MessageName = Annotated[
    str,
    Argument("An id of the message: ours, short or whole, Gmail's, or Message-ID.", most=LONGEST_NAME, typed_as="ID"),
]


async def find_message(database: Database, name: str, field: str = "ID") -> UUID:
    """The message with this short or whole id, Gmail id or Message-ID, or that an action, decision or job is about.

    Raise NotFound, or BadInput if several messages may be meant.
    """
    name = name.strip()
    if "\0" in name or not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(field, "is not the id of mail", "`postroom mail list` shows ids")
    part = part_of_id(name)
    found = await database.run(messages_of_id(UUID(part.digits))) if part and len(part.digits) == 32 else []
    found = found or await database.run(messages_of_name(name, _header_id(name)))
    if not found and part is not None:
        matches = await database.run(messages_of_part(part))
        found = list(dict.fromkeys(each.message_id for each in matches))
        if len(found) > 1:
            raise _ambiguous(field, name, matches)
    if len(found) > 1:
        raise BadInput(field, f"{name!r} is the id of {len(found)} messages", f"give one of {_ends(found)}")
    if not found:
        raise NotFound(f"there is no mail with the id {_cut(name)!r}; {_remedy(name)}")
    return found[0]


async def find_action(database: Database, name: str, field: str = "ID") -> UUID:
    """The action with this short or whole id. A whole id is returned without looking."""
    part = part_of_id(name)
    if part is None:
        remedy = f"give at least {FEWEST} digits of it, as `postroom actions list` shows it"
        raise BadInput(field, f"{_cut(name)!r} is not the id of an action", remedy)
    if len(part.digits) == 32:
        return UUID(part.digits)
    found = await database.run(actions_of_part(part))
    if len(found) > 1:
        raise _ambiguous(field, name, found)
    if not found:
        raise NotFound(f"there is no action {_cut(name)!r}; `postroom actions list` lists them")
    return found[0].id


ActionId = Annotated[UUID, Argument("The id of the action."), FoundBy(find_action, TYPED_ACTION)]


def _header_id(name: str) -> str:
    """The id as it stands in a Message-ID header."""
    return next(iter(message_ids(name)), name)


def _remedy(name: str) -> str:
    if all(each in "0123456789abcdefABCDEF-" for each in name) and len(name) < FEWEST:
        return f"give at least {FEWEST} digits; `postroom mail list` shows ids"
    return "`postroom mail list` and `postroom mail search WORDS` show ids"


def _ambiguous(field: str, name: str, matches: Sequence[IdMatch]) -> BadInput:
    ids = list(dict.fromkeys(each.id for each in matches))
    return BadInput(field, f"{name!r} is part of {len(ids)} ids", f"give more of it: {_ends(ids)}")


def _ends(ids: Sequence[UUID]) -> str:
    """The ends of ids, as long as needed to tell them apart."""
    digits = next((count for count in (SHOWN, 12, 16) if len({short_id(id, count) for id in ids}) == len(ids)), 32)
    shown = ", ".join(short_id(id, digits) for id in ids[:MOST_SHOWN])
    return shown if len(ids) <= MOST_SHOWN else f"{shown} and {len(ids) - MOST_SHOWN} more"


def _cut(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"
