"""Random interleavings of all that can happen to the inbox, on both databases, against a model in memory.

They keep: nothing vanishes and nothing is there twice; each is handed out in the order of single picks; what is held
is its holder's; what ended for another leads there. A program is a list of moves with two numbers each, which choose
among what there is at that moment. Hypothesis makes the programs and prints the one that failed; the trace says what
it did.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from postroom.core.queue.queues import QueuePolicy
from postroom.intake.buffer import Buffer, Delivery
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.opening import open_database
from postroom.store.intake import inbox
from postroom.store.intake.acceptance import Accepted
from support.clocks import ManualClock
from support.scale import scale
from support.store.dump import clear
from support.store.inbox_interpreter import MOVES, InboxInterpreter
from support.store.inbox_model import Model
from support.store.inbox_setup import InboxSetup, check_books, event, look, mail, refs, reopened

CONSUMERS = 4

Program = list[tuple[str, int, int]]
programs = st.lists(
    st.tuples(st.sampled_from(MOVES), st.integers(0, 1000), st.integers(0, 1000)), min_size=30, max_size=90
)


class SharedDatabase:
    """One database for all programs, emptied between them, and the loop that it lives on."""

    def __init__(self, runner: asyncio.Runner, setup: InboxSetup) -> None:
        self.runner = runner
        self.setup = setup

    def run(self, program: Program) -> None:
        self.runner.run(self._run(program))

    async def _run(self, program: Program) -> None:
        self.setup.clock.now = ManualClock().now
        await clear(self.setup.database)
        await self.setup.open_account()
        await self.setup.open_backfill()
        interpreter = InboxInterpreter(self.setup)
        try:
            for move in program:
                await interpreter.do(*move)
            await interpreter.drain()
        except BaseException:
            note("\n".join(interpreter.trace))
            raise


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedDatabase]:
    url = request.getfixturevalue("lasting_postgres_url") if request.param == "postgres" else None
    with asyncio.Runner() as runner:
        shared = SharedDatabase(runner, InboxSetup(runner.run(open_database(tmp_path, url)), ManualClock()))
        yield shared
        runner.run(clear(shared.setup.database))
        runner.run(shared.setup.database.close())


@settings(
    max_examples=scale(12, 1_000),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(programs)
def test_random_interleavings_keep_the_promises_of_the_inbox(shared: SharedDatabase, program: Program) -> None:
    shared.run(program)


# Several consumers at once.


class Journal:
    """Every lease in the order in which they were made: each notes its turn while it still has the queue to itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns: dict[UUID, tuple[int, int, inbox.Lease]] = {}
        turn, lease = count(), inbox.lease.script

        @transaction
        def noted(
            policy: QueuePolicy, most: int, token: UUID, now: Any, summary_id: UUID, limits: Mapping[str, int]
        ) -> Script[inbox.Lease]:
            made = yield from lease(policy, most, token, now, summary_id, limits)
            self.turns[token] = next(turn), most, made
            return made

        monkeypatch.setattr(inbox, "lease", noted)

    def since(self, turn: int) -> list[tuple[int, int, inbox.Lease]]:
        return sorted(each for each in self.turns.values() if each[0] >= turn)


