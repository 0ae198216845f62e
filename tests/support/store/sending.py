"""Mail sent through a mailbox whose calls fail, by a process that dies."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import TypeVar
from uuid import UUID

from postroom.core.errors import LeaseLost, StoreError
from postroom.core.lifecycle import DELIVERY
from postroom.core.mail.carrier import MARK, DraftKept
from postroom.mailboxes.gmail.errors import GmailRefused, RateLimited, ServerError, Unreachable
from postroom.outbound.queue.delivery import Delivery
from postroom.outbound.queue.pace import Pace
from postroom.store.actions import actions, pauses
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound
from support.gates import LASTING
from support.mailboxes import always
from support.store.fault_cases_outbound import (
    admitted,
    stored,
)
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

T = TypeVar("T")


PACE = Pace(looks=(0.0, 1.0))


ENDS = DELIVERY.terminal | {"unknown"}


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
                raise GmailRefused("a call", 400, "invalidArgument", "look")
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

    def __init__(self, setup: JobSetup, seed: int) -> None:
        self.setup = setup
        self.rng = Random(seed)
        self.post = PostOffice(self.rng)
        self.database = Mortal(setup.database, self.rng, self.post)
        self.seen: dict[UUID, list[str]] = {}

    async def admit(self, mails: int) -> None:
        about = await stored(self.setup)
        for number in range(mails):
            new = await admitted(self.setup, "forward", about, f"r{number}@example.com")
            self.seen[new.id] = ["queued"]

    async def round(self) -> bool:
        """One look at what is due. False when nothing can happen any more."""
        now = self.setup.clock.forward(self.rng.choice((1, 90, 700, 15_000)))
        leased = await self.setup.database.run(outbound.lease_mail(new_id(), 2, now, now + PACE.lease))
        await self.look()
        for each in leased:
            delivery = Delivery(self.database, each, LASTING, always(self.post), PACE, self.setup.clock, self.sleep)
            with contextlib.suppress(Killed, StoreError, LeaseLost):
                await delivery.attempt()
            await self.look()
        return any(states[-1] not in ENDS for states in self.seen.values())

    async def sleep(self, seconds: float) -> None:
        self.setup.clock.forward(seconds)
        await asyncio.sleep(0)

    async def look(self) -> None:
        for view in await self.setup.database.run(outbound.list_mail(1_000)):
            recipients = await self.setup.database.run(outbound.list_recipients(view.id))
            assert {each.state for each in recipients} == {view.state}
            states = self.seen[view.id]
            if states[-1] != view.state:
                states.append(view.state)

    async def disturb(self) -> None:
        match self.rng.randrange(10):
            case 0:
                self.post.meddle()
            case 1:
                await self.setup.database.run(pauses.pause(pauses.ALL, "a look", signed(), self.setup.clock()))
            case 2 | 3:
                await self.setup.database.run(pauses.resume(pauses.ALL, signed(), self.setup.clock()))
            case _:
                pass


class Busy(PostOffice):
    """Nothing is sent; drafts can be made when it `is_open`."""

    def __init__(self, run: Run, is_open: bool) -> None:
        super().__init__(run.rng)
        self.trouble = 0
        self.is_open = is_open

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        if not self.is_open:
            raise ServerError("drafts.create", 503)
        return await super().create_draft(mail, thread_id)

    async def send_draft(self, draft_id: str) -> str | None:
        raise ServerError("drafts.send", 503)


async def started(setup: JobSetup, is_open: bool = True) -> Run:
    """A mail that was tried once."""
    run = Run(setup, seed=1)
    run.post = Busy(run, is_open)
    run.database = Mortal(setup.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    return run


async def shown(setup: JobSetup) -> tuple[outbound.MailView, actions.ActionView]:
    (delivery,) = await setup.database.run(outbound.list_mail(9))
    (action,) = await setup.database.run(actions.list_actions(9))
    return delivery, action


async def view(setup: JobSetup) -> outbound.MailView:
    (found,) = await setup.database.run(outbound.list_mail(10))
    return found


async def action_of(setup: JobSetup) -> actions.ActionView:
    return (await setup.database.run(actions.list_actions(1)))[0]
