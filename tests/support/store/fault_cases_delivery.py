"""For each writing verb of delivery by SMTP: a database in which it has something to do."""

from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.destinations import StsPolicy
from postroom.core.outbound.reports import Original
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.strikes import StrikeRule
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import (
    destinations,
    dkim_keys,
    outbound,
    outbound_recipients,
    outbound_reports,
    suppressions,
)
from postroom.store.outbound.outbound import LeasedMail
from postroom.store.outbound.outbound_recipients import Attempt, Departure, RecipientChange
from postroom.vault.sealing import Sealed
from support.smtp_sending import MARA, new_mail, queue_mail
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

LEASE = timedelta(minutes=10)
ADA, BEN = "ada@example.org", "ben@example.org"
ID = b"Message-ID: <one@sender.example>\r\n"
SENT = RecipientChange(0, ADA, "sent", "250 ok")


async def leased(setup: JobSetup) -> LeasedMail:
    """A mail to two recipients, which leaves by SMTP."""
    new, now = new_mail(ADA, BEN, content=ID + b"\r\nHello.\r\n"), setup.clock()
    await setup.database.run(queue_mail([new], now))
    (found,) = await setup.database.run(outbound.lease_mail(new_id(), 10, now, now + LEASE))
    return found


async def ended(setup: JobSetup, *changes: RecipientChange) -> UUID:
    found = await leased(setup)
    await setup.database.run(outbound_recipients.record_outcomes([Attempt(found.hold, changes)], setup.clock()))
    return found.id


async def leave(setup: JobSetup) -> Transaction[Any]:
    found, now = await leased(setup), setup.clock()
    return outbound_recipients.leave([Departure(found.hold, [(0, ADA), (1, BEN)])], now, now + LEASE)


async def record_outcomes(setup: JobSetup) -> Transaction[Any]:
    """One is reached in spite of a strike, the other refused for the last time the rule allows; the sender is told."""
    await struck(setup, ADA)
    found, now = await leased(setup), setup.clock()
    await setup.database.run(outbound_recipients.leave([Departure(found.hold, [(0, ADA)])], now, now + LEASE))
    refused = RecipientChange(1, BEN, "rejected", "550 no", None, BounceClass.UNEXPLAINED, strikes=True)
    report = new_mail(MARA.envelope_sender, sender=MARA._replace(envelope_sender=""))
    attempt = Attempt(found.hold, [SENT, refused], [report], StrikeRule(days=1))
    return outbound_recipients.record_outcomes([attempt], now)


async def struck(setup: JobSetup, address: str) -> None:
    """The address has one strike, by a mail to it alone."""
    new, now = new_mail(address), setup.clock()
    await setup.database.run(queue_mail([new], now))
    (found,) = await setup.database.run(outbound.lease_mail(new_id(), 10, now, now + LEASE))
    refused = RecipientChange(0, address, "rejected", "550 no", None, BounceClass.UNEXPLAINED, strikes=True)
    await setup.database.run(outbound_recipients.record_outcomes([Attempt(found.hold, [refused])], now))


async def prune_suppressions(setup: JobSetup) -> Transaction[Any]:
    await struck(setup, "eve@example.org")
    await setup.database.run(await record_outcomes(setup))
    return suppressions.prune_suppressions(setup.clock() + timedelta(days=400))


async def release_mail(setup: JobSetup) -> Transaction[Any]:
    found, now = await leased(setup), setup.clock()
    await setup.database.run(outbound_recipients.leave([Departure(found.hold, [(0, ADA), (1, BEN)])], now, now + LEASE))
    return outbound_recipients.release_mail(found.hold, now)


async def resend_unknown(setup: JobSetup) -> Transaction[Any]:
    await ended(setup, SENT, RecipientChange(1, BEN, "unknown", "lost"))
    return outbound_recipients.resend_unknown(10, RetrySchedule(), Random(1), setup.clock())


async def record_bounces(setup: JobSetup) -> Transaction[Any]:
    await ended(setup, SENT, RecipientChange(1, BEN, "unknown", "lost"))
    bounces = [
        outbound_reports.Bounce(ADA, "550 no", "5.1.1", BounceClass.HARD),
        outbound_reports.Bounce(BEN, "250 ok", None, None, arrived=True),
    ]
    return outbound_reports.record_bounces(Original("<one@sender.example>"), bounces, setup.clock())


async def record_complaint(setup: JobSetup) -> Transaction[Any]:
    id = await ended(setup, SENT, SENT._replace(position=1, address=BEN))
    return outbound_reports.record_complaint(Original(mark=id), "abuse", [ADA], setup.clock())


async def suppress(setup: JobSetup) -> Transaction[Any]:
    return suppressions.suppress("sender.example", ADA, signed(), setup.clock())


async def unsuppress(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await suppress(setup))
    return suppressions.unsuppress("sender.example", ADA, signed(), setup.clock())


async def pause_destination(setup: JobSetup) -> Transaction[Any]:
    return destinations.pause_destination("example.org", signed(), setup.clock())


async def resume_destination(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await pause_destination(setup))
    return destinations.resume_destination("example.org", signed(), setup.clock())


async def keep_policy(setup: JobSetup) -> Transaction[Any]:
    return destinations.keep_policy("example.org", StsPolicy("1", "enforce", ("mx.example.org",), setup.clock()))


async def add_dkim_key(setup: JobSetup) -> Transaction[Any]:
    named = ("sender.example", "s1", "ed25519-sha256", "cHVibGlj")
    return dkim_keys.add_dkim_key(new_id(), *named, Sealed("k1", "sealed"), signed(), setup.clock())


async def remove_dkim_key(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await add_dkim_key(setup))
    return dkim_keys.remove_dkim_key("sender.example", "s1", signed(), setup.clock())


CASES: list[Case] = [
    leave,
    record_outcomes,
    prune_suppressions,
    release_mail,
    resend_unknown,
    record_bounces,
    record_complaint,
    suppress,
    unsuppress,
    pause_destination,
    resume_destination,
    keep_policy,
    add_dkim_key,
    remove_dkim_key,
]
