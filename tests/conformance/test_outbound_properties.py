"""Whatever is lost, refused, deleted or killed, at whichever step: no mail is sent twice, and none is forgotten.

The post office is a model of a mailbox whose calls fail before or after their effect; the database is real, and dies
before or after a commit. Every run is drawn from its seed.
"""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count, pairwise
from random import Random
from typing import TypeVar
from uuid import UUID

import pytest

from conformance.desk import Desk
from conformance.fault_cases_outbound import admitted, stored
from conformance.fault_cases_registry import signed
from conftest import scale
from postroom.core.errors import LeaseLost, StoreError
from postroom.core.lifecycle import DELIVERY
from postroom.core.mail.carrier import MARK, DraftKept
from postroom.gmail.errors import RateLimited, Refused, ServerError, Unreachable
from postroom.outbound.delivery import Delivery
from postroom.outbound.pace import Pace
from postroom.store import actions, outbound, pauses
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from postroom.store.engine.ids import new_id
from support.gates import LASTING
from support.mailboxes import always

T = TypeVar("T")

PACE = Pace(looks=(0.0, 1.0))
ENDS = DELIVERY.terminal | {"unknown"}
OF_ACTION = {"delivered": "completed", "bounced": "failed", "expired": "failed", "canceled": "canceled",
    "unknown": "executing"}  # fmt: skip


class Killed(BaseException):
    """The process is gone."""


class PostOffice:
    """A mailbox as far as sending is concerned. `trouble` is how many of a hundred calls go wrong."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.trouble = 40
        self.drafts: dict[str, UUID] = {}
        self.in_sent: dict[str, UUID] = {}
        self.left: Counter[UUID] = Counter()
        self.tampered: set[UUID] = set()
        self._numbers = count(1)

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        mark = UUID(mail.decode().partition(f"{MARK}: ")[2][:36])
        return await self._called(lambda: self._created(mark), refusable=True)

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        return await self._called(lambda: [DraftKept(id, id) for id, kept in self.drafts.items() if kept == mark])

    async def has_draft(self, draft_id: str) -> bool:
        return await self._called(lambda: draft_id in self.drafts)

    async def send_draft(self, draft_id: str) -> str | None:
        return await self._called(lambda: self._sent(draft_id), refusable=True)

    async def delete_draft(self, draft_id: str) -> None:
        await self._called(lambda: self.drafts.pop(draft_id, None))

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        return await self._called(lambda: next((id for id, kept in self.in_sent.items() if kept == mark), None))

    def meddle(self) -> None:
        """The user deletes a draft, or a copy of what was sent."""
        place = self.rng.choice((self.drafts, self.in_sent))
        if place:
            self.tampered.add(place.pop(self.rng.choice(sorted(place))))

    def _created(self, mark: UUID) -> DraftKept:
        id = f"d{next(self._numbers)}"
        self.drafts[id] = mark
        return DraftKept(id, f"m-{id}")

    def _sent(self, draft_id: str) -> str | None:
        if draft_id not in self.drafts:
            return None
        mark, id = self.drafts.pop(draft_id), f"s{next(self._numbers)}"
        self.left[mark] += 1
        self.in_sent[id] = mark
        return id

    async def _called(self, effect: Callable[[], T], refusable: bool = False) -> T:
        if self.rng.randrange(100) >= self.trouble:
            return effect()
        match self.rng.randrange(8):
            case 0 | 1 | 2:
                effect()
                raise self.rng.choice((Unreachable("a call", "reset"), ServerError("a call", 502), Killed()))
            case 3:
                raise Killed
            case 4:
                raise RateLimited("a call", "rate", timedelta(seconds=self.rng.randrange(600)))
            case 5 if refusable and self.rng.randrange(4) == 0:
                raise Refused("a call", 400, "invalidArgument", "look")
            case _:
                raise ServerError("a call", 503)


class Mortal:
    """A database whose process may die before or after a commit."""

    def __init__(self, database: Database, rng: Random, post: PostOffice) -> None:
        self._database = database
        self._rng = rng
        self._post = post

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        fate = self._rng.randrange(1000) if self._post.trouble else 999
        if fate < 40:
            raise Killed
        if fate < 60:
            raise StoreError("the disk is on fire")
        result = await self._database.run(transaction)
        if fate < 100:
            raise Killed
        return result

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        """It is the test's."""


