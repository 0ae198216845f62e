"""A wall clock that is set back is noticed, with how far, and corrected once more a little later."""

from datetime import timedelta

from postroom.jobs.clock_watch import AGAIN_AFTER_S, ClockWatch
from support.clocks import ManualClock

HOUR = timedelta(hours=1)


class Clocks:
    """The wall clock, and the one that never jumps."""

    def __init__(self) -> None:
        self.wall = ManualClock()
        self.boot_s = 1000.0
        self.watch = ClockWatch(self.wall, lambda: self.boot_s)

    def pass_time(self, seconds: float) -> None:
        self.boot_s += seconds
        self.wall.forward(seconds)


def test_a_clock_that_runs_slow_or_jumps_ahead_is_not_set_back() -> None:
    clocks = Clocks()
    clocks.wall.forward(-5)
    assert not clocks.watch.look()
    clocks.wall.forward(3600)
    assert not clocks.watch.look()
    assert clocks.watch.back_by is None


def test_it_is_known_by_how_far_the_clock_was_set_back() -> None:
    clocks = Clocks()
    clocks.pass_time(60)
    clocks.wall.forward(-3600)
    assert clocks.watch.look()
    assert clocks.watch.back_by == HOUR
    assert not clocks.watch.look(), "it is told once"


def test_what_was_stored_is_corrected_again_after_a_minute_and_then_no_more() -> None:
    clocks = Clocks()
    clocks.wall.forward(-3600)
    clocks.watch.look()
    assert clocks.watch.due_at <= clocks.boot_s
    clocks.watch.corrected()
    assert clocks.watch.due_at == clocks.boot_s + AGAIN_AFTER_S
    assert clocks.watch.back_by == HOUR, "a transaction of the old clock may come late"
    clocks.watch.corrected()
    assert clocks.watch.due_at == float("inf")
    assert clocks.watch.back_by is None


def test_two_jumps_count_together_only_if_nothing_was_corrected_between_them() -> None:
    clocks = Clocks()
    clocks.wall.forward(-3600)
    clocks.watch.look()
    clocks.wall.forward(-3600)
    clocks.watch.look()
    assert clocks.watch.back_by == 2 * HOUR
    clocks.watch.corrected()
    clocks.wall.forward(-3600)
    clocks.watch.look()
    assert clocks.watch.back_by == HOUR
