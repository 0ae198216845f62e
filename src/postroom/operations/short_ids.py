"""How people name one thing by its id: the short one that lists show, or more of it."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.short_ids import DIGITS, FEWEST, PartOfId, digits_to_tell_apart, part_of_id, short_id
from postroom.operations.operation import Argument, FoundBy
from postroom.store.engine.database import Database
from postroom.store.short_ids import IdsOf, ids_of_part

MOST_SHOWN = 5
LONGEST_SHOWN = 80

Find = Callable[[Database, PartOfId], Awaitable[Sequence[UUID]]]


def found_by_id(noun: str, listing: str, of: IdsOf | Find) -> FoundBy:
    """Marks the id of such a thing: people may type its short id, as this command lists them."""
    article = "an" if noun[0] in "aeiou" else "a"

    async def find(database: Database, name: str) -> UUID:
        part = part_of_id(name)
        if part is None:
            remedy = f"give at least {FEWEST} digits of it, as `{listing}` shows it"
            raise BadInput("ID", f"{cut(name)!r} is not the id of {article} {noun}", remedy)
        if len(part.digits) == DIGITS:
            return UUID(part.digits)
        found = await (of(database, part) if callable(of) else database.run(ids_of_part(of, part)))
        if len(found) > 1:
            raise ambiguous("ID", name, found)
        if not found:
            remedy = f"`{listing}` lists them; with --json it shows whole ids, which are always found"
            raise NotFound(f"there is no {noun} {cut(name)!r}; {remedy}")
        return found[0]

    return FoundBy(find, Argument(f"The {noun}: its short id, or the whole one.", typed_as="ID"))


def ambiguous(field: str, name: str, ids: Sequence[UUID]) -> BadInput:
    return BadInput(field, f"{name!r} is part of {len(ids)} ids", f"give more of it: {ends(ids)}")


def ends(ids: Sequence[UUID]) -> str:
    """The ends of ids, as long as needed to tell them apart."""
    digits = digits_to_tell_apart(ids)
    shown = ", ".join(short_id(id, digits) for id in ids[:MOST_SHOWN])
    return shown if len(ids) <= MOST_SHOWN else f"{shown} and {len(ids) - MOST_SHOWN} more"


def cut(name: str) -> str:
    return name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 1]}…"
