"""Delivers admitted mail, each exactly once: mail that may have been sent is looked for, and never sent on suspicion.

    no draft known   after an earlier attempt, look for a draft with our mark and use it; otherwise make one. Its id is
                     stored before it is sent.
    draft known      still there: it was not sent, so send it now. Gone, or marked as leaving: look for it in sent mail.
    not found there  nobody can tell: the mail is `unknown`, and a person is asked.

A process may die between any two of these steps, and any answer may be lost: the next attempt begins with a question.
Senders in any number of processes share the work. Each mail is leased by one sender, which renews the lease while it
works; every change it writes names the lease.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import structlog

from postroom.core.actions.permits import HeldLease, Permit
from postroom.core.errors import Canceled, LeaseLost, NotSent, Parked, PostroomError, ProtectedMail, StoreError
from postroom.core.mail.carrier import Carrier, CarrierUnder, DraftKept
from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.lanes import Lane, LanePolicy
from postroom.core.outbound.rollout import Rollout
from postroom.outbound.queue.delivery_batches import DeliveryBatches
from postroom.outbound.queue.holding import while_renewed
from postroom.outbound.queue.meter import OutboundMeter
from postroom.outbound.queue.pace import Pace, asked_to_wait, is_refusal, wait_after
from postroom.outbound.queue.queue_watch import QueueWatch
from postroom.outbound.queue.smtp_delivery import NO_SMTP, SmtpDelivery, SmtpRoad
from postroom.store.accounts import accounts
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs.jobs import PAUSE
from postroom.store.outbound import outbound as store
from postroom.store.outbound.delivery_bound import DeliveryBound, no_limits
from postroom.store.outbound.outbound_moves import CHANNEL
from postroom.store.outbound.outbound_recipients import has_unknown, resend_unknown
from postroom.store.outbound.outbound_turns import apply_rollout
from postroom.system.boot_clock import since_boot
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

T = TypeVar("T")

BeforeSending = Callable[[UUID], Awaitable[None]]
"""Called with the account before anything leaves it. Raises RestoreSuspected if the database may be restored."""

EXPIRED = "it could not be sent within {days:g} days: {why}"
NO_LONGER_WANTED = "its action was ended before it was sent"
REMOVED = "the account was removed before it was sent"
DOUBTFUL = (
    "its draft is gone or was being sent, and sent mail does not show it: it is unknown whether it left; look in the "
    "mailbox, then run `postroom outbound resolve {id} --sent` or `--not-sent`"
)


SENT_AGAIN_AT_ONCE = 100


class MailRefused(PostroomError):
    """The mailbox does not take this mail, now or later."""


class RestoreSuspected(PostroomError):
    """The mailbox holds mail of ours that the database does not know: the two are compared before mail leaves."""


class OutboundDispatcher:
    """Leases mail that is due and delivers it, a few at once, until it is canceled."""

    def __init__(
        self,
        database: Database,
        carrier_of: CarrierUnder,
        pace: Pace | None = None,
        clock: Clock = wall_clock,
        before_sending: BeforeSending | None = None,
        rollout: Rollout = store.EVERYWHERE,
        policy: LanePolicy | None = None,
        smtp: SmtpRoad | None = None,
        watch: QueueWatch | None = None,
        meter: OutboundMeter | None = None,
        most: int | None = None,
    ) -> None:
        """`rollout` says which tenants are on the fair queue, and `policy` how lanes share the capacity. Mail without
        a mailbox leaves by `smtp`; `watch` limits the lanes by the health of the queue. `most` mails are in delivery
        by all processes together, and as many again that are slow."""
        self._smtp = smtp or NO_SMTP
        self._rollout = rollout
        self._rejoined: int | None = 0
        """How far waiting mail has been brought to where the roll-out wants it; None once all has."""
        self._watch = watch
        self._most = most
        self._meter = meter or OutboundMeter()
        self._policy = policy or LanePolicy.of(fair=rollout.fair_share)
        self._before_sending = before_sending
        self._database = database
        self._carrier_of = carrier_of
        self._pace = pace or Pace()
        self._clock = clock
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], tuple[store.LeasedMail, float]] = {}
        """The mails that are being delivered, and since when, by the clock that never jumps."""
        self._batches = DeliveryBatches(database, self._pace, clock)

    async def run(self) -> None:
        """Run until canceled. Deliveries under way are interrupted: the next sender asks what became of them."""
        channels = (CHANNEL, pauses.CHANNEL, accounts.CHANNEL)
        subscriptions = [self._database.subscribe(each, lambda _message: self._wake.set()) for each in channels]
        try:
            while True:
                self._wake.clear()
                try:
                    await self._begin()
                except StoreError as error:
                    log.warning("outbound.interrupted", error=type(error).__name__)
                await signalled(self._wake, (await self._rest()).total_seconds())
        finally:
            for subscription in subscriptions:
                subscription.close()
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait(self._running)

    async def _rest(self) -> timedelta:
        """How long to wait for a signal: until the next mail is due, if nothing is under way."""
        if self._running:
            return self._pace.poll
        try:
            due = await self._database.run(store.next_mail_due())
        except StoreError:
            return self._pace.poll
        rest = self._pace.idle if due is None else due - self._clock()
        return max(self._pace.poll, min(rest, self._pace.idle))

    async def _begin(self) -> None:
        while self._rejoined is not None:
            self._rejoined = await self._database.run(apply_rollout(self._rollout, self._rejoined))
        schedule, now = self._smtp.schedule, self._clock()
        if self._smtp.unknown == "resend" and await self._database.run(has_unknown(schedule, now)):
            for id in await self._database.run(resend_unknown(SENT_AGAIN_AT_ONCE, schedule, self._smtp.rng, now)):
                log.warning("outbound.sent_again", delivery=id)
        free = self._free()
        if free <= 0 or not await self._database.run(store.any_mail_due(self._clock())):
            return
        now, started = self._clock(), since_boot()
        leasing = store.lease_mail(new_id(), free, now, now + self._pace.lease, self._capacity())
        leased = await self._database.run(leasing)
        self._meter.leased(leased, now)
        for each in leased:
            lease = HeldLease(self._pace.usable_until(started))
            task = asyncio.create_task(self._deliver(each, lease), name="postroom-delivery")
            self._running[task] = each, started
            task.add_done_callback(self._on_end)

    def _free(self) -> int:
        """How many mails may be leased. Those that their destinations keep waiting do not count, within the room."""
        if self._smtp.by_smart_host:
            return self._pace.at_once - len(self._running)
        since = since_boot() - self._pace.slow.total_seconds()
        slow = sum(each.account_id is None and started <= since for each, started in self._running.values())
        under_way = len(self._running)
        return min(self._pace.at_once - (under_way - slow), self._pace.room - under_way)

    def _capacity(self) -> store.Capacity:
        lanes, tenants = Counter[Lane](), Counter[int]()
        for each, _ in self._running.values():
            lanes[each.lane] += 1
            tenants[each.tenant_id] += 1
        slots = self._pace.at_once
        limits = self._watch.limits if self._watch is not None else no_limits
        in_flight = InFlight(slots, lanes, tenants, limits(slots), self._pace.room)
        slow = None if self._smtp.by_smart_host else self._pace.slow
        bound = None if self._most is None else DeliveryBound(self._most, slow, limits)
        return store.Capacity(in_flight, self._policy, self._rollout, self._meter.stopwatch, bound)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake.set()

    async def _deliver(self, leased: store.LeasedMail, lease: HeldLease) -> None:
        if leased.account_id is None:
            by_smtp = SmtpDelivery(
                self._database, leased, lease, self._smtp, self._pace, self._clock, batches=self._batches
            )
            by_smtp.meter = self._meter
            await by_smtp.run()
            return
        delivery = Delivery(self._database, leased, lease, self._carrier_of, self._pace, self._clock, asyncio.sleep)
        delivery.before_sending = self._before_sending
        delivery.meter = self._meter
        try:
            await while_renewed(delivery.attempt(), delivery.renew, self._pace)
        except LeaseLost:
            log.info("outbound.taken_over", delivery=leased.id)
        except StoreError as error:
            # It stays leased, and is leased again when the lease has run out.
            log.warning("outbound.interrupted", delivery=leased.id, error=type(error).__name__)
        except asyncio.CancelledError:
            with contextlib.suppress(PostroomError):
                await self._database.run(store.give_back_mail(leased.hold, delivery.draft, self._clock()))
            raise


class Delivery:
    """One attempt at one mail."""

    def __init__(
        self,
        database: Database,
        leased: store.LeasedMail,
        lease: HeldLease,
        carrier_of: CarrierUnder,
        pace: Pace,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        if leased.account_id is None:
            raise ValueError(f"the mail {leased.id} has no mailbox")
        self._account_id = leased.account_id
        self._database = database
        self._leased = leased
        self._lease = lease
        self._carrier_of = carrier_of
        self._pace = pace
        self._clock = clock
        self._sleep = sleep
        self._draft_id = leased.draft_id
        self.before_sending: BeforeSending | None = None
        self.meter = OutboundMeter()
        self.draft: DraftKept | None = None
        """The draft that this attempt has made or found, whose id may not be stored yet."""

    async def attempt(self) -> None:
        """Bring the mail to its next state. After LeaseLost or StoreError nothing has been decided."""
        try:
            await self._go_on()
        except (LeaseLost, StoreError):
            raise
        except (RestoreSuspected, NotSent):
            await self._database.run(store.give_back_mail(self._leased.hold, self.draft, self._clock()))
        except Canceled:
            await self._take_back("canceled", NO_LONGER_WANTED)
        except ProtectedMail as error:
            await self._take_back("canceled", str(error))
        except Parked as paused:
            if paused.key.startswith(PAUSE):
                await self._database.run(store.give_back_mail(self._leased.hold, self.draft, self._clock()))
            else:
                await self._not_now(paused)
        except Exception as error:
            # A bug of ours only defers the mail: it stays visible, with the reason, and is not lost.
            if not isinstance(error, PostroomError | TimeoutError):
                log.error("outbound.broken", delivery=self._leased.id, error=type(error).__name__)
            await self._not_now(error)

    async def _go_on(self) -> None:
        leased = self._leased
        if leased.account_state == "removed":
            await self._account_removed()
            return
        if self.before_sending is not None:
            await self._ask(self.before_sending(self._account_id))
        carrier = await self._carrier_of(Permit(self._account_id, self._lease, None, leased.hold, leased.action_id))
        if self._draft_id is not None and not await self._ask(carrier.has_draft(self._draft_id)):
            await self._look_for_it(carrier)
            return
        if self._is_too_late:
            await self._take_back("expired", self._too_late("every attempt failed"))
            return
        if self._draft_id is None:
            self.draft = await self._find_or_make(carrier)
            if self.draft is None:
                return
            self._draft_id = self.draft.id
        now, started = self._clock(), since_boot()
        held = await self._database.run(store.hold_mail(leased.hold, self.draft, now, now + self._pace.lease))
        self._lease.deadline = self._pace.usable_until(started)
        if held != "wanted":
            await self._take_back("canceled", NO_LONGER_WANTED)
            return
        sent = await self._offer(carrier.send_draft(self._draft_id))
        if sent is None:
            await self._look_for_it(carrier)
        else:
            await self._record_delivery(carrier, sent)

    async def _find_or_make(self, carrier: Carrier) -> DraftKept | None:
        """Find the draft that an earlier attempt made without learning its id, or make one.

        We did not send such a draft, or its id would be stored. Somebody may have sent it from the mailbox: then the
        mail is delivered, and None is returned.
        """
        leased = self._leased
        if leased.attempts > 1:
            found = await self._ask(carrier.drafts_of(leased.id))
            for spare in found[1:]:
                await self._delete(carrier, spare.id)
            if found:
                return found[0]
            await self.renew()
            sent = await self._ask(carrier.find_sent(leased.id, self._threads(), leased.asked_at))
            if sent is not None:
                await self._record_delivery(carrier, sent)
                return None
            await self.renew()
        content = await self._database.run(store.load_content(leased.id))
        await self._database.run(pauses.check_paused(self._account_id))
        return await self._offer(carrier.create_draft(content, leased.thread_id))

    async def _look_for_it(self, carrier: Carrier) -> None:
        """Look for a mail whose draft is gone in sent mail, several times, since it may appear there late."""
        leased = self._leased
        for wait_s in self._pace.looks:
            await self._sleep(wait_s)
            await self.renew()
            sent = await self._ask(carrier.find_sent(leased.id, self._threads(), leased.asked_at))
            if sent is not None:
                await self._record_delivery(carrier, sent)
                return
        await self._database.run(store.doubt(leased.hold, DOUBTFUL.format(id=leased.id), self._clock()))
        log.warning("outbound.unknown", delivery=leased.id)

    async def _record_delivery(self, carrier: Carrier, sent_message_id: str) -> None:
        """Record the delivery first. Removing spare drafts may take long, and its failure changes nothing."""
        now = self._clock()
        await self._database.run(store.deliver(self._leased.hold, sent_message_id, now))
        self.meter.delivered(self._leased, now)
        log.info("outbound.delivered", delivery=self._leased.id, attempts=self._leased.attempts)
        if self._leased.attempts > 1:
            # A lost answer may have left a second draft behind. It does no harm if it cannot be removed now.
            with self._tidying():
                tidy = await self._tidy_carrier()
                for spare in await self._ask(carrier.drafts_of(self._leased.id)):
                    await self._delete(tidy, spare.id)

    async def _take_back(self, state: store.Withdrawn, reason: str) -> None:
        """End a mail that was certainly not sent: its draft is still there, or was never made."""
        await self._database.run(store.withdraw_mail(self._leased.hold, state, reason, self._clock()))
        await self._discard()

    async def _discard(self) -> None:
        """Delete the draft, once the end is recorded: until then a draft that is gone means that it was sent."""
        if self._draft_id is not None:
            with self._tidying():
                await self._delete(await self._tidy_carrier(), self._draft_id)

    @contextlib.contextmanager
    def _tidying(self) -> Generator[None]:
        """Ignore any failure, a pause included: a draft stays in the mailbox, and the mail itself has ended."""
        try:
            yield
        except Exception as error:
            log.info("outbound.draft_left", delivery=self._leased.id, error=type(error).__name__)

    async def _tidy_carrier(self) -> Carrier:
        """A carrier for deleting our drafts after the mail has ended, when neither lease nor action stands any more."""
        return await self._carrier_of(Permit(self._account_id, self._lease))

    async def _delete(self, carrier: Carrier, draft_id: str) -> None:
        """Delete a draft, unless a pause stands: a draft belongs to the user's mailbox too."""
        await self._database.run(pauses.check_paused(self._account_id))
        await self._call(carrier.delete_draft(draft_id))

    async def renew(self) -> None:
        """Renew the lease. Raises LeaseLost when it ran out and another sender has taken over."""
        now, started = self._clock(), since_boot()
        await self._database.run(store.renew_mail(self._leased.hold, self.draft, now, now + self._pace.lease))
        self._lease.deadline = self._pace.usable_until(started)

    async def _account_removed(self) -> None:
        """End the mail of a mailbox that cannot be asked any more. Without a draft it was certainly not sent."""
        hold, now = self._leased.hold, self._clock()
        if self._draft_id is None:
            await self._database.run(store.withdraw_mail(hold, "canceled", REMOVED, now))
        else:
            await self._database.run(store.doubt(hold, DOUBTFUL.format(id=self._leased.id), now))

    async def _not_now(self, error: BaseException) -> None:
        """Defer or end the mail, depending on the error. Keep what is known of its draft."""
        leased, now, reason = self._leased, self._clock(), _reason_text(error)
        if isinstance(error, MailRefused):
            await self._record_bounce(reason)
            return
        if self._is_too_late and self._draft_id is None:
            await self._database.run(store.withdraw_mail(leased.hold, "expired", self._too_late(reason), now))
            return
        if now - leased.admitted_at >= 2 * self._pace.give_up:
            await self._database.run(store.doubt(leased.hold, DOUBTFUL.format(id=leased.id), now))
            return
        later = now + wait_after(leased.attempts, self._pace, asked_to_wait(error))
        await self._database.run(store.defer(leased.hold, self.draft, later, reason, now))
        log.info("outbound.deferred", delivery=leased.id, attempts=leased.attempts, error=type(error).__name__)

    async def _record_bounce(self, reason: str) -> None:
        await self._database.run(store.bounce(self._leased.hold, reason, self._clock()))
        log.warning("outbound.bounced", delivery=self._leased.id)
        await self._discard()

    async def _offer(self, call: Awaitable[T]) -> T:
        """Make a call whose refusal is final. A refused question says nothing about what was sent before."""
        try:
            return await self._call(call)
        except PostroomError as error:
            if is_refusal(error):
                raise MailRefused(str(error)) from error
            raise

    async def _call(self, call: Awaitable[T]) -> T:
        """Limit the time of a call: the lease is renewed meanwhile, so a call without end would block the mail."""
        async with asyncio.timeout(self._pace.longest_call.total_seconds()):
            return await call

    async def _ask(self, question: Awaitable[T]) -> T:
        """Limit the time of a question, which changes nothing and may take many calls."""
        async with asyncio.timeout(self._pace.longest_question.total_seconds()):
            return await question

    def _threads(self) -> list[str]:
        """The conversations to search if it was sent: the one it answers, and the one that its draft began."""
        own = self.draft.message_id if self.draft is not None else self._leased.draft_message_id
        return [each for each in (self._leased.thread_id, own) if each is not None]

    @property
    def _is_too_late(self) -> bool:
        return self._clock() - self._leased.admitted_at >= self._pace.give_up

    def _too_late(self, why: str) -> str:
        return EXPIRED.format(days=self._pace.give_up.total_seconds() / 86_400, why=why)


def _reason_text(error: BaseException) -> str:
    """The text of our own errors; any other may contain a piece of the mail."""
    match error:
        case PostroomError():
            return str(error)
        case TimeoutError():
            return "the mailbox did not answer in time; it is tried again"
        case _:
            return f"an unexpected error ({type(error).__name__}); it is tried again"
