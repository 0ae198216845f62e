"""Hostile mail meets patterns of the kind that backtracking never finishes, and everybody else goes on meanwhile.

The mail comes in as any mail does, and the `classify` job itself decides about it. Costs are compared with each other,
never with the clock: what else the machine does must not count.
"""

import asyncio
import time
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.message import LONGEST_BODY
from postroom.core.rules.draft import RuleDraft
from postroom.intake.buffer import Buffer
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from postroom.store.rules import rules
from postroom.triage.handlers.classify import Classify
from support.clocks import ManualClock
from support.gates import LASTING
from support.loop_watch import GOOD_SHARE, LoopWatch
from support.product import ENDPOINT, OWNER, envelope

LENGTH = 102_400
TEXTS = {
    "one letter": "a" * LENGTH + "!",
    "two letters": "abba" * (LENGTH // 4) + "!",
    "wide letters": "aä" * (LENGTH // 3) + "!",
}
# None of them matches, so all of them are tried to their end.
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
LONG_CHOICES = [
    "(" + "|".join(f"word{number}x{which}" for which in range(30)) + r")\b" for number in range(100 - len(CATASTROPHIC))
]
# Such a pattern reads every character, as those above must at least.
HARMLESS = [f"(k{number})?[a-c]*z" for number in range(100)]
# Longer than any of the catastrophic patterns looks: what comes after it must cost no more than to read it.
BEYOND_REACH = 8_192
TRIES = 3


async def test_a_hundred_rules_of_every_catastrophic_kind_cost_no_more_over_100_kib_than_to_read_it(
    database: Database, clock: ManualClock
) -> None:
    setup = IntakeSetup(database, clock)
    await setup.open([_on_header(number, each) for number, each in enumerate([*CATASTROPHIC, *LONG_CHOICES])])
    short = {name: await setup.cost(text[:BEYOND_REACH] + "!") for name, text in TEXTS.items()}
    long = {name: await setup.cost(text) for name, text in TEXTS.items()}
    await setup.replace_rules([_on_header(number, each) for number, each in enumerate(HARMLESS)])
    reading = {name: await setup.cost(text) for name, text in TEXTS.items()}
    print({name: f"{long[name] * 1000:.0f} ms of processor time" for name in TEXTS})
    for name in TEXTS:
        assert long[name] < 3 * (short[name] + reading[name]), (name, long, short, reading)


async def test_a_hundred_catastrophic_rules_leave_the_event_loop_to_everybody_else(
    database: Database, clock: ManualClock
) -> None:
    setup = IntakeSetup(database, clock)
    patterns = [f"({number})?{each}" for number in range(10) for each in CATASTROPHIC]
    await setup.open(
        [
            *(_on_header(number, each) for number, each in enumerate(patterns)),
            *(_on_body(number, f"{TEXTS['one letter'][:900]}{number}") for number in range(100)),
        ]
    )
    watch = LoopWatch()
    for text in TEXTS.values():
        await (await setup.classifying(text))
        share = await watch.best(partial(setup.classifying, text))
        assert share.worst <= GOOD_SHARE, share


def _on_header(number: int, pattern: str) -> tuple[UUID, RuleDraft]:
    """On what a stranger may write at any length, in headers whole."""
    name = ("X-Odd", "Subject")[number % 2]
    conditions = {"header_match": {"name": name, "pattern": pattern}}
    return (new_id(), RuleDraft(f"header {number} {pattern[:80]}", conditions, "archive", {}))


def _on_body(number: int, words: str) -> tuple[UUID, RuleDraft]:
    return (new_id(), RuleDraft(f"body {number}", {"body_contains": words}, "archive", {}))


class IntakeSetup:
    """The way from the intake to the decision, step by step, in the hands of the test."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self._database = database
        self._clock = clock
        self._intake = Intake(database, None, clock)
        self._dispatcher = Dispatcher(database, CATALOGUE, Buffer(database, clock=clock), clock=clock)
        self._classify = Classify(database, CATALOGUE, clock)
        self._numbers = count(1)

    async def open(self, given: list[tuple[UUID, RuleDraft]]) -> None:
        await self._database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, self._clock()))
        await self._database.run(rules.add_rules(given, self._clock()))

    async def replace_rules(self, given: list[tuple[UUID, RuleDraft]]) -> None:
        known = await self._database.run(rules.enabled_rules())
        await asyncio.gather(*(self._database.run(rules.disable_rule(each.id, "", self._clock())) for each in known))
        await self._database.run(rules.add_rules(given, self._clock()))
        assert len(await self._database.run(rules.enabled_rules())) == len(given)

    async def cost(self, text: str) -> float:
        """The least processor time that a decision took. The first builds the rulebook, so it does not count."""
        await (await self.classifying(text))
        tries: list[float] = []
        for _ in range(TRIES):
            classifying = await self.classifying(text)
            begun = time.process_time()
            await classifying
            tries.append(time.process_time() - begun)
        return min(tries)

    async def classifying(self, text: str) -> Coroutine[Any, Any, None]:
        """The decision about a mail whose subject and odd header are that text, and whose body is as long as it may
        be; the mail is here, and its job is claimed."""
        headers = [["From", "a@b.example"], ["Subject", text], ["X-Odd", text]]
        given: dict[str, Any] = envelope(f"mail {next(self._numbers)}", {"headers": headers})
        given["payload"]["normalized_text"] = (text * 10)[:LONGEST_BODY]
        await self._intake.ingest(given)
        await self._dispatcher.tick()
        return self._classify_claimed(JobRun(await self._claimed(), self._database, self._clock, LASTING))

    async def _classify_claimed(self, run: JobRun) -> None:
        await self._classify(run)
        assert run.ended

    async def _claimed(self) -> Job:
        token, until = new_id(), self._clock() + timedelta(hours=1)
        await self._database.run(jobs.open_lease(token, "worker", self._clock(), until))
        (job,) = await self._database.run(jobs.claim(token, 1, self._clock()))
        return job
