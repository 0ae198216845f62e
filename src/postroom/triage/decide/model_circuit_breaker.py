"""A circuit breaker for the model's provider, so that a broken one does not hold up every worker until it times out.

After a failure there are no calls for a while: as long as the provider says, or for two seconds, doubled with each
further failure, up to a minute. Then one caller probes the provider while the others wait for the outcome. If the probe
is broken off without an answer or a failure, the next caller probes.
"""

from datetime import datetime, timedelta

from postroom.core.errors import ModelUnavailable

LONGEST_PAUSE = timedelta(minutes=1)


class Probe:
    """The call by which one caller finds out whether the provider answers again."""

    def __init__(self, began: datetime) -> None:
        self.began = began


class CircuitBreaker:
    """The circuit breaker of one provider. `patience` is how long the others wait for a probe."""

    def __init__(self, patience: timedelta) -> None:
        self._patience = patience
        self._failures = 0
        self._until: datetime | None = None
        self._named = False
        self._probe: Probe | None = None

    def before_asking(self, now: datetime) -> Probe | None:
        """Allow a call, or raise ModelUnavailable while the provider is left alone. A caller that gets a probe must
        pass it to `after_asking`, whatever happens."""
        if self._until is None:
            return None
        if now < self._until:
            problem = f"the model's provider has failed {self._failures} times in a row and is left alone"
            raise ModelUnavailable(problem, self._until - now if self._named else None)
        self._until, self._named = now + self._patience, False
        self._probe = Probe(now)
        return self._probe

    def after_asking(self, probe: Probe | None) -> None:
        """Let the next caller probe, if this probe ended without an answer or a failure."""
        if probe is not None and self._probe is probe:
            self._until, self._probe = probe.began, None

    def after_failing(self, now: datetime, named: timedelta | None) -> None:
        """Count a failure. `named` is the pause that the provider asked for, if any."""
        self._failures += 1
        own = min(LONGEST_PAUSE, timedelta(seconds=2 ** min(self._failures, 10)))
        self._until, self._named = now + (own if named is None else named), named is not None
        self._probe = None

    def after_an_answer(self) -> None:
        """Close the circuit after any answer: even a refusal shows that the provider works."""
        self._failures, self._until, self._probe = 0, None, None
