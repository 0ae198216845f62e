"""Refusals that prove nothing: an address is suppressed for a while, after several of them, and gets mail again."""

from datetime import timedelta
from uuid import UUID

import pytest

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.operations.outbound.suppressions import list_suppressions as list_holding
from postroom.store.engine.database import Database
from postroom.store.outbound.suppressions import (
    Suppression,
    list_strikes,
    list_suppressions,
    prune_suppressions,
    suppress,
    unsuppress,
)
from postroom_sandbox.smtp_server import Answers, SmtpServer
from support.clocks import ManualClock
from support.smtp import smtp_transport, zone_of
from support.smtp_sending import SmtpSending
from support.store.fault_cases_registry import signed

ADA, TENANT = "ada@example.org", "sender.example"
REFUSED = {"RCPT": "550 Access denied"}
DAY = timedelta(days=1)
PROVES_NOTHING = [
    ("RCPT", "550 Access denied"),
    ("RCPT", "550 Rejected"),
    ("RCPT", "550"),
    ("RCPT", "553 Refused"),
    ("RCPT", "554 Service currently unavailable"),
    ("RCPT", "550 5.4.6 Routing loop detected"),
    ("RCPT", "550 5.4.4 Unable to route"),
    ("RCPT", "550 5.2.0 Message Filtered"),
    ("RCPT", "550 5.1.0 Not accepted"),
    ("RCPT", "554 5.7.1 <ada@example.org>: Recipient address rejected: Access denied"),
    (
        "RCPT",
        "550-5.2.1 The user you are trying to contact is receiving mail at a rate that\n"
        "550 5.2.1 prevents additional messages from being delivered. - gsmtp",
    ),
    ("RCPT", "550 5.1.90 Your message can't be sent because you've reached your daily limit"),
    ("RCPT", "550 5.2.1 Mailbox temporarily disabled"),
    (".", "550 5.7.1 Message content rejected, UBE, id=4711"),
]


@pytest.fixture
def sending(database: Database, clock: ManualClock) -> SmtpSending:
    return SmtpSending(database, clock)


async def send(sending: SmtpSending, answers: Answers | None = None) -> UUID:
    """One mail to Ada, at a server that answers like this."""
    id = await sending.put(ADA)
    async with SmtpServer(answers or {}) as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.attempt(transport)
    return id


async def suppressed(sending: SmtpSending) -> list[Suppression]:
    return await sending.database.run(list_suppressions(TENANT, 9))


async def refuse_on_days(sending: SmtpSending, days: int) -> None:
    for _ in range(days):
        await send(sending, REFUSED)
        sending.clock.forward(DAY.total_seconds())


@pytest.mark.parametrize(("at", "reply"), PROVES_NOTHING, ids=[reply[:40] for _, reply in PROVES_NOTHING])
async def test_a_refusal_that_proves_nothing_suppresses_nobody(
    sqlite: Database, clock: ManualClock, at: str, reply: str
) -> None:
    sending = SmtpSending(sqlite, clock)
    (refused,) = await sending.results(await send(sending, {at: reply}))
    assert refused.state in ("bounced", "rejected")
    assert refused.bounce_class is not BounceClass.HARD
    assert await suppressed(sending) == []
    assert await sending.states(await send(sending)) == ["sent"]


async def test_refusals_on_three_days_suppress_an_address_for_a_month_with_the_reason(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 2)
    assert await suppressed(sending) == []
    await send(sending, REFUSED)
    (found,) = await suppressed(sending)
    assert (found.address, found.cause) == (ADA, "refusals")
    assert found.detail == ("refused on 3 days without a reason; last: mx.example.org[127.0.0.1]: 550 Access denied")
    assert found.expires_at == sending.clock() + 30 * DAY
    assert await sending.states(await send(sending)) == ["rejected"]
    sending.clock.forward(30 * DAY.total_seconds())
    assert (await list_holding(sending.database, sending.clock, TENANT)).lines == []
    assert await sending.states(await send(sending)) == ["sent"]


async def test_many_refusals_on_one_day_are_one_strike(sending: SmtpSending) -> None:
    for _ in range(5):
        await send(sending, REFUSED)
    assert await suppressed(sending) == []
    (struck,) = await sending.database.run(list_strikes(None, sending.clock() - DAY, 9))
    assert (struck.tenant, struck.address, struck.days) == (TENANT, ADA, 1)
    assert struck.last_reply == "mx.example.org[127.0.0.1]: 550 Access denied"


async def test_a_delivery_takes_the_strikes_back(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 2)
    await send(sending)
    assert await sending.database.run(list_strikes(TENANT, sending.clock() - 9 * DAY, 9)) == []
    await refuse_on_days(sending, 2)
    assert await suppressed(sending) == []


async def test_strikes_expire(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 2)
    sending.clock.forward(30 * DAY.total_seconds())
    await send(sending, REFUSED)
    assert await suppressed(sending) == []


async def test_a_refusal_of_the_content_says_nothing_about_the_address(sending: SmtpSending) -> None:
    for _ in range(4):
        await send(sending, {".": "554 Transaction failed"})
        sending.clock.forward(DAY.total_seconds())
    assert await suppressed(sending) == []


async def test_proof_replaces_what_would_have_ended_by_itself(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 3)
    sending.clock.forward(30 * DAY.total_seconds())
    await send(sending, {"RCPT": "550 5.1.1 User unknown"})
    (found,) = await suppressed(sending)
    assert (found.cause, found.expires_at) == ("bounce", None)
    await sending.database.run(suppress(TENANT, ADA, signed(), sending.clock()))
    assert await suppressed(sending) == [found]


async def test_removing_an_address_from_the_list_forgets_its_strikes(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 2)
    await sending.database.run(unsuppress(TENANT, ADA, signed(), sending.clock()))
    await refuse_on_days(sending, 2)
    assert await suppressed(sending) == []


async def test_what_has_ended_is_forgotten_and_what_holds_is_kept(sending: SmtpSending) -> None:
    await refuse_on_days(sending, 3)
    await sending.database.run(prune_suppressions(sending.clock()))
    assert len(await suppressed(sending)) == 1
    await sending.database.run(prune_suppressions(sending.clock() + 30 * DAY))
    assert await suppressed(sending) == []


async def test_our_own_findings_on_the_way_suppress_nobody(sqlite: Database, clock: ManualClock) -> None:
    sending = SmtpSending(sqlite, clock)
    id = await sending.put(ADA)
    async with smtp_transport(zone_of(), 1, allow_private=False) as transport:
        await sending.attempt(transport)
    (found,) = await sending.results(id)
    assert (found.state, found.enhanced, found.bounce_class) == ("bounced", "5.4.4", "soft")
    assert await suppressed(sending) == []
