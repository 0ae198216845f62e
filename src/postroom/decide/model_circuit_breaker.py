"""Leaves a provider alone that cannot answer, so that a broken one does not hold up every worker until its time-outs.

After a failure nobody asks for a while: as long as the provider says, or for two seconds, doubled with each further
failure, up to a minute. Then one asks, and the others wait for what comes of it. When nothing comes of it, since it was
broken off before there was an answer or a failure, the next one asks.
"""

from datetime import datetime, timedelta

from postroom.core.errors import ModelUnavailable

LONGEST_PAUSE = timedelta(minutes=1)


class Probe:
    """The question of the one who asks for all."""

    def __init__(self, began: datetime) -> None:
        self.began = began


class CircuitBreaker:
    """One provider's. Times are given, not taken."""

    def __init__(self, patience: timedelta) -> None:
        self._patience = patience
        self._failures = 0
        self._until: datetime | None = None
        self._named = False
        self._probe: Probe | None = None

    def before_asking(self, now: datetime) -> Probe | None:
        """Raises ModelUnavailable while the provider is left alone; otherwise whoever comes may ask. The probe is for
        whoever asks for all, who hands it to `after_asking` whatever happens."""
        if self._until is None:
            return None
        if now < self._until:
            problem = f"the model's provider has failed {self._failures} times in a row and is left alone"
            raise ModelUnavailable(problem, self._until - now if self._named else None)
        self._until, self._named = now + self._patience, False
        self._probe = Probe(now)
        return self._probe

    def after_asking(self, probe: Probe | None) -> None:
        """When nobody knows more than before, the next one finds out."""
        if probe is not None and self._probe is probe:
            self._until, self._probe = probe.began, None

    def after_failing(self, now: datetime, named: timedelta | None) -> None:
        """`named` is the time after which the provider wants to be asked again."""
        self._failures += 1
        own = min(LONGEST_PAUSE, timedelta(seconds=2 ** min(self._failures, 10)))
        self._until, self._named = now + (own if named is None else named), named is not None
        self._probe = None

    def after_an_answer(self) -> None:
        """Any answer: also one that refuses shows that somebody is there."""
        self._failures, self._until, self._probe = 0, None, None
