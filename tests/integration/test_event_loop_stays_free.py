"""Hostile mail meets patterns of the kind that backtracking engines never finish, and everybody else goes on meanwhile.

The mail comes in as any mail does, and the `classify` job itself decides about it. A ticking task on the same event
loop sees what is left for the others.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from conftest import ManualClock
from integration.product import ENDPOINT, OWNER, envelope
from postroom.core.job_types import CATALOGUE
from postroom.core.jobs import Job
from postroom.core.rulebook import Rulebook
from postroom.handlers.classify import Classify
from postroom.jobs.run import JobRun
from postroom.store import jobs, mail, rules
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.switchboard.buffer import Buffer
from postroom.switchboard.dispatcher import Dispatcher
from postroom.switchboard.intake import Intake

LENGTH = 102_400
TEXTS = {
    "one letter": "a" * LENGTH + "!",
    "two letters": "abba" * (LENGTH // 4) + "!",
    "wide letters": "aä" * (LENGTH // 3) + "!",
}
CATASTROPHIC = [
    r"(a+)+$",
    r"(a|a)*c",
    r"(a|aa)+$",
    r"((a*)*)*x",
    r"(.*)*x$",
    r"(a?){700}c",
    r"[ab]*a[ab]{900}c",
    r"a.{0,100}d.{0,100}c",
    r"(\w{0,300})$z",
    r"(x+x+)+y",
]
LONG_CHOICES = ["(" + "|".join(f"{word}{number}" for word in range(30)) + r")\b" for number in range(1000, 1090)]
WHILE_SLEEPING_S = 0.001


def _rules(patterns: list[str]) -> list[rules.NewRule]:
    """On what a stranger may write at length: a header of his own, the subject's included, and the text."""
    rule = rules.NewRule
    return [
        rule(new_id(), f"rule {number}", "", {"header_match": {"name": name, "pattern": pattern}}, "archive", {})
        for number, pattern in enumerate(patterns)
        for name in [("X-Odd", "Subject")[number % 2]]
    ]


class Office:
    """The way from the intake to the decision, step by step, in the hands of the test."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self._database = database
        self._clock = clock
        self._intake = Intake(database, None, clock)
        self._dispatcher = Dispatcher(database, CATALOGUE, Buffer(database, clock=clock), clock=clock)
        self._classify = Classify(database, CATALOGUE, clock)

    async def open(self, given: list[rules.NewRule]) -> None:
        await self._database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, self._clock()))
        await self._database.run(rules.add_rules(given, self._clock()))

    async def decide(self, name: str, text: str) -> "Decided":
        """About a mail whose subject, odd header and body are that text."""
        headers = [["From", "a@b.example"], ["Subject", text], ["X-Odd", text]]
        given: dict[str, Any] = envelope(name, {"headers": headers})
        given["payload"]["normalized_text"] = text
        await self._intake.ingest(given)
        await self._dispatcher.tick()
        run = JobRun(await self._claimed(), self._database, self._clock)
        watching = _Watching()
        async with watching:
            begun = time.process_time()
            await self._classify(run)
            cpu_s = time.process_time() - begun
        assert run.ended
        return Decided(cpu_s, watching.longest_s, watching.longest_cpu_s, watching.ticks)

    async def _claimed(self) -> Job:
        token, until = new_id(), self._clock() + timedelta(hours=1)
        await self._database.run(jobs.open_lease(token, "worker", self._clock(), until))
        (job,) = await self._database.run(jobs.claim(token, 1, self._clock()))
        return job


@dataclass(frozen=True)
class Decided:
    cpu_s: float
    longest_s: float
    longest_cpu_s: float
    ticks: int


class _Watching:
    def __init__(self) -> None:
        self.longest_s, self.longest_cpu_s, self.ticks = 0.0, 0.0, 0

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(2 * WHILE_SLEEPING_S)
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _tick(self) -> None:
        while True:
            clock, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(WHILE_SLEEPING_S)
            self.longest_s = max(self.longest_s, time.perf_counter() - clock)
            self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - cpu)
            self.ticks += 1


async def test_try(database: Database, clock: ManualClock) -> None:
    office = Office(database, clock)
    await office.open(_rules(CATASTROPHIC*1 + LONG_CHOICES))
    for k in range(3):
        for name, text in TEXTS.items():
            print('100', name, await office.decide(f"{name} {k}", text))

async def test_try2(database: Database, clock: ManualClock) -> None:
    office = Office(database, clock)
    await office.open(_rules([f"{p}({n})?" if not p.endswith('$') else f"({n})?"+p for n in range(10) for p in CATASTROPHIC]))
    for k in range(3):
        for name, text in TEXTS.items():
            print('100h', name, await office.decide(f"{name} {k}", text))
    import postroom.core.rulebook as rb
    rb.Rulebook.is_heavy=lambda s,m: False
    for k in range(3,6):
        for name, text in TEXTS.items():
            print('100h LOOP', name, await office.decide(f"{name} {k}", text))
