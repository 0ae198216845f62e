"""How long another server asks us to wait."""

from datetime import timedelta

import pytest

from postroom.system.waiting_times import retry_after

DAY = timedelta(days=1)
NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": " 0 "}, 0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "9", "Retry-After-Ms": "1500"}, 1.5),
        ({"Retry-After": "9", "Retry-After-Ms": "soon"}, 9),
        ({"Retry-After": "9" * 20}, 86_400),
        ({"Retry-After": "Wed, 21 Oct 2026 07:29:00 GMT", "Date": NOW}, 60),
        ({"Retry-After": "Wed, 21 Oct 2026 07:27:00 GMT", "Date": NOW}, None),
        ({"Retry-After": "Wed, 21 Oct 2099 07:27:00 GMT", "Date": NOW}, 86_400),
        ({"Retry-After": "Wed, 21 Oct 2026 07:29:00 GMT"}, None),
        ({"Retry-After": "9" * 21}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "\u0661"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_a_number_or_a_date_is_a_waiting_time_of_a_day_at_most(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, DAY) == (None if seconds is None else timedelta(seconds=seconds))
