"""Notices that the wall clock was set back, and says when the times it has stored are to be corrected."""

from datetime import timedelta

from postroom.store.engine.clock_jumps import SLACK
from postroom.system.boot_clock import BootClock
from postroom.system.wall_clock import Clock

# A transaction that was under way when the clock was set back may still store a time of the old clock.
AGAIN_AFTER_S = 60.0


class ClockWatch:
    """Compares the wall clock with one that never jumps. `back_by` is how far it was set back, if that was seen."""

    def __init__(self, clock: Clock, boot: BootClock) -> None:
        self._clock = clock
        self._boot = boot
        self._offset = self._ahead_of_boot()
        self._due_at: float | None = boot()
        self._is_repeated = False
        self._is_uncorrected = False
        self.has_jumped = False
        """Whether the last look found that the clock was set, forward or back."""
        self.back_by: timedelta | None = None

    @property
    def due_at(self) -> float:
        """When to correct, by the clock that never jumps."""
        return float("inf") if self._due_at is None else self._due_at

    def look(self) -> bool:
        """Whether the clock was set back since the last look. Running slow does not count."""
        before, self._offset = self._offset, self._ahead_of_boot()
        self.has_jumped = abs(before - self._offset) > SLACK.total_seconds()
        if before - self._offset <= SLACK.total_seconds():
            return False
        self.note(timedelta(seconds=before - self._offset))
        return True

    def note(self, back_by: timedelta) -> None:
        """The clock was set back so far. Twice before anything was corrected counts together."""
        before = self.back_by if self._is_uncorrected else None
        self.back_by, self._is_uncorrected = back_by + (before or timedelta(0)), True
        self.begin()

    def begin(self) -> None:
        """Correct now, also at the beginning of a term: nobody may have led when the clock was set back."""
        self._due_at, self._is_repeated = self._boot(), False

    def corrected(self) -> None:
        """Correct once more a little later, then no more."""
        self._due_at = None if self._is_repeated else self._boot() + AGAIN_AFTER_S
        self.back_by = None if self._is_repeated else self.back_by
        self._is_repeated, self._is_uncorrected = not self._is_repeated, False

    def _ahead_of_boot(self) -> float:
        return self._clock().timestamp() - self._boot()