class Crowd:
    """Four consumers of one queue, each with a database of its own, and the model that follows them."""

    def __init__(self, setup: InboxSetup, queue: str, journal: Journal, random: Random) -> None:
        self.setup = setup
        self.policy = setup.queues[queue]
        self.model = Model(setup.queues)
        self._journal = journal
        self._random = random
        self._seen = 0
        self._number = 0
        self._held: list[Delivery] = []
        self._done: set[UUID] = set()

    async def arrive(self, many: int) -> None:
        """Several hand in at once; the order in which they were accepted is the one of the table."""
        given = [self._new() for _ in range(many)]
        await asyncio.gather(*(self.setup.batch(*given[n::3]) for n in range(3)))
        for row in (await self.setup.look())[len(self.model.messages) :]:
            self.model.add(self.policy, row.tier, self.setup.clock()).id = row.id

    def _new(self) -> dict[str, Any]:
        self._number += 1
        if self.policy.queue == "email":
            return mail(self._number, self._random.choice(("high_priority", "high_priority", "interactive", "default")))
        kind = self._random.choice(("callback_query", "callback_query", "deploy.failed", None, "test.x"))
        return event(self._number, event={"external_event_id": f"e{self._number}", "kind": kind})

    async def consume(self) -> None:
        databases = [reopened(self.setup.database) for _ in range(CONSUMERS)]
        buffers = [Buffer(each, self.setup.queues, self.setup.clock) for each in databases]
        await asyncio.gather(*(self._one(each, Random(self._random.random())) for each in buffers))
        for each in databases:
            await each.close()

    async def _one(self, buffer: Buffer, random: Random) -> None:
        """Acknowledges most, and goes away with the rest in its hands."""
        for _ in range(8):
            found = await buffer.next(self.policy.queue, random.randint(1, 6))
            done = [each for each in found if random.random() < 0.8]
            self._held += [each for each in found if each not in done]
            if done:
                assert await buffer.ack(refs(done)) == [None] * len(done)
                self._done |= {each.message_id for each in done}

    def follow(self) -> None:
        """What was leased is what single picks, one after another, would have taken."""
        now = self.setup.clock()
        for turn, most, (leased, _) in self._journal.since(self._seen):
            self._seen = turn + 1
            taken = self.model.lease(self.policy, most, leased[0].token if leased else None, now)
            for each, (message, _) in zip(leased, taken, strict=True):
                message.id = message.id or each.id
            assert [(each.id, each.counted, each.starvation_override) for each in leased] == [
                (message.id, picked.counted, picked.starvation_override) for message, picked in taken
            ]
        for message in self.model.messages:
            if message.id in self._done and message.state == "leased":
                message.end("done")

    async def pass_time(self) -> None:
        """Some of what is held is returned, and the rest runs out in time."""
        by_id = {each.id: each for each in self.model.messages}
        returned = [each for each in self._held[:60] if self._random.random() < 0.5]
        if returned:
            lost = await self.setup.buffer.nack(refs(returned), "no")
            held = [each for each, outcome in zip(returned, lost, strict=True) if outcome is None]
            self.model.give_back([by_id[each.message_id] for each in held])
        self._held = [each for each in self._held if each not in returned]
        now = self.setup.clock.forward(self._random.choice((1, 20, 100, 400)))
        await self.setup.buffer.sweep()
        self.model.return_expired(now)
        self.model.sweep(self.policy, now)

    async def check(self) -> None:
        rows = await self.setup.look()
        check_books(rows, accepted=self._number)
        assert [(row.id, row.state, row.attempts) for row in rows] == [
            (each.id, each.state, each.attempts) for each in self.model.messages
        ]


@pytest.mark.parametrize("queue", ["email", "gateway"])
async def test_four_consumers_and_restarts_take_in_the_order_of_single_picks(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    seed = 11
    print(f"seed {seed}")
    setup = InboxSetup(database, clock)
    await setup.open_account()
    crowd = Crowd(setup, queue, Journal(monkeypatch), Random(seed))
    for _ in range(scale(5, 40)):
        await crowd.arrive(60)
        await crowd.consume()
        crowd.follow()
        await crowd.pass_time()
        await setup.restart()
        await crowd.check()
    assert {each.state for each in crowd.model.messages} >= {"waiting", "done"}
    await setup.close()


async def test_nothing_vanishes_while_producers_consumers_and_sweepers_all_work_at_once(
    database: Database, clock: ManualClock
) -> None:
    seed = 5
    print(f"seed {seed}")
    databases = [reopened(database) for _ in range(3)]
    accepted = Counter[str | None]()
    done = Counter[UUID]()
    producing = True

    async def produce(number: int) -> None:
        random, intake = Random(seed + number), Intake(databases[number % 3], None, clock)
        for _ in range(scale(12, 200)):
            batch = [_random_event(random) for _ in range(random.choice((1, 5, 20)))]
            for answer in await intake.ingest_batch(batch):
                assert isinstance(answer, Accepted), answer
                accepted[answer.known_by] += 1

    async def consume(number: int) -> None:
        random, buffer = Random(seed + number), Buffer(databases[number % 3], clock=clock)
        idle = 0
        while producing or idle < 3:
            found = await buffer.next("gateway", random.randint(1, 10))
            idle = 0 if found else idle + 1
            back = [each for each in found if random.random() < 0.2]
            for each in found:
                if each not in back and await buffer.ack(refs([each])) == [None]:
                    done[each.message_id] += 1
            if back:
                await buffer.nack(refs(back), "no")
            clock.forward(random.choice((0, 0.5, 2)))
            await buffer.sweep()

    consuming = [asyncio.create_task(consume(100 + n)) for n in range(CONSUMERS)]
    await asyncio.gather(*(produce(n) for n in range(6)))
    producing = False
    await asyncio.gather(*consuming)
    rows = await look(database)
    check_books(rows, accepted=accepted[None] + accepted["text"])
    assert {row.id for row in rows if row.state == "done"} == set(done)
    assert set(done.values()) == {1}
    assert not [row for row in rows if row.state == "waiting"]
    for each in databases:
        await each.close()


def _random_event(random: Random) -> dict[str, Any]:
    number = random.randrange(2000)
    kind = (None, "test.x", "deploy.failed", "callback_query")[number % 4]
    text = f"event {number % 1500}"
    name = {"external_event_id": f"event-{number}", "kind": kind}
    return event(number, event=name, payload={"normalized_text": text})
