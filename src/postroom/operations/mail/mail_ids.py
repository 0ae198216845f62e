"""Find the message or action that a person means by an id of any kind."""

from typing import Annotated
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.tiers import message_ids
from postroom.core.short_ids import FEWEST, PartOfId, part_of_id
from postroom.operations.operation import Argument, FoundBy
from postroom.operations.short_ids import ambiguous, cut, ends, found_by_id
from postroom.store.engine.database import Database
from postroom.store.mail.mail_ids import actions_of_part, messages_of_id, messages_of_name, messages_of_part

LONGEST_NAME = 998
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
            raise ambiguous(field, name, list(dict.fromkeys(each.id for each in matches)))
    if len(found) > 1:
        raise BadInput(field, f"{name!r} is the id of {len(found)} messages", f"give one of {ends(found)}")
    if not found:
        raise NotFound(f"there is no mail with the id {cut(name)!r}; {_remedy(name)}")
    return found[0]


async def _actions(database: Database, part: PartOfId) -> list[UUID]:
    return [each.id for each in await database.run(actions_of_part(part))]


ACTION = found_by_id("action", "postroom actions list", _actions)
ActionId = Annotated[UUID, Argument("The id of the action."), ACTION]
find_action = ACTION.find


def message_typed_as(typed_as: str, description: str = "The message: its short id, or any other.") -> FoundBy:
    """Marks the id of a message, which people may type as one of any kind."""
    return FoundBy(find_message, Argument(description, typed_as=typed_as))


def _header_id(name: str) -> str:
    """The id as it stands in a Message-ID header."""
    return next(iter(message_ids(name)), name)


def _remedy(name: str) -> str:
    if all(each in "0123456789abcdefABCDEF-" for each in name) and len(name) < FEWEST:
        return f"give at least {FEWEST} digits; `postroom mail list` shows ids"
    return "`postroom mail list` and `postroom mail search WORDS` show ids"
