"""Pauses, and processes frozen past their leases, at random moments under load with waits for quota and for 429s.

The mailbox is the evidence: it records every request that changes it when the whole of it has come, by the clock that
all processes share. After `pause` has answered nothing may come but what it said was on the wire, and nothing may come
by a claim that is over.
"""

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from postroom.core.jobs.job import JobView, NewJob
from postroom.operations.actions.pausing import Stopped, stop
from postroom.operations.caller import Caller
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.engine.opening import open_database
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.people.audit import Signature
from postroom.system.boot_clock import since_boot
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running
from support.crash.evidence import Place
from support.crash.stopping_process import ATTEMPTS, CHANGE, TYPES
from support.processes import Child, ProcessGroup
from support.scale import scale

PROCESS = "support.crash.stopping_process"
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
MESSAGES = 2_000
BACKLOG = 150
FROZEN = 0.2  # of the pauses, so many find a process frozen
PATIENCE_S = 120.0
# A write takes milliseconds, unless somebody else holds the lock.
LOCK_S = 1.0

_ONE = re.compile(rb"/messages/(\w+)/modify(?: HTTP/1\.1)?.*?\"addLabelIds\":\[([^\]]*)\]", re.DOTALL)
_LABEL = re.compile(rb'"([^"]+)"')


class Seen(NamedTuple):
    """A change as it came in a request: when, to which message, and which labels it puts on."""

    at: float
    message_id: str
    labels: frozenset[str]


@dataclass
class MailboxRecorder:
    """Every request that changes the mailbox, when the whole of it has come."""

    requests: list[float] = field(default_factory=list[float])
    changes: list[Seen] = field(default_factory=list[Seen])
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def around(self, app: ASGIApp) -> ASGIApp:
        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            body = bytearray(scope.get("path", "").encode())

            async def received() -> Any:
                message = await receive()
                if message["type"] == "http.request":
                    body.extend(message.get("body", b""))
                    if not message.get("more_body"):
                        self._note(bytes(body))
                return message

            await app(scope, received, send)

        return noting

    def _note(self, request: bytes) -> None:
        found = _ONE.findall(request)
        if found:
            now = since_boot()
            self.requests.append(now)
            self.changes += [Seen(now, id.decode(), _labels(labels)) for id, labels in found]
            self.news.set()

    def after(self, moment: float) -> int:
        return sum(at > moment for at in self.requests)


def _labels(text: bytes) -> frozenset[str]:
    return frozenset(each.decode() for each in _LABEL.findall(text))


class Trusted(NamedTuple):
    """A claim under which a frozen worker may not send any more."""

    message_id: str
    attempt_label: str


@dataclass
class StoppingSetup:
    place: Place
    database: Database
    mailbox: Mailbox
    emulator: Emulator
    recorder: MailboxRecorder
    rng: Random
    account_id: UUID
    attempts: list[str]
    message_ids: list[str]
    workers: dict[str, Child] = field(default_factory=dict[str, Child])
    asked: int = 0

    async def fill(self) -> None:
        """There is always something to do, and more than two requests at once can carry."""
        if len(await self.live()) < BACKLOG:
            await self.database.run(jobs.enqueue_many([self._job() for _ in range(BACKLOG)], wall_clock()))

    def _job(self) -> NewJob:
        self.asked += 1
        payload: dict[str, object] = {
            "account_id": str(self.account_id),
            "gmail_id": self.message_ids[self.asked % MESSAGES],
            "attempts": self.attempts,
        }
        return new_job(TYPES, CHANGE, payload)

    async def live(self) -> list[JobView]:
        found = await self.database.run(jobs.list_jobs(limit=2_000))
        return [each for each in found if each.state in ("queued", "running")]

    async def moment(self) -> None:
        """A random moment under load, now and then while everybody waits for the end of a rate limit."""
        await self.fill()
        wanted = len(self.recorder.requests) + self.rng.randint(1, 8)
        await self.until(lambda: _true(len(self.recorder.requests) >= wanted))
        if self.rng.random() < 0.4:
            limit = Fault(429, "rateLimitExceeded", path="/modify", times=self.rng.randint(1, 3))
            self.emulator.faults.order(limit)
            wanted = len(self.recorder.requests) + 1
            await self.until(lambda: _true(len(self.recorder.requests) >= wanted))

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await holds():
                self.recorder.news.clear()
                await signalled(self.recorder.news, 0.05)

    async def freeze(self, worker: Child) -> None:
        """Stops the process while it does not hold SQLite's only write lock: all others would stand still
        with it, and there would be nothing to see."""
        while True:
            worker.signal(signal.SIGSTOP)
            try:
                async with asyncio.timeout(LOCK_S):
                    await self.database.run(jobs.enqueue_many([self._job()], wall_clock()))
                return
            except TimeoutError:
                worker.signal(signal.SIGCONT)
                await self.moment()

    async def all_wait(self) -> bool:
        return all(each.parked_by is not None for each in await self.live())

    def signed(self) -> Signature:
        return Signature(new_id(), "test", "admin", "a trial")


