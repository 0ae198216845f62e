"""When snoozed mail comes back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postroom.core.actions.snooze import check_snooze, wake_time
from postroom.core.errors import BadInput

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"until": "2026-11-16T08:00:00Z"}, NOW + timedelta(days=1)),
        ({"until": "2026-11-15T10:00:00+01:00"}, NOW + timedelta(hours=1)),
        ({"amount": 30, "units": "minutes"}, NOW + timedelta(minutes=30)),
        ({"amount": 1, "units": "hours"}, NOW + timedelta(hours=1)),
        ({"amount": 0.5, "units": "days"}, NOW + timedelta(hours=12)),
        ({"amount": 1.5, "units": "hours"}, NOW + timedelta(minutes=90)),
        ({"amount": 365, "units": "days"}, NOW + timedelta(days=365)),
    ],
)
def test_it_comes_back_then(parameters: dict[str, Any], expected: datetime) -> None:
    assert wake_time(parameters, NOW) == expected


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "parameters.until"),
        ({"until": "2026-11-15T07:59:59Z"}, "parameters.until"),
        ({"until": "2026-11-15T08:00:00Z"}, "parameters.until"),
        ({"until": "2028-01-01T00:00:00Z"}, "parameters.until"),
        ({"until": "2026-11-16T08:00:00"}, "parameters.until"),
        ({"until": "tomorrow"}, "parameters.until"),
        ({"until": 1763193600}, "parameters.until"),
        ({"until": "0001-01-01T00:00:00+23:59"}, "parameters.until"),
        ({"until": "2026-11-16T08:00:00Z", "amount": 1, "units": "days"}, "parameters.until"),
        ({"until": "2026-11-16T08:00:00Z", "units": "days"}, "parameters.until"),
        ({"amount": 0, "units": "days"}, "parameters.amount"),
        ({"amount": -1, "units": "days"}, "parameters.amount"),
        ({"amount": True, "units": "days"}, "parameters.amount"),
        ({"amount": float("nan"), "units": "days"}, "parameters.amount"),
        ({"amount": float("inf"), "units": "days"}, "parameters.amount"),
        ({"amount": "3", "units": "days"}, "parameters.amount"),
        ({"amount": 366, "units": "days"}, "parameters.amount"),
        ({"amount": 3}, "parameters.units"),
        ({"amount": 3, "units": "weeks"}, "parameters.units"),
    ],
)
def test_what_is_not_time_to_come_is_refused_with_the_field(parameters: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        wake_time(parameters, NOW)
    assert refused.value.field == field


@pytest.mark.parametrize("parameters", [{"until": "tomorrow"}, {"amount": 0, "units": "hours"}, {"amount": 2}])
def test_what_is_not_time_at_all_is_refused_before_anybody_knows_what_time_it_is(parameters: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        check_snooze(parameters)
