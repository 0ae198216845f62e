"""One run of the benchmark: the ground, the field, the sizes, and the rounds in which subjects take turns."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .answers import SubjectFailedError
from .ground import Ground
from .order import Database, Order, Outcome
from .sizes import Sizes
from .subjects import Field, Subject
from .table import Line

EVERYBODY = "everybody"


@dataclass(frozen=True)
class Turn:
    """One subject's measurement in each round, and the line it writes to."""

    subject: Subject
    line: Line
    measure: Callable[[], None]


@dataclass(frozen=True)
class Run:
    """What a claim needs to measure itself."""

    ground: Ground
    field: Field
    sizes: Sizes
    rounds: int
    subjects: frozenset[str]  # empty: all

    def alternate(self, turns: Sequence[Turn]) -> list[Line]:
        """All subjects once per round; each round starts with another, so that none always follows the same one."""
        wanted = [turn for turn in turns if not self.subjects or turn.subject.name in self.subjects]
        for number in range(self.rounds):
            for position in range(len(wanted)):
                self._take(wanted[(number + position) % len(wanted)], number + 1)
        return [turn.line for turn in wanted]

    def claim(self, name: str, measure: Callable[["Run"], list[Line]]) -> list[Line]:
        """The lines of one claim; where it could not even begin, one that says so."""
        try:
            return measure(self)
        except Exception as error:
            _say(f"{name}: {reason(error)}")
            return [Line(name, EVERYBODY, error=f"{name}: {reason(error)}")]

    def _take(self, turn: Turn, number: int) -> None:
        line = turn.line
        if line.error is not None:
            return
        label = f"{line.work}: {line.subject}, round {number} of {self.rounds}"
        try:
            turn.measure()
        except Exception as error:  # whatever it is, the others are measured, and the table says it
            line.error = reason(error)
            _say(f"{label}: {line.error}")
        else:
            _say(f"{label}: {line.samples[-1]:,.3f} {line.unit}")

    def drain_rate(self, subject: Subject, kind: Database, count: int) -> float:
        with self.ground.database(kind) as target:
            subject.ask(Order("prepare", target))
            subject.ask(Order("fill", target, count=count))
            self.ground.settle(target)
            return count / subject.measure(Order("drain", target, count=count)).seconds

    def enqueue_burst(self, subject: Subject, kind: Database, *, producers: int, count: int) -> Outcome:
        with self.ground.database(kind) as target:
            subject.ask(Order("prepare", target))
            self.ground.settle(target)
            return subject.measure(Order("enqueue", target, count=count, producers=producers))


def reason(error: BaseException) -> str:
    return str(error) if isinstance(error, SubjectFailedError) else f"{type(error).__name__}: {error}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
