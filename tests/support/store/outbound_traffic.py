"""Random traffic of the outbound queue, and a plain account of all that happened, to compare the figures with."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from postroom.core.errors import LeaseLost
from postroom.core.mail.carrier import MARK
from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.lanes import LanePolicy
from postroom.core.outbound.rollout import Rollout
from postroom.core.outbound.time_buckets import bucket_of, microseconds
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound import outbound, outbound_turns, senders
from postroom.store.outbound.outbound import Capacity, LeasedMail, MailSender, NewMail, queueing_mail
from postroom.store.outbound.outbound_turns import miscounted_turns
from postroom.store.outbound.senders import NewSender
from support.store.fault_cases_outbound import LEASE, stored
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

LANES = {"team": "high", "standard": "normal", "free": "low"}


@transaction
def queue_mail(news: Sequence[NewMail], rollout: Rollout, now: datetime) -> Script[None]:
    for new in news:
        yield from queueing_mail(new, now, rollout)


@dataclass
class Accepted:
    owner: str
    tenant: str
    lane: str
    recipients: int
    at: datetime
    leases: int = 0


class Traffic:
    """Senders of several tenants and plans. What happens to their mail is done in the database, and noted here."""

    def __init__(
        self, setup: JobSetup, account_id: UUID | None, owners: dict[str, tuple[MailSender, str, int]]
    ) -> None:
        self.setup = setup
        self.account_id = account_id
        self.owners = owners
        self.mails: dict[UUID, Accepted] = {}
        self.held: list[LeasedMail] = []
        self.measured: set[UUID] = set()
        self.stopwatch_s = 0.0
        self.service: Counter[tuple[datetime, str, int]] = Counter()
        self.times: Counter[tuple[datetime, str, str, str, int]] = Counter()

    @classmethod
    async def open(cls, setup: JobSetup, tenants: int = 4) -> "Traffic":
        """Senders that are a week old, of three plans."""
        account_id = (await stored(setup)).account_id
        owners: dict[str, tuple[MailSender, str, int]] = {}
        for tenant in range(tenants):
            for plan in LANES:
                name, domain = f"{plan}@d{tenant}.example", f"d{tenant}.example"
                new = NewSender(name, domain, (name,), f"t{tenant}", plan=plan)
                view = await setup.database.run(senders.add_sender(new, signed(), setup.clock()))
                owners[name] = MailSender(f"t{tenant}", domain, name, name), LANES[plan], view.id
        setup.clock.forward(8 * 86_400)
        return cls(setup, account_id, owners)

    async def put(self, name: str, count: int, rollout: Rollout, recipients: int = 1, bulk: bool = False) -> None:
        owner, lane, _ = self.owners[name]
        now, to = self.setup.clock(), tuple(Recipient(f"r{n}@example.com") for n in range(recipients))
        news = [
            NewMail(id, self.account_id, None, owner, "submitted", to, "s", f"{MARK}: {id}\r\n\r\n".encode())
            for id in (new_id() for _ in range(count))
        ]
        if bulk:
            news = [replace(each, message_class="bulk") for each in news]
        await self.setup.database.run(queue_mail(news, rollout, now))
        for new in news:
            self.mails[new.id] = Accepted(name, owner.tenant, lane, recipients, now)

    async def take(self, most: int, rollout: Rollout, database: Database | None = None) -> list[LeasedMail]:
        """Lease a batch. The stopwatch goes on by a known time between its start and its end."""
        now, readings = self.setup.clock(), iter((5.0, 5.0 + self.stopwatch_s))
        capacity = Capacity(InFlight(10**9), LanePolicy.of(fair=rollout.fair_share), rollout, lambda: next(readings))
        leased = await (database or self.setup.database).run(
            outbound.lease_mail(new_id(), most, now, now + LEASE, capacity)
        )
        self._note_leases(leased, rollout, now)
        self.held += leased
        return leased

    def _note_leases(self, leased: Sequence[LeasedMail], rollout: Rollout, now: datetime) -> None:
        hour, disciplines = hour_of(now), set[str]()
        for each in leased:
            mail = self.mails[each.id]
            mail.leases += 1
            if not rollout.is_measured:
                continue
            assert (each.discipline == "fair") == rollout.is_fair(mail.tenant)
            self.measured.add(each.lease_token)
            disciplines.add(each.discipline)
            self.service[hour, each.discipline, self.owners[mail.owner][2]] += mail.recipients
            if mail.leases == 1:
                self.times[hour, "wait", each.discipline, mail.lane, _bucket(now - mail.at)] += 1
        if disciplines:
            used = disciplines.pop() if len(disciplines) == 1 else "both"
            self.times[hour, "choosing", used, "all", _bucket(timedelta(seconds=self.stopwatch_s))] += 1

    async def end_some(self, rng: Random) -> None:
        """Deliver, defer, bounce or give back some of what is held. Where the lease has run out, nothing changes."""
        for each in rng.sample(self.held, k=rng.randrange(len(self.held) + 1)):
            now = self.setup.clock()
            self.held.remove(each)
            match rng.randrange(8):
                case 0:
                    verb = outbound.defer(each.hold, None, now + timedelta(minutes=1), "later", now)
                case 1:
                    verb = outbound.give_back_mail(each.hold, None, now)
                case 2:
                    verb = outbound.bounce(each.hold, "no", now)
                case _:
                    verb = outbound.deliver(each.hold, "18c1", now)
            try:
                await self.setup.database.run(verb)
            except LeaseLost:
                continue
            if verb.name == "deliver":
                self._note_delivery(each, now)

    def _note_delivery(self, each: LeasedMail, now: datetime) -> None:
        """Whether it is measured was decided with its lease."""
        if each.lease_token in self.measured:
            mail = self.mails[each.id]
            key = hour_of(now), "delivery", each.discipline, mail.lane, _bucket(now - mail.at)
            self.times[key] += mail.recipients

    async def apply(self, rollout: Rollout, most: int = 3) -> None:
        """Bring waiting mail to where a changed roll-out wants it, a few at a time."""
        after: int | None = 0
        while after is not None:
            after = await self.setup.database.run(outbound_turns.apply_rollout(rollout, after, most))
            assert await self.setup.database.run(miscounted_turns()) == []

    def known_times(self) -> Counter[tuple[str, str, str, int]]:
        """The noted times of all hours."""
        known: Counter[tuple[str, str, str, int]] = Counter()
        for (_hour, measure, discipline, lane, bucket), count in self.times.items():
            known[measure, discipline, lane, bucket] += count
        return known

    def known_service(self) -> Counter[tuple[str, int]]:
        """The noted recipients of all hours, by discipline and sender."""
        known: Counter[tuple[str, int]] = Counter()
        for (_hour, discipline, sender_id), count in self.service.items():
            known[discipline, sender_id] += count
        return known


def _bucket(time: timedelta) -> int:
    return bucket_of(microseconds(time))