async def _true(value: bool) -> bool:
    return value


@asynccontextmanager
async def opened(place: Place, children: ProcessGroup, rng: Random) -> AsyncGenerator[StoppingSetup]:
    database = await open_database(place.folder, place.url)
    mailbox, recorder = Mailbox(OWNER, Random(rng.random())), MailboxRecorder()
    emulator = Emulator(mailbox, TOKEN)
    names = [*(f"Attempt {number}" for number in range(ATTEMPTS)), "Worker 1", "Worker 2"]
    labels = [mailbox.labels.create(name, {}).id for name in names]
    message_ids = [mailbox.deliver(b"Subject: Hello\r\n\r\nHello.\r\n").id for _ in range(MESSAGES)]
    account = await database.run(mail.keep_account(new_id(), "gmail", f"gmail:user:{OWNER}", OWNER, wall_clock()))
    setup = StoppingSetup(place, database, mailbox, emulator, recorder, rng, account.id, labels[:ATTEMPTS], message_ids)
    async with running(recorder.around(emulator.app())) as url:
        for label in labels[ATTEMPTS:]:
            words = ("--gmail", url, "--token", TOKEN, "--label", label)
            setup.workers[label] = await children.start(PROCESS, *place.arguments(), *words)
        for worker in setup.workers.values():
            await worker.hear("ready")
        try:
            yield setup
        finally:
            for worker in setup.workers.values():
                worker.signal(signal.SIGCONT)
                await worker.kill()
            await database.close()


@pytest.fixture
async def setup(place: Place, children: ProcessGroup, rng: Random) -> AsyncGenerator[StoppingSetup]:
    async with opened(place, children, rng) as setup:
        yield setup


async def test_once_pause_has_answered_no_request_starts(setup: StoppingSetup) -> None:
    told: Counter[str] = Counter()
    for _ in range(scale(10, 200)):
        await setup.moment()
        frozen = setup.rng.choice(list(setup.workers.values())) if setup.rng.random() < FROZEN else None
        if frozen is not None:
            await setup.freeze(frozen)
        stopped = await stop(Caller(setup.database, setup.signed()), pauses.ALL, "a trial")
        answered = since_boot()
        if frozen is not None:
            frozen.signal(signal.SIGCONT)
        # Everything that waited in the limiter has been refused by then, also in the one that was frozen.
        await setup.until(setup.all_wait)
        _check(stopped, setup.recorder.after(answered))
        told.update(on_wire=stopped.on_wire, silent=stopped.silent, late=setup.recorder.after(answered))
        await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    print(f"{dict(told)} of {len(setup.recorder.requests)} requests")


def _check(stopped: Stopped, came: int) -> None:
    assert came <= stopped.on_wire, f"{came} requests came after the answer, which told of {stopped.on_wire}"


async def test_a_process_that_wakes_after_its_lease_sends_nothing_of_what_it_held(setup: StoppingSetup) -> None:
    held = 0
    for _ in range(scale(3, 100)):
        await setup.moment()
        label, worker = setup.rng.choice(list(setup.workers.items()))
        await setup.freeze(worker)
        claims = await _claims_of(setup, worker)
        await setup.until(lambda pid=worker.pid: _has_no_lease(setup.place, pid))
        lost = since_boot()
        worker.signal(signal.SIGCONT)
        seen = len(setup.recorder.changes)
        await setup.until(lambda label=label, seen=seen: _works_on(setup, label, seen))
        stale = [
            each
            for each in setup.recorder.changes
            if each.at > lost and label in each.labels and any(_is_by(each, claim) for claim in claims)
        ]
        assert stale == []
        held += len(claims)
    print(f"{held} claims were held by frozen processes")
    assert held


async def _claims_of(setup: StoppingSetup, worker: Child) -> list[Trusted]:
    """What a frozen worker holds."""
    queue = "job_queue q JOIN job_bodies b ON b.seq = q.seq" if setup.place.url else "jobs q"
    payload = "b.payload_json" if setup.place.url else "q.payload_json"
    rows = await setup.place.rows(
        f"SELECT {payload}, q.attempts FROM {queue} JOIN job_leases l ON l.token = q.lease_token"
        f" WHERE q.state = 'running' AND l.holder LIKE '%:{worker.pid}'"
    )
    found = [(re.search(r'"gmail_id": ?"(\w+)"', str(text)), attempts) for text, attempts in rows]
    return [
        Trusted(match[1], setup.attempts[min(attempts, ATTEMPTS) - 1]) for match, attempts in found if match is not None
    ]


def _is_by(seen: Seen, claim: Trusted) -> bool:
    return seen.message_id == claim.message_id and claim.attempt_label in seen.labels


async def _works_on(setup: StoppingSetup, label: str, seen: int) -> bool:
    """Whether the process has sent something again; there is enough to do for both."""
    await setup.fill()
    return any(label in each.labels for each in setup.recorder.changes[seen:])


async def _has_no_lease(place: Place, pid: int) -> bool:
    return await place.rows(f"SELECT 1 FROM job_leases WHERE holder LIKE '%:{pid}'") == []
