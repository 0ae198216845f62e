"""A connector killed at any point of a backfill: each message arrives once, and the counters equal the truth."""

import contextlib
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from postroom.core.errors import SwitchboardUnavailable
from support.backfill import LEASE_S, BackfillSetup, Killed, at, backfill_setup, deliver, walk
from support.jumping_loop import run
from support.scale import scale

COST = 30_000


class Hangman:
    """Ends the process at given steps of its life: some before they take effect, some after."""

    def __init__(self, lives: Sequence[int]) -> None:
        self.lives = list(lives)
        self.left: int | None = None

    def next_life(self) -> None:
        self.left = self.lives.pop() if self.lives else None

    def __call__(self, step: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed


def live_again_and_again(setup: BackfillSetup, lives: Sequence[int]) -> None:
    """Start the connector anew whenever it was killed, until the job is completed."""
    hangman = Hangman(lives)
    setup.step_with(hangman)

    async def one_life() -> str:
        setup.board.lease_until = 0.0
        hangman.next_life()
        return await walk(setup)

    while setup.board.status != "completed":
        with contextlib.suppress(Killed):
            assert run(one_life()) == "completed"


def wanted_and_unwanted(setup: BackfillSetup, days: Sequence[int]) -> tuple[list[str], int]:
    wanted: list[str] = []
    for number, day in enumerate(days):
        moment = at(1 + day // 28, 1 + day % 28, number % 24, number % 60)
        if number % 4 == 3:
            deliver(setup, moment, labels=("SENT",))
        else:
            wanted += deliver(setup, moment)
    return wanted, len(days) - len(wanted)


@settings(max_examples=scale(100, 2_000), deadline=None)
@given(
    days=st.lists(st.integers(0, 83), max_size=60),
    lives=st.lists(st.integers(0, 120), max_size=60),
    interval=st.integers(1, 20),
    per_hour=st.sampled_from([100, 36_000, 1_000_000]),
)
@example(days=list(range(40)), lives=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], interval=5, per_hour=1_000_000)
def test_a_connector_killed_at_any_point_ingests_each_message_once_and_counts_exactly(
    days: list[int], lives: list[int], interval: int, per_hour: int
) -> None:
    setup = backfill_setup(rate_limit_per_hour=per_hour, message_cost_micros=COST)
    setup.interval = interval
    wanted, unwanted = wanted_and_unwanted(setup, days)
    live_again_and_again(setup, lives)
    assert set(setup.board.envelopes) == set(wanted)
    assert (setup.board.processed, setup.board.skipped) == (len(wanted), unwanted)
    assert setup.board.by_category["finance"] == len(wanted)
    assert setup.board.spent_micros <= COST * len(wanted)


@settings(max_examples=scale(100, 2_000), deadline=None)
@given(
    days=st.lists(st.integers(0, 83), min_size=1, max_size=60),
    losses=st.lists(st.sampled_from(["lost", "answer lost", None]), max_size=40),
    interval=st.integers(1, 20),
)
def test_reports_that_are_lost_and_repeated_count_once(
    days: list[int], losses: list[str | None], interval: int
) -> None:
    setup = backfill_setup(message_cost_micros=COST)
    setup.interval = interval
    wanted, unwanted = wanted_and_unwanted(setup, days)
    fates = iter(losses)

    def lose(step: str) -> None:
        if step == "report":
            fate = next(fates, None)
            if fate is not None:
                raise SwitchboardUnavailable(fate)

    setup.board.step = lose
    assert run(walk(setup)) == "completed"
    assert set(setup.board.envelopes) == set(wanted)
    assert (setup.board.processed, setup.board.skipped) == (len(wanted), unwanted)
    assert setup.board.spent_micros == COST * len(wanted)


def test_what_is_deleted_and_what_comes_between_two_lives_disturbs_nothing() -> None:
    setup = backfill_setup()
    setup.interval = 5
    ids = deliver(setup, *(at(2, 10, minute=number) for number in range(40)))

    def killed_after_ten(step: str) -> None:
        if step == "ingest" and len(setup.board.envelopes) >= 10:
            raise Killed

    setup.step_with(killed_after_ten)
    with contextlib.suppress(Killed):
        run(walk(setup))
    done = set(setup.board.envelopes)
    for id in [*ids[:3], *sorted(done)[:3]]:
        setup.source.mailbox.delete(id)
    earlier = deliver(setup, at(1, 10))
    setup.step_with(lambda _step: None)
    setup.board.lease_until -= LEASE_S
    assert run(walk(setup)) == "completed"
    assert set(setup.board.envelopes) == {*ids[3:], *earlier}
