"""The picture of the road: what came to a step is what went on, what still waits and what is left, in words."""

import pytest

from postroom.interfaces.dashboard.pages.overview import road_columns, step_words
from postroom.operations.overview.road import Road, RoadLink
from support.scripted_feed import NOON


@pytest.mark.parametrize(
    ("behind", "waiting", "said"),
    [
        (0, 0, ""), (3, 3, "3 still waiting"), (5, 3, "3 still waiting · 2 not decided here"),
        (2, 0, "2 not decided here"),
        (-4, 0, "4 from earlier or another tier"),
        (1, 3, "3 still waiting · 2 from earlier or another tier"), (-2, -2, "2 from earlier or another tier"),
    ],
)  # fmt: skip
def test_the_counts_of_two_steps_add_up(behind: int, waiting: int, said: str) -> None:
    assert step_words(behind, waiting) == said


def test_each_step_says_how_many_still_wait_there() -> None:
    links = (
        RoadLink(0, "gmail:user:ada@x.example", "default", "default", 1_204),
        RoadLink(1, "default", "rule", "default", 1_000),
        RoadLink(2, "rule", "archive", "default", 1_000),
        RoadLink(0, "hooks", "P2", "P2", 9),
        RoadLink(1, "P2", "agents", "P2", 9),
        RoadLink(2, "agents", "done", "", 5),
    )
    columns = road_columns(Road(NOON, NOON, 1_213, links, (), {"default": 1_204, "P2": 9}), {"default": 204, "P2": 3})
    assert columns[1]["default"].said == "204 still waiting"
    assert columns[1]["P2"].said == ""
    assert columns[2]["rule"].said == ""
    assert columns[2]["agents"].said == "4 still waiting"
