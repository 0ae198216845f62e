"""Why was it late? Every attempt at an outgoing mail is kept, and many mails are settled at once."""

import ssl
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
import trustme

from postroom.core.errors import BadInput
from postroom.operations.caller import Caller
from postroom.operations.outbound.outbound_many import MailFilter, find_mail, settle_many
from postroom.store.engine.database import Database
from postroom.store.outbound import destinations, outbound, outbound_answers
from postroom.store.outbound.outbound import MailSender
from postroom.store.outbound.outbound_attempts import AttemptView, list_attempts
from postroom.store.outbound.outbound_recipients import Departure, leave
from postroom.store.people.audit import list_audit
from postroom_sandbox.smtp_server import Answers, Drop, SmtpServer
from support.clocks import ManualClock
from support.smtp import Zone, smtp_transport, zone_of
from support.smtp_sending import LEASE, SmtpSending
from support.store.fault_cases_outbound import DRAFT, leased_outbound
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

ADA, BEN, ZOE = "ada@example.org", "ben@example.org", "zoe@other.example"
OTHER = MailSender("other", "tenant.example", "u@tenant.example", "u@tenant.example")
ELSEWHERE: Zone = {"other.example": {"MX": [(10, "mx.example.org")]}}


@pytest.fixture
def sending(database: Database, clock: ManualClock) -> SmtpSending:
    return SmtpSending(database, clock)


async def attempt(sending: SmtpSending, answers: Answers | None = None) -> None:
    """One attempt at all that is due, at a server with TLS that answers like this."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("mx.example.org").configure_cert(context)
    async with (
        SmtpServer(answers or {}, tls=context) as server,
        smtp_transport(zone_of(more=ELSEWHERE), server.port) as transport,
    ):
        await sending.attempt(transport)


async def attempts(sending: SmtpSending, id: UUID) -> list[AttemptView]:
    return await sending.database.run(list_attempts(id))


async def test_each_attempt_is_kept_with_its_time_server_encryption_and_reply(sending: SmtpSending) -> None:
    begun = sending.clock()
    id = await sending.put(ADA, BEN)
    await attempt(sending, {"RCPT TO:<ben@": "451 4.7.1 Greylisted, come back"})
    sending.clock.forward(3600)
    await attempt(sending)
    ada, ben_later, ben_sent = await attempts(sending, id)
    assert (ada.address, ada.number, ada.outcome, ada.started_at) == (ADA, 1, "sent", begun)
    assert ((ada.host or "").partition("[")[0], (ada.tls or "")[:3]) == ("mx.example.org", "TLS")
    assert (ben_later.address, ben_later.number, ben_later.outcome) == (BEN, 1, "deferred")
    assert "451 4.7.1 Greylisted, come back" in (ben_later.reply or "")
    assert (ben_sent.number, ben_sent.outcome, ben_sent.ended_at) == (2, "sent", begun + timedelta(hours=1))


async def test_mail_that_is_held_back_counts_how_often_in_one_row(sending: SmtpSending) -> None:
    id = await sending.put(ADA)
    pausing = destinations.pause_destination("example.org", signed()._replace(reason="they asked"), sending.clock())
    await sending.database.run(pausing)
    for _ in range(3):
        await attempt(sending)
        sending.clock.forward(60)
    (held,) = await attempts(sending, id)
    assert (held.outcome, held.times, held.number) == ("held", 3, 1)
    assert "they asked" in (held.reply or "")
    await sending.database.run(destinations.resume_destination("example.org", signed(), sending.clock()))
    await attempt(sending)
    assert [each.outcome for each in await attempts(sending, id)] == ["held", "sent"]


async def test_a_holder_that_dies_while_mail_leaves_is_an_attempt_with_an_unknown_outcome(
    sending: SmtpSending,
) -> None:
    id = await sending.put(ADA)
    (leased,) = await sending.lease()
    await sending.database.run(leave([Departure(leased.hold, [(0, ADA)])], sending.clock(), sending.clock() + LEASE))
    sending.clock.forward(LEASE.total_seconds() + 1)
    assert await sending.lease() == []
    (unknown,) = await attempts(sending, id)
    assert unknown.outcome == "unknown"
    assert unknown.took > LEASE


async def test_attempts_through_a_mailbox_are_kept_too(database: Database, clock: ManualClock) -> None:
    setup = JobSetup(database, clock)
    leased = await leased_outbound(setup, "forward")
    later = clock() + timedelta(minutes=1)
    await database.run(outbound.defer(leased.hold, DRAFT, later, "Gmail failed (503)", clock.forward(2)))
    (kept,) = await database.run(list_attempts(leased.id))
    assert (kept.outcome, kept.reply, kept.took) == ("deferred", "Gmail failed (503)", timedelta(seconds=2))


async def unknown_mail(sending: SmtpSending, *to: str, sender: MailSender | None = None) -> UUID:
    """A mail of which nobody knows whether it arrived: the connection is lost after its last byte."""
    id = await sending.put(*to) if sender is None else await sending.put(*to, sender=sender)
    await attempt(sending, {".": Drop()})
    assert (await sending.mail(id)).state == "unknown"
    return id


async def test_many_mails_are_settled_by_tenant_destination_and_time(sending: SmtpSending) -> None:
    database, clock = sending.database, sending.clock
    first = await unknown_mail(sending, ADA)
    clock.forward(3600)
    second = await unknown_mail(sending, ZOE)
    third = await unknown_mail(sending, ADA, sender=OTHER)
    assert await find_mail(database, "sent", MailFilter(destination="example.org")) == [first, third]
    assert await find_mail(database, "sent", MailFilter(destination="EXAMPLE.ORG", tenant="other")) == [third]
    assert await find_mail(database, "sent", MailFilter(destination="example.or_")) == []
    assert await find_mail(database, "sent", MailFilter(since=clock() - timedelta(minutes=1))) == [second, third]
    assert await find_mail(database, "sent", MailFilter(until=clock() - timedelta(minutes=1))) == [first]
    assert await find_mail(database, "retry", MailFilter(tenant="other")) == []
    with pytest.raises(BadInput, match="in which this cannot be done"):
        await find_mail(database, "retry", MailFilter(state="unknown"))
    await database.run(outbound_answers.resolve_mail(first, "sent", signed(), clock()))
    done = await settle_many(Caller(database, signed(), clock), "not_sent", [first, second, third])
    assert done == 2
    assert Counter(each.state for each in await database.run(outbound.list_mail(9))) == {"queued": 2, "sent": 1}
    audited = [each.object_id for each in await database.run(list_audit(9)) if each.action == "outbound.resolve"]
    assert set(audited) == {str(first), str(second), str(third)}
