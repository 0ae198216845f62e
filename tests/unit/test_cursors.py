"""Cursors of pages: written, and read back."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from postroom.core.errors import BadInput
from postroom.store.engine.cursors import Cursor, read_cursor

ID = UUID(int=7)
PLACE = Cursor(datetime(2026, 11, 15, 8, 0, 0, 5, tzinfo=UTC), ID)


def test_a_place_is_read_as_it_was_written() -> None:
    assert read_cursor(str(PLACE)) == PLACE


@pytest.mark.parametrize("moment", ["2026-11-15T08:00:00.000005", "2026-11-15T10:00:00.000005+02:00"])
def test_a_time_is_taken_by_its_offset_and_without_one_as_utc(moment: str) -> None:
    assert read_cursor(f"{moment}/{ID}") == PLACE


@pytest.mark.parametrize("text", ["", "/", "2026-11-15T08:00:00Z", f"yesterday/{ID}", "2026-11-15T08:00:00Z/7"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="before"):
        read_cursor(text)
