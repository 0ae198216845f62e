"""Outgoing mail that leaves by SMTP: queued, leased and delivered one attempt at a time, by the clock of a test."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from postroom.core.actions.permits import HeldLease
from postroom.core.outbound.transport import MailOptions, Transport
from postroom.core.submission.envelope import Recipient
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.smtp_delivery import SmtpDelivery, SmtpRoad
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, outbound_recipients
from postroom.store.outbound.outbound import LeasedMail, MailSender, MailView, NewMail, queueing_mail
from postroom.store.outbound.outbound_recipients import RecipientResult
from postroom.system.boot_clock import BootClock, since_boot
from support.clocks import ManualClock
from support.smtp import CONTENT

MARA = MailSender("sender.example", "sender.example", "mara@sender.example", "mara@sender.example")
LEASE = timedelta(minutes=1)


@transaction
def queue_mail(news: Sequence[NewMail], now: datetime) -> Script[None]:
    for new in news:
        yield from queueing_mail(new, now)


def new_mail(
    *to: str | Recipient,
    content: bytes = CONTENT,
    sender: MailSender = MARA,
    options: MailOptions | None = None,
) -> NewMail:
    recipients = tuple(Recipient(each) if isinstance(each, str) else each for each in to)
    asked = options or MailOptions()
    return NewMail(new_id(), None, None, sender, "submitted", recipients, "Hello", content, options=asked)


class SmtpSending:
    """Queues mail and delivers it, each attempt when the test says so."""

    def __init__(self, database: Database, clock: ManualClock, transport: Transport | None = None) -> None:
        self.database = database
        self.clock = clock
        self.transport = transport
        self.rng = Random(1)

    async def put(self, *to: str | Recipient, content: bytes = CONTENT, sender: MailSender = MARA) -> UUID:
        new = new_mail(*to, content=content, sender=sender)
        await self.database.run(queue_mail([new], self.clock()))
        return new.id

    async def lease(self, most: int = 100) -> list[LeasedMail]:
        now = self.clock()
        return await self.database.run(outbound.lease_mail(new_id(), most, now, now + LEASE))

    def delivery(
        self, leased: LeasedMail, transport: Transport | None = None, boot: BootClock | None = None
    ) -> SmtpDelivery:
        """Time stands still for what may leave only for a while, unless `boot` says otherwise: a test may be slow."""
        used = transport or self.transport
        assert used is not None

        async def transport_of() -> Transport:
            return used

        road = SmtpRoad(transport_of, "out.sender.example", rng=self.rng)
        started = since_boot()
        lease = HeldLease(started + 3600)
        return SmtpDelivery(
            self.database, leased, lease, road, Pace(lease=LEASE), self.clock, boot or (lambda: started)
        )

    async def attempt(self, transport: Transport | None = None) -> int:
        """One attempt at everything that is due. Returns at how many mails."""
        leased = await self.lease()
        for each in leased:
            await self.delivery(each, transport).attempt()
        return len(leased)

    async def results(self, id: UUID) -> list[RecipientResult]:
        return await self.database.run(outbound_recipients.list_results(id))

    async def states(self, id: UUID) -> list[str]:
        return [each.state for each in await self.results(id)]

    async def mail(self, id: UUID) -> MailView:
        return await self.database.run(outbound.load_mail(id))

    async def reports(self) -> list[MailView]:
        """The reports that were made, newest first."""
        return [each for each in await self.database.run(outbound.list_mail(1000)) if each.kind == "report"]
