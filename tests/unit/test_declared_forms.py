"""The fields of a form that an operation declares, as people fill them in."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from starlette.datastructures import FormData

from postroom.core.access import OPERATE
from postroom.core.errors import BadInput
from postroom.interfaces.dashboard.declared_forms import read_form
from postroom.interfaces.dashboard.forms import Form
from postroom.interfaces.dashboard.visiting import OWNER
from postroom.operations.caller import Caller
from postroom.operations.operation import Argument, Noun, form

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
ID = UUID(int=7)
BERLIN = ZoneInfo("Europe/Berlin")
NOUN = Noun("Nothing")


@NOUN.operation(OPERATE, form("/nothing/{id}"))
async def nothing(
    by: Caller,
    /,
    id: UUID,
    name: str,
    hours: Annotated[int, Argument("", 1, 24)] = 4,
    since: datetime | None = None,
    chosen: Sequence[UUID] = (),
    active: bool = False,
) -> None:
    """Do nothing."""


def read(*fields: tuple[str, str]) -> dict[str, Any]:
    by: Any = None
    filled = Form(FormData([("name", "mara"), *fields]), {"id": str(ID)}, OWNER, "/", BERLIN, by)
    return read_form(NOUN.operations[0], filled, NOW)


def test_fields_and_parts_of_the_address_are_arguments_and_others_have_their_defaults():
    assert read() == {
        "id": ID, "name": "mara", "hours": 4, "since": None, "chosen": (), "active": False,
    }  # fmt: skip


def test_a_field_that_is_there_several_times_is_a_list():
    assert read(("chosen", str(ID)), ("chosen", str(UUID(int=8))))["chosen"] == [ID, UUID(int=8)]


def test_a_ticked_box_is_true():
    assert read(("active", "yes"))["active"] is True


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("now", NOW), ("7d", NOW - timedelta(days=7)), ("2026-10-26", datetime(2026, 10, 25, 23, tzinfo=UTC)),
        ("2026-10-25", datetime(2026, 10, 24, 22, tzinfo=UTC)), ("2026-03-30", datetime(2026, 3, 29, 22, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_time_is_a_day_of_the_reader_a_span_back_or_now(typed: str, meant: datetime):
    assert read(("since", typed))["since"] == meant


@pytest.mark.parametrize(
    ("field", "typed", "refusal"),
    [
        ("name", " ", "name: is empty; fill it in"),
        ("hours", "", "hours: is empty; fill it in"),
        ("hours", "1e1", "hours: '1e1' is no number; write it in digits"),
        ("hours", "25", "hours: 25 is out of range; use 1 to 24"),
        ("since", "2026-02-30", "since: '2026-02-30' is not a day"),
        ("since", "", "since: is empty; fill it in"),
        ("chosen", "x", "chosen: 'x' is no id; open it from the list"),
        ("ids", "x", "ids: is no field of this form; open the page again"),
    ],
)
def test_a_wrong_field_is_named(field: str, typed: str, refusal: str):
    by: Any = None
    fields = FormData({"name": "mara", field: typed})
    with pytest.raises(BadInput) as refused:
        read_form(NOUN.operations[0], Form(fields, {"id": str(ID)}, OWNER, "/", BERLIN, by), NOW)
    assert str(refused.value).startswith(refusal)
