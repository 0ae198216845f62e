"""A burst of newsletters with a few contacts' mails at random places among them, and when each was taken in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from postroom.core.errors import PostroomError
from postroom.store.intake.acceptance import Accepted
from support.crash.gmail_setup import CountingIntake

PEOPLE = 20
OTHER_PEOPLE = 280
"""The rest of the address book, who do not write."""


def person(number: int) -> str:
    return f"friend{number}@people.example"


CONTACTS = [person(number) for number in range(PEOPLE + OTHER_PEOPLE)]


def newsletter(number: int, to: str) -> bytes:
    return (
        f"From: Shop {number % 40} <news@shop{number % 40}.example>\r\nTo: {to}\r\nSubject: Offer {number}\r\n"
        f"List-Unsubscribe: <mailto:no@shop.example>\r\nMessage-ID: <offer-{number}@shop.example>\r\n\r\n"
        f"number {number}: buy now.\r\n"
    ).encode()


def letter(number: int, to: str) -> bytes:
    return (
        f"From: Friend <{person(number)}>\r\nTo: {to}\r\nSubject: Are you there?\r\n"
        f"Message-ID: <letter-{number}@people.example>\r\n\r\nletter {number}\r\n"
    ).encode()


def burst(newsletters: int, to: str, rng: Random) -> list[tuple[int | None, bytes]]:
    """The messages in the order in which they come; those of contacts have a number."""
    letters = set(rng.sample(range(newsletters + PEOPLE), PEOPLE))
    made: list[tuple[int | None, bytes]] = []
    for place in range(newsletters + PEOPLE):
        number = sum(each is not None for each, _ in made) if place in letters else None
        made.append((number, letter(number, to) if number is not None else newsletter(place, to)))
    return made


class TimedIntake(CountingIntake):
    """Knows when each contact's mail was first accepted, by a clock of the test, and how many were before it."""

    clock: Callable[[], float]
    letters: dict[str, tuple[float, int]]

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        before = self.fresh
        outcomes = await super().ingest_batch(items, bound_to)
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, Accepted) and not outcome.duplicate:
                sender: str = cast("Any", item)["sender"]["identity"]
                if sender in CONTACTS:
                    self.letters[sender] = (self.clock(), before)
                before += 1
        return outcomes


@dataclass
class Waits:
    """How long each contact's mail waited, and how many messages were taken in meanwhile."""

    came: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    seconds: list[float] = field(default_factory=list[float])
    passed: list[int] = field(default_factory=list[int])

    def begin(self, sender: str, intake: TimedIntake) -> None:
        self.came[sender] = (intake.clock(), intake.fresh)

    def end(self, intake: TimedIntake) -> None:
        assert intake.letters.keys() == self.came.keys()
        for sender, (came_at, count) in self.came.items():
            accepted_at, before = intake.letters[sender]
            self.seconds.append(accepted_at - came_at)
            self.passed.append(before - count)

    @property
    def passed_at_first(self) -> list[int]:
        """How many went before each of those that were there when nothing had been taken in."""
        return [number for (_, count), number in zip(self.came.values(), self.passed, strict=True) if not count]

    @property
    def p95(self) -> float:
        return sorted(self.seconds)[round(0.95 * len(self.seconds)) - 1]

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (
            f"{len(ordered)} letters: median {ordered[len(ordered) // 2]:.1f} s, p95 {self.p95:.1f} s, "
            f"longest {ordered[-1]:.1f} s, at most {max(self.passed)} messages before one"
        )


def moments(kills: int, messages: int, rng: Random) -> list[int]:
    """So many messages have arrived when the process is killed."""
    return [int(messages * (0.02 + 0.9 * (number + rng.random()) / kills)) for number in range(kills)]
