"""Delivers leased mail by SMTP: an outcome for each recipient, stored in one transaction with all that follows from it.

    load ─► suppressed: rejected; destination paused: held ─► transport ──leaving──► stored under the lease ─► outcomes
                                                                          └ a pause or a cancellation stands: held

A recipient whose content has begun to leave is `unknown` until its outcome is stored. Whoever dies in between leaves it
so, and nobody sends it again on suspicion.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random, SystemRandom
from typing import Literal

import structlog

from postroom.core.actions.permits import GRANT_S, HeldLease
from postroom.core.errors import LeaseLost, PostroomError, StoreError
from postroom.core.lifecycle import DeliveryState
from postroom.core.outbound.replies import Reply, found_out
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.strikes import USUAL_STRIKES, StrikeRule, is_strike
from postroom.core.outbound.transport import (
    Leaving,
    OutgoingMail,
    OutgoingRecipient,
    RecipientOutcome,
    Transport,
    decided,
)
from postroom.outbound.queue.delivery_batches import DeliveryBatches
from postroom.outbound.queue.holding import while_renewed
from postroom.outbound.queue.meter import OutboundMeter
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.reporting import reports_about
from postroom.store.engine.database import Database
from postroom.store.outbound.outbound import LeasedMail, renew_mail
from postroom.store.outbound.outbound_recipients import (
    Attempt,
    Departure,
    LeasedRecipient,
    OutgoingContent,
    RecipientChange,
    release_mail,
)
from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock

log = structlog.get_logger()

UnknownRule = Literal["ask", "resend"]
TransportOf = Callable[[], Awaitable[Transport]]
"""Returns the transport of this process, which is started when it is first asked for."""

HELD_FOR = timedelta(seconds=30)
STOP_GRACE_S = 10.0
# Seconds between attempts to store an outcome while the database does not answer. The lease is renewed meanwhile.
STORE_AGAIN_S = (0.2, 1.0, 3.0, 10.0, 20.0)


@dataclass(frozen=True, slots=True)
class SmtpRoad:
    """All that mail needs in order to leave by SMTP. `hostname` is the name under which reports are made."""

    transport: TransportOf
    hostname: str
    unknown: UnknownRule = "ask"
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
    rng: Random = field(default_factory=SystemRandom)
    strikes: StrikeRule = USUAL_STRIKES
    by_smart_host: bool = False
    """Whether one server takes all mail: then nobody gains by a place beyond the slots, and all wait for their turn."""


class _NoTransport:
    """Holds all mail: this process sends none by SMTP."""

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        why = found_out("4.3.2", "this process sends no mail by SMTP", "local")
        return [RecipientOutcome(each.position, "held", why) for each in recipients]


async def _no_transport() -> Transport:
    return _NoTransport()


NO_SMTP = SmtpRoad(_no_transport, "localhost")


class SmtpDelivery:
    """One attempt at one mail."""

    def __init__(
        self,
        database: Database,
        leased: LeasedMail,
        lease: HeldLease,
        road: SmtpRoad,
        pace: Pace,
        clock: Clock,
        boot: BootClock = since_boot,
        batches: DeliveryBatches | None = None,
    ) -> None:
        """`batches` are shared by the deliveries of a process."""
        self._boot = boot
        self._batches = batches or DeliveryBatches(database, pace, clock, boot)
        self._database = database
        self._leased = leased
        self._lease = lease
        self._road = road
        self._pace = pace
        self._clock = clock
        self._is_leaving = False
        self._started = since_boot()
        self._addresses: dict[int, str] = {}
        self.meter = OutboundMeter()

    async def run(self) -> None:
        """Attempt it, renewing the lease. Whatever goes wrong, the mail is given back, or left to its lease."""
        id = self._leased.id
        try:
            await while_renewed(self.attempt(), self.renew, self._pace)
        except LeaseLost:
            log.info("outbound.taken_over", delivery=id)
        except StoreError as error:
            # What was leaving is unknown when the lease has run out; the rest is leased again.
            log.warning("outbound.interrupted", delivery=id, error=type(error).__name__)
        except asyncio.CancelledError:
            await self.release()
            raise
        except Exception as error:
            log.error("outbound.broken", delivery=id, error=type(error).__name__)
            await self.release()

    async def attempt(self) -> None:
        """Bring the mail to its next state. After LeaseLost or StoreError the next holder finds what is known."""
        attempting = asyncio.ensure_future(self._go_on())
        try:
            await asyncio.shield(attempting)
        except asyncio.CancelledError:
            # What is leaving gets a moment to end with an answer: otherwise nobody would know whether it arrived.
            if self._is_leaving and not attempting.done():
                await asyncio.wait({attempting}, timeout=STOP_GRACE_S)
            attempting.cancel()
            await asyncio.wait({attempting})
            _ = attempting.cancelled() or attempting.exception()
            raise

    async def _go_on(self) -> None:
        async with self._batches.loaded(self._leased.hold) as (mail, recipients):
            self._addresses = {each.position: each.address for each in recipients}
            outcomes = [_refused_outcome(each) for each in recipients if each.refused is not None]
            outcomes += [_held_outcome(each) for each in recipients if each.refused is None and each.paused is not None]
            due = [each for each in recipients if each.refused is None and each.paused is None]
            if due:
                outcomes += await self._offer(mail, due)
            await self._record(mail, recipients, outcomes)

    async def _offer(self, mail: OutgoingContent, due: Sequence[LeasedRecipient]) -> Sequence[RecipientOutcome]:
        outgoing = OutgoingMail(mail.id, mail.envelope_sender, mail.content, mail.message_class, mail.options)
        those = [OutgoingRecipient(each.position, each.address, each.notify, each.original) for each in due]
        transport = await self._road.transport()
        return await transport.deliver(outgoing, those, self._leave)

    async def _leave(self, positions: Sequence[int]) -> None:
        """Called right before the first byte of the content: what is not stored here does not leave. Nor does what was
        let go too long ago: a pause may have been answered since.
        """
        self._is_leaving = True
        those = [(position, self._addresses[position]) for position in positions]
        started = await self._batches.leave(Departure(self._leased.hold, those))
        self._lease.deadline = self._pace.usable_until(started)
        if self._boot() >= min(self._lease.deadline, started + GRANT_S):
            raise LeaseLost(f"the mail {self._leased.id} was let go too long ago to leave now")

    async def renew(self) -> None:
        now, started = self._clock(), self._boot()
        await self._database.run(renew_mail(self._leased.hold, None, now, now + self._pace.lease))
        self._lease.deadline = self._pace.usable_until(started)

    async def release(self) -> None:
        """Let go of the mail when the process stops."""
        with contextlib.suppress(PostroomError):
            await self._database.run(release_mail(self._leased.hold, self._clock()))

    async def _record(
        self, mail: OutgoingContent, recipients: Sequence[LeasedRecipient], outcomes: Sequence[RecipientOutcome]
    ) -> None:
        now, by_position = self._clock(), {each.position: each for each in recipients}
        changes = [(self._change(mail, by_position[each.position], each), each.reply) for each in outcomes]
        tried_until = mail.admitted_at + self._road.schedule.give_up
        told_there = {each.position for each in outcomes if each.reported_there}
        reports = reports_about(mail, by_position, changes, self._road.hostname, tried_until, now, told_there)
        only = [change for change, _ in changes]
        for wait_s in (*STORE_AGAIN_S, None):
            try:
                state = await self._batches.record(Attempt(self._leased.hold, only, reports, self._road.strikes))
            except StoreError:
                if wait_s is None:
                    raise
                await asyncio.sleep(wait_s)
            else:
                if any(each.state == "sent" for each in only):
                    self.meter.delivered(self._leased, now)
                self._tell(mail, state, outcomes)
                return

    def _tell(self, mail: OutgoingContent, state: DeliveryState, outcomes: Sequence[RecipientOutcome]) -> None:
        """One line for each different answer. The words of a reply may quote the mail, so they are in the table of
        attempts only.
        """
        took_s = round(since_boot() - self._started, 3)
        for (result, code, enhanced, host, tls), count in Counter(map(_answer, outcomes)).items():
            log.info(
                "outbound.attempted", delivery=mail.id, state=state, result=result, code=code, enhanced=enhanced,
                host=host, tls=tls, recipients=count, took_s=took_s,
            )  # fmt: skip

    def _change(self, mail: OutgoingContent, recipient: LeasedRecipient, outcome: RecipientOutcome) -> RecipientChange:
        """The change that follows from the outcome: given up, tried again then, or ended."""
        now, schedule, reply = self._clock(), self._road.schedule, outcome.reply
        said = str(reply)
        base = RecipientChange(
            recipient.position,
            recipient.address,
            "sent",
            said,
            reply.enhanced,
            outcome.bounce_class,
            host=reply.host,
            tls=outcome.tls,
        )
        match outcome.result:
            case "sent" | "bounced" | "rejected":
                return base._replace(state=outcome.result, strikes=is_strike(reply, outcome.bounce_class))
            case "unknown":
                return base._replace(state="unknown", reply=f"it may have arrived: {said}")
            case "held":
                later = now + (outcome.retry_after or HELD_FOR)
                before = recipient.last_reply or said
                state = "queued" if recipient.attempts <= 1 else "deferred"
                return base._replace(state=state, reply=before, not_before=later, uncounted=True, held=said)
            case "deferred":
                asked = outcome.retry_after
                later = schedule.next_try(recipient.attempts, mail.admitted_at, now, self._road.rng, asked)
                if later is None:
                    days = schedule.give_up.total_seconds() / 86_400
                    return base._replace(state="expired", reply=f"not delivered within {days:g} days; last: {said}")
                delayed = schedule.is_delayed(mail.admitted_at, now) and not recipient.delay_reported
                return base._replace(state="deferred", not_before=later, reports_delay=delayed)


def _answer(outcome: RecipientOutcome) -> tuple[str, int | None, str | None, str | None, str | None]:
    return outcome.result, outcome.reply.code, outcome.reply.enhanced, outcome.reply.host, outcome.tls


def _refused_outcome(recipient: LeasedRecipient) -> RecipientOutcome:
    reply = found_out("5.7.0", recipient.refused or "", "local")
    return decided(recipient.position, reply)._replace(result="rejected")


def _held_outcome(recipient: LeasedRecipient) -> RecipientOutcome:
    reply: Reply = found_out("4.3.2", f"its destination is paused: {recipient.paused}", "local")
    return RecipientOutcome(recipient.position, "held", reply)
