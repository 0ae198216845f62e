"""What the next server offers decides how mail goes on: who reports success, and whether 8-bit content may leave."""

from uuid import UUID

import pytest

from postroom.core.outbound.reports import DeliveryReport, read_report
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database
from postroom.store.outbound.outbound import load_content
from postroom_sandbox.smtp_server import EXTENSIONS, Answers, Drop, SmtpServer
from support.clocks import ManualClock
from support.smtp import smtp_transport, zone_of
from support.smtp_sending import SmtpSending
from support.submission import MESSAGE, added_sender, connected, queued_as, submission_server

ADA, BEN = "ada@example.org", "ben@example.org"
WITHOUT_DSN = tuple(each for each in EXTENSIONS if each != "DSN")
WITHOUT_8BIT = ("PIPELINING", "SIZE 26214400", "DSN")
EIGHT_BIT = MESSAGE.replace(b"\r\n\r\n", "\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGrüße ".encode())


@pytest.fixture
def sending(sqlite: Database, clock: ManualClock) -> SmtpSending:
    return SmtpSending(sqlite, clock)


async def attempt(sending: SmtpSending, extensions: tuple[str, ...], answers: Answers | None = None) -> SmtpServer:
    async with SmtpServer(answers or {}, extensions) as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.attempt(transport)
    return server


async def reported(sending: SmtpSending) -> list[tuple[str, str]]:
    """The recipients and what is reported about them."""
    found: list[tuple[str, str]] = []
    for view in reversed(await sending.reports()):
        report = read_report(await sending.database.run(load_content(view.id)))
        assert isinstance(report, DeliveryReport)
        found += [(each.address, each.action) for each in report.recipients]
    return found


@pytest.mark.parametrize(("extensions", "reports"), [(EXTENSIONS, []), (WITHOUT_DSN, [(ADA, "relayed")])])
async def test_success_is_reported_by_us_or_by_the_next_server_but_not_by_both(
    sending: SmtpSending, extensions: tuple[str, ...], reports: list[tuple[str, str]]
) -> None:
    await sending.put(Recipient(ADA, ("success", "failure")))
    server = await attempt(sending, extensions)
    asked = [each for each in server.commands if "NOTIFY=SUCCESS,FAILURE" in each]
    assert (len(asked), await reported(sending)) == (0 if reports else 1, reports)


async def test_success_is_reported_once_for_each_recipient_however_many_attempts_it_takes(sending: SmtpSending) -> None:
    both = ("success", "failure", "delay")
    id = await sending.put(Recipient(ADA, both), Recipient(BEN, both))
    later = {"RCPT TO:<ben@": "450 4.2.0 later"}
    await attempt(sending, WITHOUT_DSN, later)
    assert await sending.states(id) == ["sent", "deferred"]
    for _ in range(2):
        sending.clock.now = (await sending.results(id))[1].not_before
        sending.clock.forward(5 * 3600)
        await attempt(sending, WITHOUT_DSN, later)
    sending.clock.now = (await sending.results(id))[1].not_before
    await attempt(sending, WITHOUT_DSN)
    assert await sending.states(id) == ["sent", "sent"]
    kinds = sorted(view.subject for view in await sending.reports())
    assert kinds == ["Your mail is delayed", "Your mail was delivered", "Your mail was delivered"]


async def test_nothing_is_reported_as_success_while_nobody_knows(sending: SmtpSending) -> None:
    id = await sending.put(Recipient(ADA, ("success",)))
    await attempt(sending, WITHOUT_DSN, {".": Drop()})
    assert (await sending.states(id), await reported(sending)) == (["unknown"], [])


async def submitted(database: Database, clock: ManualClock) -> UUID:
    """A mail with 8-bit content, from a client that does not say so."""
    await added_sender(database, clock=clock)
    async with submission_server(database, clock=clock) as server, connected(server.port) as client:
        assert (await client.begin(ADA)).startswith("354")
        return UUID(queued_as(await client.deliver(EIGHT_BIT)))


@pytest.mark.parametrize("answers", [{}, {"EHLO": "502 5.5.1 not implemented"}], ids=["EHLO", "HELO"])
async def test_8_bit_content_never_leaves_to_a_server_that_does_not_take_it(
    sending: SmtpSending, answers: Answers
) -> None:
    id = await submitted(sending.database, sending.clock)
    server = await attempt(sending, WITHOUT_8BIT, answers)
    assert (server.received, "MAIL" in " ".join(server.commands)) == ([], False)
    (ada,) = await sending.results(id)
    assert (ada.state, ada.enhanced, ada.bounce_class) == ("rejected", "5.6.3", "content")
    assert "8-bit" in (ada.last_reply or "")
    assert await reported(sending) == [(ADA, "failed")]


async def test_8_bit_content_is_declared_to_a_server_that_takes_it_although_nobody_said_so(
    sending: SmtpSending,
) -> None:
    id = await submitted(sending.database, sending.clock)
    server = await attempt(sending, EXTENSIONS)
    assert await sending.states(id) == ["sent"]
    assert any("BODY=8BITMIME" in each for each in server.commands)
    assert "Grüße".encode() in server.received[0].content
