"""How `postroom outbound simulate` says times."""

import pytest

from postroom_simulator.command import spoken


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0.0 s"), (12.34, "12.3 s"), (245, "4 min 5 s"), (7_380, "2 h 3 min")]
)
def test_times_are_told_to_people(seconds: float, said: str) -> None:
    assert spoken(seconds) == said
