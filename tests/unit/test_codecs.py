"""Times, ids and JSON come back from the database unchanged."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.store.engine.codecs import (
    as_optional_time,
    as_time,
    as_uuid,
    from_json,
    json_text,
    rows_text,
    sqlite_value,
    time_text,
)

zones = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones)  # noqa: DTZ001 - bounds have no zone
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


@given(moments)
def test_a_moment_comes_back_as_it_went(moment: datetime) -> None:
    assert as_time(time_text(moment)) == moment


@given(moments, moments)
def test_moments_as_text_sort_as_in_time(one: datetime, other: datetime) -> None:
    assert (time_text(one) < time_text(other)) == (one < other)


@given(moments)
def test_moments_as_text_are_of_one_width(moment: datetime) -> None:
    assert len(time_text(moment)) == len("2026-11-15T07:30:00.000000Z")
    assert time_text(moment).endswith("Z")


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(BadInput, match="has no time zone"):
        time_text(datetime(2026, 11, 15))  # noqa: DTZ001 - the point


def test_what_a_database_gave_as_a_time_or_an_id_is_left_as_it_is() -> None:
    moment, id = datetime(2026, 11, 15, tzinfo=UTC), uuid4()
    assert as_time(moment) is moment
    assert as_uuid(id) is id
    assert as_uuid(str(id)) == id


def test_nothing_stays_nothing() -> None:
    assert as_optional_time(None) is None
    assert as_optional_time("2026-11-15T07:30:00.000000Z") == datetime(2026, 11, 15, 7, 30, tzinfo=UTC)


@given(json_values)
def test_json_comes_back_as_it_went(value: Any) -> None:
    assert from_json(json_text(value)) == value


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {"a": {3}}, 2**64, "\ud800", b"x"], ids=lambda value: type(value).__name__
)
def test_what_is_no_json_is_refused_with_a_remedy(value: object) -> None:
    with pytest.raises(BadInput, match="use objects, lists, text, numbers"):
        json_text(value)


def test_json_that_is_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadInput):
        json_text(endless)


def test_sqlite_gets_times_ids_and_lists_as_text() -> None:
    moment, id = datetime(2026, 11, 15, tzinfo=UTC), uuid4()
    assert sqlite_value(moment) == "2026-11-15T00:00:00.000000Z"
    assert sqlite_value(id) == str(id)
    assert orjson.loads(str(sqlite_value([1, id, moment]))) == [1, str(id), "2026-11-15T00:00:00.000000Z"]


def test_rows_become_one_text_with_times_as_sqlite_keeps_them() -> None:
    moment, id = datetime(2026, 11, 15, tzinfo=UTC), uuid4()
    rows = [(id, "é\0", 3, None, True, moment)]
    assert orjson.loads(rows_text(rows)) == [[str(id), "é\0", 3, None, True, "2026-11-15T00:00:00.000000Z"]]


def test_anything_else_is_a_bug_that_is_told() -> None:
    with pytest.raises(TypeError, match="a complex cannot be stored"):
        sqlite_value(1j)
