"""Outgoing mail of several tenants with every kind of outcome, made by the product's own verbs, for pages to show."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.priority import Throttle
from postroom.operations.people.audit import Signature, signature
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import destinations, outbound, senders, suppressions
from postroom.store.outbound.outbound import MailSender, NewMail
from postroom.store.outbound.outbound_recipients import Attempt, RecipientChange, record_outcomes
from postroom.store.outbound.sender_counts import SenderCount, counting, record_scores
from postroom.store.outbound.senders import Grounds, NewSender
from support.smtp_sending import new_mail, queue_mail

LEASE = timedelta(minutes=10)
KETTLE, PARROT, FERRY = "kettle.example", "parrot.example", "ferry.example"
SENT = ("sent", "250 2.0.0 ok", "2.0.0", None)
UNKNOWN_BOX = ("bounced", "550 5.1.1 no such user here", "5.1.1", BounceClass.HARD)
FULL = ("deferred", "452 4.2.2 mailbox full", "4.2.2", BounceClass.FULL)
SPAM = ("rejected", "554 5.7.1 looks like spam", "5.7.1", BounceClass.CONTENT)


@transaction
def count(counts: Sequence[SenderCount], now: datetime) -> Script[None]:
    yield from counting(counts, now)


def sender_of(tenant: str, name: str = "post") -> MailSender:
    address = f"{name}@{tenant}"
    return MailSender(tenant, tenant, address, address)


@dataclass
class Outgoing:
    """Mail that is put into a database and ends as the caller says."""

    database: Database
    now: datetime

    async def put(self, tenant: str, *to: str, subject: str = "Hello", name: str = "post") -> NewMail:
        new = replace(new_mail(*to, sender=sender_of(tenant, name)), subject=subject)
        await self.database.run(queue_mail([new], self.now))
        return new

    async def end(self, mail: NewMail, *outcomes: tuple[object, ...]) -> UUID:
        """Lease everything that is due, and end this mail, one outcome for each recipient; the rest is sent."""
        leased = await self.database.run(outbound.lease_mail(new_id(), 1_000, self.now, self.now + LEASE))
        for each in leased:
            found = outcomes if each.id == mail.id else (SENT,) * each.cost
            changes = [
                RecipientChange(place, recipient.address, *outcome)  # type: ignore[arg-type]
                for place, (recipient, outcome) in enumerate(zip(mail.recipients, found, strict=False))
            ]
            changes = [_due(change, self.now) for change in changes]
            await self.database.run(record_outcomes([Attempt(each.hold, changes)], self.now))
        return mail.id

    async def sent(self, tenant: str, *to: str, subject: str = "Hello") -> UUID:
        mail = await self.put(tenant, *to, subject=subject)
        return await self.end(mail, *(SENT,) * len(to))

    async def throttled(self, tenant: str, name: str = "promo") -> str:
        """A sender of the tenant whose bounces have led to a throttle."""
        username = f"{name}@{tenant}"
        view = await self.database.run(
            senders.add_sender(NewSender(username, tenant, (username,)), signature("test", "admin"), self.now)
        )
        await self.database.run(count([SenderCount(view.id, 80, 40, 40)], self.now))
        await self.database.run(record_scores([(view.id, 60)]))
        throttle = Throttle(self.now + timedelta(hours=8), "40 of 80 bounced")
        grounds = Grounds(60, self.now - timedelta(hours=1))
        await self.database.run(
            senders.throttle_for_score(view.id, throttle, grounds, [], signature("system", "system"), self.now)
        )
        return username


def signed() -> Signature:
    return signature("cli:ada", "admin", "a test")


def _due(change: RecipientChange, now: datetime) -> RecipientChange:
    return change._replace(not_before=now + timedelta(hours=1)) if change.state == "deferred" else change


async def fill_outbound(database: Database, now: datetime) -> dict[str, UUID]:
    """Several tenants, outcomes of all kinds, a throttled sender, a paused destination and a suppressed address."""
    traffic, ids = Outgoing(database, now), dict[str, UUID]()
    for number in range(6):
        ids["sent"] = await traffic.sent(KETTLE, f"reader{number}@large-mail.example", subject=f"Receipt {number}")
    for number in range(3):
        await traffic.sent(FERRY, f"guest{number}@inbox.example", subject=f"Your ticket {number}")
    bad = await traffic.put(KETTLE, "gone@large-mail.example", "ida@inbox.example", subject="Two of you")
    ids["partial"] = await traffic.end(bad, UNKNOWN_BOX, SENT)
    spam = await traffic.put(PARROT, "one@post.example", subject="You have won")
    ids["rejected"] = await traffic.end(spam, SPAM)
    full = await traffic.put(PARROT, "two@post.example", subject="You have won again")
    ids["deferred"] = await traffic.end(full, FULL)
    ids["unknown"] = await traffic.end(
        await traffic.put(FERRY, "lost@inbox.example", subject="Lost on the way"),
        ("unknown", "connection lost", None, None),
    )
    await traffic.throttled(PARROT)
    ids["queued"] = (await traffic.put(PARROT, "three@post.example", subject="Waiting", name="promo")).id
    await database.run(destinations.pause_destination("slow.example", signed(), now))
    await database.run(suppressions.suppress(KETTLE, "no@large-mail.example", signed(), now))
    return ids