class Run:
    """Some mails, and everything that happens to them."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self.desk = desk
        self.rng = Random(seed)
        self.post = PostOffice(self.rng)
        self.database = Mortal(desk.database, self.rng, self.post)
        self.seen: dict[UUID, list[str]] = {}

    async def admit(self, mails: int) -> None:
        about = await stored(self.desk)
        for number in range(mails):
            new = await admitted(self.desk, "forward", about, f"r{number}@example.com")
            self.seen[new.id] = ["queued"]

    async def round(self) -> bool:
        """One look at what is due. False when nothing can happen any more."""
        now = self.desk.clock.forward(self.rng.choice((1, 90, 700, 15_000)))
        leased = await self.desk.database.run(outbound.lease_deliveries(new_id(), 2, now, now + PACE.lease))
        await self.look()
        for each in leased:
            delivery = Delivery(self.database, each, LASTING, always(self.post), PACE, self.desk.clock, self.sleep)
            with contextlib.suppress(Killed, StoreError, LeaseLost):
                await delivery.attempt()
            await self.look()
        return any(states[-1] not in ENDS for states in self.seen.values())

    async def sleep(self, seconds: float) -> None:
        self.desk.clock.forward(seconds)
        await asyncio.sleep(0)

    async def look(self) -> None:
        for view in await self.desk.database.run(outbound.list_deliveries(1_000)):
            states = self.seen[view.id]
            if states[-1] != view.state:
                states.append(view.state)

    async def disturb(self) -> None:
        match self.rng.randrange(10):
            case 0:
                self.post.meddle()
            case 1:
                await self.desk.database.run(pauses.pause(pauses.ALL, "a look", signed(), self.desk.clock()))
            case 2 | 3:
                await self.desk.database.run(pauses.resume(pauses.ALL, signed(), self.desk.clock()))
            case _:
                pass


@pytest.mark.parametrize("chunk", range(2))
async def test_no_mail_is_sent_twice_and_none_is_forgotten(sqlite_desk: Desk, chunk: int) -> None:
    outcomes: Counter[str] = Counter()
    seed = int(os.environ.get("POSTROOM_TEST_SEED") or Random().randrange(2**32))
    print(f"seed {seed}")
    run = Run(sqlite_desk, seed)
    await run.admit(scale(15, 100))
    for _ in range(scale(60, 600)):
        await run.round()
        await run.disturb()
    await sqlite_desk.database.run(pauses.resume(pauses.ALL, signed(), sqlite_desk.clock()))
    run.post.trouble = 0
    async with asyncio.timeout(scale(60, 600)):
        while await run.round():
            pass
    acted = {each.id: each for each in await sqlite_desk.database.run(actions.list_actions(10_000))}
    for view in await sqlite_desk.database.run(outbound.list_deliveries(10_000)):
        outcomes[view.state] += 1
        check(run, view, acted[view.action_id])
    print(dict(outcomes))
    assert outcomes["delivered"] > 0


class Refusing(PostOffice):
    """It takes no mail."""

    async def send_draft(self, draft_id: str) -> str | None:
        raise Refused("drafts.send", 400, "invalidArgument", "look")


class DiesAt(Mortal):
    """The process dies right before the transaction of this name, once."""

    def __init__(self, database: Database, post: PostOffice, name: str) -> None:
        super().__init__(database, post.rng, post)
        self._name = name

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.name == self._name:
            self._name = ""
            raise Killed
        return await super().run(transaction)


async def test_a_process_killed_while_it_ends_a_refused_mail_leaves_no_doubt_about_it(sqlite_desk: Desk) -> None:
    run = Run(sqlite_desk, seed=1)
    run.post = Refusing(run.rng)
    run.post.trouble = 0
    run.database = DiesAt(sqlite_desk.database, run.post, "bounce")
    await run.admit(1)
    while await run.round():
        pass
    assert [states[-1] for states in run.seen.values()] == ["bounced"]
    assert run.post.drafts == {}


def check(run: Run, view: outbound.DeliveryView, action: actions.ActionView) -> None:
    sent = run.post.left[view.id]
    assert sent <= 1, "sent twice"
    assert action.state == OF_ACTION[view.state]
    match view.state:
        case "delivered":
            assert sent == 1
            assert action.undo_hint is not None
            assert action.undo_hint["sent_message_id"] == view.sent_message_id
            assert view.sent_message_id in run.post.in_sent or view.id in run.post.tampered
        case "unknown":
            assert view.id in run.post.tampered, "nobody meddled, and yet nobody knows"
        case _:
            assert sent == 0
    for before, after in pairwise(run.seen[view.id]):
        assert DELIVERY.may(before, after) or _through_one(before, after), f"{before} became {after}"


def _through_one(before: str, after: str) -> bool:
    """A look may miss one state in between."""
    return any(DELIVERY.may(between, after) for between in DELIVERY.moves[before])
