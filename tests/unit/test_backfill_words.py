"""What an estimate says: lengths of time that people think in, and what costs nothing."""

import pytest

from postroom.words.backfill import estimated_length, price


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0.0, "a minute at most"),
        (0.02, "1 minute"),
        (0.55, "33 minutes"),
        (1.0, "1 hour"),
        (2.54, "2.5 hours"),
        (47.9, "47.9 hours"),
        (72.0, "3 days"),
    ],
)
def test_a_length_of_time_is_written_out_in_the_unit_that_suits_it(hours: float, said: str) -> None:
    assert estimated_length(hours) == said


def test_what_costs_nothing_is_free() -> None:
    assert (price(0, 0), price(0, None)) == ("free with this model", "free without a model")
    assert price(6_000_000, 3) == "$6.00"
