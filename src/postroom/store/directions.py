"""The verbs of directions: what the model is told about the user's wishes in general."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.rule import BrokenRule, read_scope
from postroom.store.audit import Signature, auditing
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows

LONGEST_CONTENT = 4_000
MOST_DIRECTIONS = 200
SCOPES = ("global", "account")
POSITIONS = range(-1_000_000, 1_000_001)


@dataclass(frozen=True, slots=True)
class Direction:
    """One wish, in words; for all mail, or for that of one account."""

    content: str
    scope: str = "global"
    scope_ref: str | None = None
    position: int = 0
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class DirectionView:
    """A direction as it is kept. `updated_at` tells whether it was changed meanwhile."""

    id: UUID
    content: str
    scope: str
    scope_ref: str | None
    position: int
    enabled: bool
    created_at: datetime
    updated_at: datetime

    @property
    def direction(self) -> Direction:
        return Direction(self.content, self.scope, self.scope_ref, self.position, self.enabled)


@transaction
def add_direction(id: UUID, direction: Direction, signed: Signature, now: datetime) -> Script[DirectionView]:
    direction = _checked(direction)
    if len((yield sql("select_directions"))) >= MOST_DIRECTIONS:
        raise BadInput("directions", f"are {MOST_DIRECTIONS} already", "join some, or remove some")
    yield sql("insert_direction", id, *_values(direction), now)
    yield from auditing(signed.under("directions.add", "direction", str(id), after=asdict(direction)), now)
    return (yield from _with_id(id))


@transaction
def edit_direction(before: DirectionView, after: Direction, signed: Signature, now: datetime) -> Script[DirectionView]:
    """Puts it in the place of the other, if that is still as it was seen."""
    after = _checked(after)
    if not (yield sql("update_direction", before.id, before.updated_at, *_values(after), now)):
        yield from _with_id(before.id)
        raise Conflict("direction", "it was changed meanwhile", "look at `postroom directions list`, and try again")
    entry = signed.under(
        "directions.edit", "direction", str(before.id), before=asdict(before.direction), after=asdict(after)
    )
    yield from auditing(entry, now)
    return (yield from _with_id(before.id))


@transaction
def remove_direction(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    before = yield from _with_id(id)
    yield sql("delete_direction", id)
    yield from auditing(signed.under("directions.remove", "direction", str(id), before=asdict(before.direction)), now)


@query
def list_directions() -> Script[list[DirectionView]]:
    """Every direction, in its order."""
    rows = yield sql("select_directions")
    return read_rows(DirectionView, rows)


@query
def enabled_directions(account_id: UUID) -> Script[list[DirectionView]]:
    """What the model is told with mail of this account, in its order."""
    rows = yield sql("select_enabled_directions", str(account_id))
    return read_rows(DirectionView, rows)


def _with_id(id: UUID) -> Script[DirectionView]:
    rows = yield sql("select_directions")
    found = next((view for view in read_rows(DirectionView, rows) if view.id == id), None)
    if found is None:
        raise NotFound(f"there is no direction {id}; `postroom directions list` shows those there are")
    return found


def _values(direction: Direction) -> tuple[object, ...]:
    return direction.scope, direction.scope_ref, direction.position, direction.content, direction.enabled


def _checked(direction: Direction) -> Direction:
    """With the account, if it is for one, as it is compared."""
    check_words("content", direction.content, LONGEST_CONTENT)
    ref = checked_place(direction.scope, direction.scope_ref, direction.position, SCOPES)
    return replace(direction, scope_ref=ref)


def check_words(field: str, text: str, longest: int) -> None:
    """Text for the model: some, not too much, and such as both databases hold."""
    storable = "\0" not in text and text.encode("utf-8", "ignore").decode() == text
    if not text.strip() or len(text) > longest or not storable:
        raise BadInput(field, "is empty, too long, or no plain text", f"give up to {longest:,} characters")


def checked_place(scope: str, scope_ref: str | None, position: int, scopes: Sequence[str]) -> str | None:
    """What the scope is about, in the form in which that is compared."""
    if scope not in scopes:
        raise BadInput("scope", f"{scope!r} is unknown", f"use one of {', '.join(scopes)}")
    if (scope_ref is None) != (scope == "global"):
        problem = "is given for what is for all mail" if scope_ref else f"is missing for the scope {scope}"
        raise BadInput("scope_ref", problem, "give both a scope and what it is about, or neither")
    if position not in POSITIONS:
        raise BadInput("position", f"is {position:,}", "give a whole number up to 1,000,000; the lowest goes first")
    try:
        key = read_scope(scope, scope_ref).key
    except BrokenRule as broken:
        raise BadInput(broken.field, broken.problem, broken.remedy) from None
    return None if key is None else key[1]
