"""Notices that the database was restored, and compares it with the mailboxes before anything leaves them.

A process calls `observe` before it begins to work, and `run` beside its sender. The mailbox knows what the database
cannot: before the first mail leaves, the newest sent mail is compared with the database. Mail of ours that the database
does not know means that it was restored, however that was done.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import structlog

from postroom.core.errors import PostroomError, StoreError
from postroom.core.mail.carrier import SentMailboxOf
from postroom.core.mail.restores import is_from
from postroom.core.roles import Role
from postroom.outbound.queue.delivery import RestoreSuspected
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.installation.restores import MARGIN, PendingCheck, pending_checks, settle_restored, unknown_mail
from postroom.store.installation.timeline import CHANNEL, Seen, Timeline, observe_timeline, place_of, suspect_restore
from postroom.store.people.audit import Signature
from postroom.system.private_files import private_folder, replace_private
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

FILE = "timeline.json"


@dataclass(frozen=True, slots=True)
class RestorePace:
    """`settle` is how long after a restore a request of an ended process may still have its effect."""

    settle: timedelta = timedelta(seconds=30)
    beat: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=5)


class RestoreWatch:
    """Watches one database for one process."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        mailbox_of: SentMailboxOf,
        pace: RestorePace | None = None,
        clock: Clock = wall_clock,
        wake_snoozed: Callable[[UUID], Awaitable[object]] | None = None,
    ) -> None:
        """`wake_snoozed` brings back mail that was snoozed in an account after the backup."""
        self._database = database
        self._file = folder / FILE
        self._mailbox_of = mailbox_of
        self._pace = pace or RestorePace()
        self._clock = clock
        self._wake_snoozed = wake_snoozed
        self._timeline: Timeline | None = None
        self._looked_at: set[UUID] = set()
        self._looking = asyncio.Lock()
        self._wake = asyncio.Event()

    async def observe(self) -> Timeline:
        """Record that the database is in use, and notice whether it was restored. Call it before any other work."""
        seen = self._timeline.seen if self._timeline is not None else read_seen(self._file)
        place = await place_of(self._database)
        postgres = self._database if isinstance(self._database, PostgresDatabase) else None
        acknowledged = postgres.acknowledged if postgres is not None else ()
        observing = observe_timeline(new_id(), place, seen, _signature(), self._clock(), acknowledged)
        timeline = await self._database.run(observing)
        if postgres is not None:
            postgres.settle_acknowledged()
        if timeline.is_promoted:
            log.warning("database.promoted", epoch=timeline.epoch)
        if timeline.noticed_by is not None:
            log.warning("database.restored", noticed_by=timeline.noticed_by, epoch=timeline.epoch)
            self._looked_at.clear()
        self._timeline = timeline
        await asyncio.to_thread(write_seen, self._file, timeline.seen)
        return timeline

    async def run(self) -> None:
        """Until canceled, observe from time to time and compare the mailboxes that wait for it."""
        subscription = self._database.subscribe(CHANNEL, lambda _message: self._wake.set())
        try:
            while True:
                self._wake.clear()
                try:
                    await self.observe()
                    waiting = await self.compare_pending()
                except StoreError as error:
                    log.warning("restore.interrupted", error=type(error).__name__)
                    waiting = True
                await signalled(self._wake, (self._pace.poll if waiting else self._pace.beat).total_seconds())
        finally:
            subscription.close()

    async def compare_pending(self) -> bool:
        """Compare every mailbox that can be read; return whether any are left."""
        left = False
        for check in await self._database.run(pending_checks()):
            if check.account_state != "active" or not await self._compare(check):
                left = True
        return left

    async def _compare(self, check: PendingCheck) -> bool:
        ready_at = check.window.restored_at + self._pace.settle
        if (wait := (ready_at - self._clock()).total_seconds()) > 0:
            await asyncio.sleep(min(wait, self._pace.settle.total_seconds()))
        try:
            mailbox = await self._mailbox_of(check.account_id)
            # Drafts first: one that is sent meanwhile is then also in sent mail, which counts.
            drafts = await mailbox.marked_drafts()
            sent = await mailbox.sent_since(check.window.since - MARGIN)
            if self._wake_snoozed is not None:
                await self._wake_snoozed(check.account_id)
        except (PostroomError, TimeoutError, OSError) as error:
            log.warning("restore.mailbox_unread", account=check.account_id, error=type(error).__name__)
            return False
        settling = settle_restored(check, sent, drafts, new_id(), _signature(), self._clock())
        if (settled := await self._database.run(settling)) is not None:
            log.warning(
                "restore.compared",
                account=check.account_id,
                found=settled.found,
                already_sent=settled.already_sent,
                to_send=settled.to_send,
                to_ask=settled.to_ask,
            )
        return True

    async def before_sending(self, account_id: UUID) -> None:
        """Once for each account, raise RestoreSuspected if its sent mail holds mail of ours that the database lacks."""
        async with self._looking:
            if account_id in self._looked_at:
                return
            instance_id = (self._timeline or await self.observe()).instance_id
            newest = await (await self._mailbox_of(account_id)).newest_sent()
            ours = [each.delivery_id for each in newest if is_from(instance_id, each.source_key)]
            if await self._database.run(unknown_mail(ours)):
                timeline = await self._database.run(suspect_restore(_signature(), self._clock()))
                log.warning("database.restored", noticed_by="sent_mail", epoch=timeline and timeline.epoch)
                self._timeline = timeline
                self._looked_at.clear()
                raise RestoreSuspected("sent mail is ahead of the database; it is compared before anything is sent")
            self._looked_at.add(account_id)


def read_seen(file: Path) -> Seen | None:
    """The place in the timeline that the data folder recorded last, if any."""
    try:
        found = json.loads(file.read_bytes())
        is_replicated = found.get("is_replicated") is True
        return Seen(UUID(found["instance_id"]), int(found["epoch"]), int(found["ticks"]), is_replicated)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_seen(file: Path, seen: Seen) -> None:
    private_folder(file.parent)
    content = {**seen._asdict(), "instance_id": str(seen.instance_id)}
    replace_private(file, json.dumps(content).encode() + b"\n")


def _signature() -> Signature:
    return Signature(new_id(), "postroom", Role.ADMIN.value)
