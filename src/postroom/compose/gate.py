"""The gate of this process: checks in the database whether a request that changes a mailbox may leave.

The process lets requests out under a *grant* of two seconds, renewed as long as there is something to send. Renewing
registers the process with the generation of pauses that it has read. A pause raises the generation and waits until
every registered process has read it, or until its grant has surely expired: once `pause` has returned, nothing
leaves. Time is measured by a clock that keeps running during sleep: a process that was suspended wakes without a grant.

Each clearance reads the database itself: pauses, the account, the lease, the action, what is protected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from postroom.core.actions.permits import GRANT_S
from postroom.core.errors import LeaseLost, PostroomError, StoreError
from postroom.core.mail.gate import ClearanceExpired
from postroom.jobs.worker import holder_name
from postroom.store.actions import mailbox_writers, pauses
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.mail.labels import seen, sync_labels
from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock, wall_clock

if TYPE_CHECKING:
    from postroom.core.actions.permits import Permit
    from postroom.core.mail.mailbox import MailboxLabel
    from postroom.store.engine.database import Database

log = structlog.get_logger()

# How often a process with a grant checks for a pause: on SQLite it gets no notification.
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class _Grant:
    generation: int
    deadline: float


class MailboxGate:
    """One for all clients of a process. Without `open` it is just as safe, but a pause must wait out its grant."""

    def __init__(self, database: Database, clock: Clock = wall_clock, boot: BootClock = since_boot) -> None:
        self.protects_labels = False
        self._database = database
        self._clock = clock
        self._boot = boot
        self._id = new_id()
        self._grant: _Grant | None = None
        self._renewing = asyncio.Lock()
        self._generation: int | None = None
        self._registered = False
        self._on_wire: Counter[UUID] = Counter()
        self._heard = asyncio.Event()
        self._begun = asyncio.Event()
        """Set while this process is registered: only then is there something to look for."""

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, database: Database, clock: Clock = wall_clock) -> AsyncGenerator[MailboxGate]:
        """Open a gate that reacts to pauses at once."""
        gate = cls(database, clock)
        subscription = database.subscribe(pauses.CHANNEL, lambda _scope: gate._heard.set())
        looking = asyncio.create_task(gate._look_forever(), name="postroom-gate")
        try:
            yield gate
        finally:
            subscription.close()
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            with contextlib.suppress(StoreError):
                await gate._retire()

    async def clear(
        self, permits: Sequence[Permit], labels: Mapping[str, frozenset[str] | None], listed: frozenset[UUID]
    ) -> _Clearance:
        """Check all permits at once. Raise what the database raises."""
        grant = await self._current_grant()
        started = self._boot()
        found = await self._database.run(mailbox_writers.check_permits(permits, labels, listed))
        self.protects_labels = found.protects_labels
        if found.generation != grant.generation:
            grant = await self._renew(grant)
        refused, now = dict(found.refused), self._boot()
        for place, permit in enumerate(permits):
            if permit.lease.deadline <= now:
                refused[place] = LeaseLost("the lease has expired; another worker may have the job")
        leases = [permit.lease.deadline for place, permit in enumerate(permits) if place not in refused]
        deadline = min([grant.deadline, started + GRANT_S, *leases])
        return _Clearance(self, permits[0].account_id, deadline, refused, found)

    async def learn_labels(self, account_id: UUID, labels: Sequence[MailboxLabel]) -> None:
        """Store the labels that the mailbox has now."""
        await self._database.run(sync_labels(account_id, seen(labels), self._clock()))

    def is_good(self, generation: int, deadline: float) -> bool:
        """Return whether a request cleared under this generation may still be sent, up to the deadline."""
        grant = self._grant
        return grant is not None and grant.generation == generation and self._boot() < deadline

    def count(self, account_id: UUID, change: int) -> None:
        """Count requests in flight, for the result of a pause."""
        self._on_wire[account_id] += change

    async def _current_grant(self) -> _Grant:
        """Return the grant, renewed once half of it is over."""
        grant = self._grant
        if grant is not None and self._boot() < grant.deadline - GRANT_S / 2:
            return grant
        return await self._renew(grant)

    async def _renew(self, old: _Grant | None) -> _Grant:
        """Register this process, unless another task has just done so. Raise what the database raises."""
        async with self._renewing:
            if self._grant is not None and self._grant is not old:
                return self._grant
            held = None if self._grant is None else self._grant.generation
            started = self._boot()
            generation = await self._register(held)
            if held is not None and generation != held:
                # From here on nothing leaves under the old grant; only then may a pause see the registration.
                self._grant = None
                started = self._boot()
                generation = await self._register(None)
            self._grant = _Grant(generation, started + GRANT_S)
            self._generation = generation
            return self._grant

    async def _register(self, held: int | None) -> int:
        on_wire = {str(account): count for account, count in self._on_wire.items() if count}
        self._registered = True
        self._begun.set()
        verb = mailbox_writers.register_writer(self._id, holder_name(), on_wire, held, self._clock())
        return await self._database.run(verb)

    async def _look_forever(self) -> None:
        while True:
            await self._begun.wait()
            await signalled(self._heard, LOOK_EVERY_S)
            try:
                await self._look()
            except StoreError as error:
                log.warning("gate.interrupted", error=type(error).__name__)

    async def _look(self) -> None:
        """React to a pause; a process with nothing to send and nothing in flight need not be waited for."""
        self._heard.clear()
        if not self._registered:
            self._begun.clear()
            return
        grant = self._grant
        if (grant is None or self._boot() >= grant.deadline) and not any(self._on_wire.values()):
            await self._retire()
        elif await self._database.run(mailbox_writers.pause_generation()) != self._generation:
            await self._renew(grant)

    async def _retire(self) -> None:
        async with self._renewing:
            self._grant = None
            if self._registered:
                await self._database.run(mailbox_writers.retire_writer(self._id))
                self._registered = False
                self._begun.clear()


class _Clearance:
    """See `gmail.gate.Clearance`. Valid for one generation of pauses: the one at which the database was read."""

    def __init__(
        self,
        gate: MailboxGate,
        account_id: UUID,
        deadline: float,
        refused: Mapping[int, PostroomError],
        found: mailbox_writers.PermitCheck,
    ) -> None:
        self.refused = refused
        self.wants_labels = found.wants_labels
        self.wants_names = bool(found.unknown_labels)
        self._gate = gate
        self._account_id = account_id
        self._generation = found.generation
        self._deadline = deadline
        self._has_left = False

    def check(self) -> None:
        if not self._gate.is_good(self._generation, self._deadline):
            raise ClearanceExpired
        if not self._has_left:
            self._has_left = True
            self._gate.count(self._account_id, 1)

    @contextlib.contextmanager
    def on_the_wire(self) -> Generator[None]:
        try:
            yield
        finally:
            if self._has_left:
                self._has_left = False
                self._gate.count(self._account_id, -1)
