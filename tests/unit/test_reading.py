"""Rows are read by the names of their columns, in any order."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest

from postroom.store.engine.database import Rows
from postroom.store.engine.reading import read_first, read_row, read_rows

ID = UUID("018f0000-0000-7000-8000-000000000001")
AT = datetime(2026, 11, 15, 8, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


class Place(NamedTuple):
    street: str
    number: int


@dataclass(frozen=True, slots=True)
class House:
    id: UUID
    built_at: datetime
    sold_at: datetime | None
    colour: Colour
    kind: Literal["villa", "hut"]
    is_sold: bool
    rooms: Mapping[str, Any]
    tags: frozenset[str]
    doors: tuple[tuple[str, str], ...]
    place: Place
    owner: str = "nobody"


@dataclass(frozen=True, slots=True)
class Letter:
    to: str
    sent_from: Place | None


def rows(*found: dict[str, Any]) -> Rows:
    made = Rows()
    made.columns = tuple(found[0]) if found else ()
    made += [tuple(each.values()) for each in found]
    return made


KEPT = {
    "number": 4,
    "street": "Elm",
    "doors_json": '[["front", "oak"]]',
    "tags": '["old"]',
    "rooms_json": '{"kitchen": 1}',
    "is_sold": 0,
    "kind": "hut",
    "colour": "red",
    "sold_at": None,
    "built_at": "2026-11-15T08:00:00.000000Z",
    "id": str(ID),
}
HOUSE = House(
    ID, AT, None, Colour.RED, "hut", False, {"kitchen": 1}, frozenset({"old"}), (("front", "oak"),), Place("Elm", 4)
)


def test_fields_take_the_columns_of_their_names_decoded_as_their_types_say() -> None:
    assert read_rows(House, rows(KEPT, KEPT)) == [HOUSE, HOUSE]
    assert read_first(House, rows(KEPT)) == HOUSE


def test_values_that_a_database_has_types_for_are_taken_as_they_are() -> None:
    assert read_first(House, rows({**KEPT, "id": ID, "built_at": AT, "is_sold": False})) == HOUSE


def test_no_rows_are_nothing() -> None:
    assert read_rows(House, rows()) == []
    assert read_first(House, rows()) is None


def test_what_is_given_by_name_goes_before_the_column() -> None:
    given = read_first(House, rows(KEPT), owner="Ada", kind="villa")
    assert given is not None
    assert (given.owner, given.kind) == ("Ada", "villa")
    (row,) = rows(KEPT).by_name()
    assert read_row(House, row, owner="Ada").owner == "Ada"


def test_a_part_that_may_be_missing_is_none_where_its_first_column_is() -> None:
    assert read_first(Letter, rows({"to": "Ada", "street": None, "number": None})) == Letter("Ada", None)
    assert read_first(Letter, rows({"to": "Ada", "street": "Elm", "number": 4})) == Letter("Ada", Place("Elm", 4))


def test_a_field_without_a_column_is_named() -> None:
    with pytest.raises(LookupError, match=r"Place\.number has no column among street"):
        read_first(Place, rows({"street": "Elm"}))
