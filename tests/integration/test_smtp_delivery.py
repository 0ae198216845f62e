"""Mail that leaves by SMTP: an outcome for each recipient, retries by the clock, reports, and what is unknown."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.permits import GRANT_S
from postroom.core.errors import IllegalMove
from postroom.core.outbound.pacing import PaceLimits
from postroom.core.outbound.replies import Reply
from postroom.core.outbound.reports import DeliveryReport, read_report
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.transport import (
    Leaving,
    MailOptions,
    Notify,
    OutgoingMail,
    OutgoingRecipient,
    RecipientOutcome,
    Transport,
    decided,
)
from postroom.core.submission.envelope import Recipient
from postroom.operations.actions.pausing import stop
from postroom.operations.caller import Caller
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.smtp_delivery import SmtpRoad
from postroom.outbound.smtp.options import Reuse
from postroom.store.actions import pauses
from postroom.store.engine.database import Database, Transaction
from postroom.store.outbound import destinations, outbound_answers, sender_counts, tenants
from postroom.store.outbound.outbound import MailSender, list_mail, load_content
from postroom.store.outbound.outbound_recipients import Departure, leave, resend_unknown
from postroom.store.people.audit import Signature
from postroom_sandbox.smtp_server import Answers, Drop, SmtpServer
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.provider_replies import REPLIES
from support.smtp import CONTENT, smtp_transport, zone_of
from support.smtp_sending import LEASE, MARA, SmtpSending, new_mail, queue_mail
from support.store.fault_cases_registry import signed

ADA, BEN, CLEO = "ada@example.org", "ben@example.org", "cleo@example.org"
NO_BEN = {"RCPT TO:<ben@": "550 5.1.1 no such user here"}
PHASES = {"connect": "connect", "greeting": "connect", "mail": "MAIL", "rcpt": "RCPT", "data": "DATA", "content": "."}
LATER = {"RCPT": "451 4.3.0 come back later"}
OTHER = MailSender("other.example", "other.example", "zoe@other.example", "zoe@other.example")
NEVER = {"RCPT": "550 5.1.1 no such user here"}


@pytest.fixture
def sending(database: Database, clock: ManualClock) -> SmtpSending:
    return SmtpSending(database, clock)


@pytest.fixture
def quickly(sqlite: Database, clock: ManualClock) -> SmtpSending:
    """The same on SQLite alone, for what is decided before the database."""
    return SmtpSending(sqlite, clock)


async def attempt(sending: SmtpSending, answers: Answers | None = None) -> SmtpServer:
    """One attempt at all that is due, at a server that answers like this."""
    async with SmtpServer(answers or {}) as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.attempt(transport)
    return server


async def sent_again(sending: SmtpSending) -> list[UUID]:
    return await sending.database.run(resend_unknown(10, RetrySchedule(), sending.rng, sending.clock()))


def because(reason: str) -> Signature:
    return signed()._replace(reason=reason)


class Stopping:
    """A transport that is stopped by somebody in the moment before the content leaves."""

    def __init__(self, inner: Transport, database: Database, stop: Callable[[], Transaction[Any]]) -> None:
        self._inner = inner
        self._database = database
        self._stop = stop

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> Sequence[RecipientOutcome]:
        async def stopped(positions: Sequence[int]) -> None:
            await self._database.run(self._stop())
            await leaving(positions)

        return await self._inner.deliver(mail, recipients, stopped)


class OnItsWay:
    """Lets the mail go, and hears of its arrival when the test says so."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.answered = asyncio.Event()

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        await leaving([each.position for each in recipients])
        self.begun.set()
        await self.answered.wait()
        return [decided(each.position, Reply(250, None, "ok", None, "content")) for each in recipients]


def pauses_of(sending: SmtpSending) -> list[tuple[Callable[[], Transaction[Any]], Callable[[], Transaction[Any]]]]:
    now = sending.clock
    return [
        (lambda: pauses.pause("all", "look", signed(), now()), lambda: pauses.resume("all", signed(), now())),
        (
            lambda: tenants.pause_tenant("sender.example", because("unpaid"), now()),
            lambda: tenants.resume_tenant("sender.example", signed(), now()),
        ),
        (
            lambda: destinations.pause_destination("example.org", because("blocked"), now()),
            lambda: destinations.resume_destination("example.org", signed(), now()),
        ),
    ]


async def test_mail_arrives_as_it_was_submitted_and_each_recipient_has_an_outcome(sending: SmtpSending) -> None:
    id = await sending.put(ADA, BEN, CLEO)
    server = await attempt(sending, NO_BEN)
    (mail,) = server.received
    assert (mail.sender, mail.recipients, mail.content) == ("mara@sender.example", (ADA, CLEO), CONTENT)
    ada, ben, cleo = await sending.results(id)
    assert (ada.state, ben.state, cleo.state) == ("sent", "bounced", "sent")
    assert (ben.enhanced, ben.bounce_class, ben.attempts) == ("5.1.1", "hard", 1)
    assert ben.last_reply == "mx.example.org[127.0.0.1]: 550 5.1.1 no such user here"
    assert (await sending.mail(id)).state == "partially_sent"
    (counted,) = [
        each
        for each in await sending.database.run(sender_counts.scored_senders(sending.clock(), 0, 9, sending.clock()))
        if each.username == MARA.username
    ]
    assert (counted.delivered, counted.bounced, counted.rejected) == (2, 1, 0)


async def test_replies_of_providers_decide_the_state_and_class_of_the_recipient(quickly: SmtpSending) -> None:
    unhurried = PaceLimits(first_rest_s=0, longest_rest_s=0)
    async with (
        SmtpServer() as server,
        smtp_transport(zone_of(), server.port, pace=unhurried, reuse=Reuse(messages=1)) as transport,
    ):
        for number, given in enumerate(REPLIES):
            server.answers = {PHASES[given.phase]: given.reply}
            id = await quickly.put(f"r{number}@example.org")
            for leased in await quickly.lease():
                if leased.id == id:
                    await quickly.delivery(leased, transport).attempt()
            (found,) = await quickly.results(id)
            assert (found.state, found.bounce_class) == (given.result, given.bounce_class), given.reply
    failed = [each for each in REPLIES if each.result in ("bounced", "rejected")]
    assert len(await quickly.reports()) == len(failed)


@pytest.mark.parametrize("command", ["connect", "EHLO", "MAIL", "RCPT", "DATA"])
async def test_a_connection_that_ends_before_the_final_dot_defers_and_the_mail_arrives_once(
    quickly: SmtpSending, command: str
) -> None:
    id = await quickly.put(ADA)
    first = await attempt(quickly, {command: Drop()})
    assert (await quickly.states(id), first.received) == (["deferred"], [])
    quickly.clock.forward(90)
    second = await attempt(quickly)
    assert (await quickly.states(id), len(second.received)) == (["sent"], 1)


async def test_a_connection_that_ends_after_the_final_dot_leaves_the_mail_unknown_and_it_is_not_repeated(
    sending: SmtpSending,
) -> None:
    id = await sending.put(ADA, "eve@example.net")
    await attempt(sending, {".": Drop()})
    (ada, eve) = await sending.results(id)
    assert (ada.state, eve.state) == ("unknown", "bounced")
    assert (ada.last_reply or "").startswith("it may have arrived: ")
    assert (await sending.mail(id)).state == "unknown"
    sending.clock.forward(timedelta(days=6).total_seconds())
    assert (await attempt(sending)).received == []
    resolved = await sending.database.run(outbound_answers.resolve_mail(id, "sent", signed(), sending.clock()))
    assert (resolved, (await sending.mail(id)).state) == ("sent", "partially_sent")


async def test_unknown_mail_is_sent_again_when_a_person_or_the_rule_says_so(sending: SmtpSending) -> None:
    id = await sending.put(ADA)
    await attempt(sending, {".": Drop()})
    await sending.database.run(outbound_answers.resolve_mail(id, "not_sent", signed(), sending.clock()))
    await attempt(sending, {".": Drop()})
    assert await sending.states(id) == ["unknown"]
    assert await sent_again(sending) == [id]
    sending.clock.forward(timedelta(minutes=3).total_seconds())
    server = await attempt(sending)
    assert (await sending.states(id), len(server.received)) == (["sent"], 1)


async def test_a_server_that_never_answers_does_not_get_unknown_mail_over_and_over(sending: SmtpSending) -> None:
    """By the rule `resend` it waits longer each time, as deferred mail does, and in the end a person decides."""
    id, copies, began = await sending.put(ADA), 0, sending.clock()
    while sending.clock() - began < timedelta(days=6):
        copies += len((await attempt(sending, {".": Drop()})).received)
        assert (await sent_again(sending) == [id]) == (sending.clock() - began < timedelta(days=5))
        assert await sent_again(sending) == []
        due = (await sending.mail(id)).not_before
        sending.clock.forward(max(due - sending.clock(), timedelta(hours=1)).total_seconds())
    assert await sending.states(id) == ["unknown"]
    assert copies < 50


async def test_unknown_recipients_are_settled_while_others_of_the_same_mail_are_still_tried(
    sending: SmtpSending,
) -> None:
    id = await sending.put(ADA, BEN)
    await attempt(sending, {"RCPT TO:<ben@": "451 4.3.0 later", ".": Drop()})
    assert await sending.states(id) == ["unknown", "deferred"]
    await sending.database.run(outbound_answers.resolve_mail(id, "sent", signed(), sending.clock()))
    assert await sending.states(id) == ["sent", "deferred"]
    with pytest.raises(IllegalMove):
        await sending.database.run(outbound_answers.resolve_mail(id, "sent", signed(), sending.clock()))


async def test_a_holder_that_dies_while_the_content_leaves_makes_it_unknown_and_otherwise_it_waits_again(
    sending: SmtpSending,
) -> None:
    gone, waiting = await sending.put(ADA, BEN), await sending.put(CLEO)
    leased = {each.id: each for each in await sending.lease()}
    departure = Departure(leased[gone].hold, [(0, ADA)])
    assert await sending.database.run(leave([departure], sending.clock(), sending.clock() + LEASE)) == [None]
    sending.clock.forward(LEASE.total_seconds() + 1)
    assert {each.id for each in await sending.lease()} == {gone, waiting}
    assert await sending.states(gone) == ["unknown", "sending"]
    assert "died" in ((await sending.results(gone))[0].last_reply or "")
    assert await sending.states(waiting) == ["sending"]


async def test_mail_for_later_is_tried_for_as_long_as_other_mail(sending: SmtpSending) -> None:
    later = timedelta(days=20)
    new = replace(new_mail(ADA), not_before=sending.clock() + later)
    await sending.database.run(queue_mail([new], sending.clock()))
    assert await sending.lease() == []
    sending.clock.forward(later.total_seconds())
    await attempt(sending, LATER)
    assert (await sending.states(new.id), await sending.reports()) == (["deferred"], [])


async def test_waits_double_with_jitter_and_the_mail_expires_after_five_days_with_one_report_of_each_kind(
    sending: SmtpSending,
) -> None:
    id, waits = await sending.put(ADA), list[float]()
    began = sending.clock()
    while True:
        await attempt(sending, LATER)
        (ada,) = await sending.results(id)
        if ada.state != "deferred":
            break
        waits.append((ada.not_before - sending.clock()).total_seconds())
        sending.clock.now = ada.not_before
    assert ada.state == "expired"
    assert sending.clock() - began == timedelta(days=5)
    for place, wait in enumerate(waits[:-2]):
        usual = min(60 * 2**place, 4 * 3600)
        assert 0.74 * usual <= wait <= 1.26 * usual
    subjects = sorted(view.subject for view in await sending.reports())
    assert subjects == ["Your mail is delayed", "Your mail was not delivered"]
    assert (await sending.mail(id)).state == "expired"


async def test_the_destination_says_when_to_come_back(quickly: SmtpSending) -> None:
    id = await quickly.put(ADA)
    await attempt(quickly, {"RCPT": "451 4.7.1 Greylisted, please try again in 300 seconds"})
    (ada,) = await quickly.results(id)
    assert (ada.not_before - quickly.clock(), ada.bounce_class) == (timedelta(seconds=300), "greylist")


@pytest.mark.parametrize(("asked", "waits"), [("20 seconds", 20), ("90 seconds", 90), ("1 second", 5), ("3 days", 60)])
async def test_a_short_wait_is_kept_and_one_that_is_none_is_not(quickly: SmtpSending, asked: str, waits: int) -> None:
    id = await quickly.put(ADA)
    await attempt(quickly, {"RCPT": f"450 4.2.0 Busy, try again in {asked}"})
    (ada,) = await quickly.results(id)
    found = (ada.not_before - quickly.clock()).total_seconds()
    assert found == waits if asked != "3 days" else 45 <= found <= 75


async def test_a_destination_that_always_asks_for_a_moment_gets_the_usual_waits_in_the_end(
    quickly: SmtpSending,
) -> None:
    id = await quickly.put(ADA)
    waits: list[float] = []
    for _ in range(8):
        await attempt(quickly, {"RCPT": "450 4.2.0 Busy, try again in 20 seconds"})
        (ada,) = await quickly.results(id)
        waits.append((ada.not_before - quickly.clock()).total_seconds())
        quickly.clock.forward(waits[-1])
    assert waits[:5] == [20] * 5
    assert all(wait >= 0.74 * 60 * 2**place for place, wait in enumerate(waits) if place >= 5)


async def test_a_report_goes_back_to_the_envelope_sender_and_none_is_made_about_a_report(sending: SmtpSending) -> None:
    recipient = Recipient(BEN, ("failure",), "rfc822;Ben@Example.org")
    new = new_mail(ADA, recipient, options=MailOptions(envelope_id="QQ314159"))
    await sending.database.run(queue_mail([new], sending.clock()))
    await attempt(sending, NO_BEN)
    (view,) = await sending.reports()
    content = await sending.database.run(load_content(view.id))
    assert (view.recipients, view.username) == (("mara@sender.example",), "reports for sender.example")
    found = read_report(content)
    assert isinstance(found, DeliveryReport)
    assert [(each.address, each.action) for each in found.recipients] == [(BEN, "failed")]
    assert b"Original-Envelope-Id: QQ314159\r\n" in content
    assert b"Original-Recipient: rfc822; Ben@Example.org\r\n" in content
    # The report itself bounces: its domain does not exist.
    await attempt(sending)
    assert (await sending.mail(view.id)).state == "bounced"
    assert len(await sending.database.run(list_mail(9))) == 2


async def test_the_reports_of_a_tenant_do_not_wait_for_a_thousand_reports_of_another(sending: SmtpSending) -> None:
    for place in range(30):
        await sending.put(f"gone{place}@example.org")
    await sending.put(CLEO, sender=OTHER)
    await attempt(sending, NEVER)
    names = [(await sending.mail(each.id)).username for each in await sending.lease(10)]
    assert sorted(set(names)) == ["reports for other.example", "reports for sender.example"]


@pytest.mark.parametrize(
    ("notify", "answers", "kinds"),
    [
        ((), {}, []),
        (("success",), {}, []),  # the server was asked for it
        (("never",), NEVER, []),
        (("success", "delay"), NEVER, []),
        (("failure",), NEVER, ["Your mail was not delivered"]),
    ],
)
async def test_reports_are_those_that_were_asked_for(
    quickly: SmtpSending, notify: tuple[Notify, ...], answers: Answers, kinds: list[str]
) -> None:
    await quickly.put(Recipient(ADA, notify))
    await attempt(quickly, answers)
    assert [view.subject for view in await quickly.reports()] == kinds


async def test_nothing_is_reported_about_mail_with_an_empty_envelope_sender(quickly: SmtpSending) -> None:
    id = await quickly.put(ADA, sender=MARA._replace(envelope_sender=""))
    server = await attempt(quickly, NEVER)
    assert (await quickly.states(id), await quickly.reports(), server.received) == (["bounced"], [], [])


async def test_an_address_that_does_not_exist_gets_no_more_mail_of_the_same_tenant(sending: SmtpSending) -> None:
    await sending.put(BEN)
    await attempt(sending, NEVER)
    again, elsewhere = await sending.put("Ben@Example.org", ADA), await sending.put(BEN, sender=OTHER)
    server = await attempt(sending)
    ben, ada = await sending.results(again)
    assert (ben.state, ada.state, await sending.states(elsewhere)) == ("rejected", "sent", ["sent"])
    assert "suppressed" in (ben.last_reply or "")
    assert sorted(mail.recipients for mail in server.received) == [(ADA,), (BEN,)]


async def test_mail_that_waits_for_data_is_held_by_the_kill_switch_the_tenants_and_the_destinations_pause(
    sending: SmtpSending,
) -> None:
    id = await sending.put(ADA)
    for forbid, allow in pauses_of(sending):
        (leased,) = await sending.lease()
        async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
            held = Stopping(transport, sending.database, forbid)
            await sending.delivery(leased, held).attempt()
        assert server.received == []
        (ada,) = await sending.results(id)
        assert (ada.state, ada.attempts) == ("queued", 0)
        assert "RCPT TO:<ada@example.org>" in server.commands  # it was about to leave
        await sending.database.run(allow())
        sending.clock.forward(31)
    assert len((await attempt(sending)).received) == 1
    assert await sending.states(id) == ["sent"]


async def test_a_pause_waits_for_mail_that_is_leaving_and_counts_what_it_did_not_wait_for(sending: SmtpSending) -> None:
    id = await sending.put(ADA)
    (leased,) = await sending.lease()
    leaving = OnItsWay()
    delivering = asyncio.create_task(sending.delivery(leased, leaving).attempt())
    await leaving.begun.wait()
    in_haste = iter([0.0, *[GRANT_S + 1.0] * 100])
    stopped = await stop(Caller(sending.database, signed(), sending.clock), pauses.ALL, "look", lambda: next(in_haste))
    assert (stopped.on_wire, stopped.silent) == (1, 0)
    patient = asyncio.create_task(
        stop(Caller(sending.database, signed(), sending.clock), pauses.ALL, "look", lambda: 0.0), name="pause"
    )
    await asyncio.wait({patient}, timeout=0)
    assert not patient.done()
    leaving.answered.set()
    await delivering
    assert (await patient).on_wire == 0
    assert await sending.states(id) == ["sent"]


async def test_content_that_was_let_go_too_long_ago_does_not_leave(sending: SmtpSending) -> None:
    id = await sending.put(ADA)
    (leased,) = await sending.lease()
    moments = iter([0.0, GRANT_S + 0.1])
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.delivery(leased, transport, lambda: next(moments)).attempt()
    assert server.received == []
    (ada,) = await sending.results(id)
    assert (ada.state, ada.attempts) == ("queued", 0)


async def test_mail_to_a_paused_destination_waits_and_other_recipients_get_theirs(sending: SmtpSending) -> None:
    await sending.database.run(destinations.pause_destination("Example.NET", because("blocked there"), sending.clock()))
    id = await sending.put(ADA, "eve@example.net")
    server = await attempt(sending)
    assert [mail.recipients for mail in server.received] == [(ADA,)]
    ada, eve = await sending.results(id)
    assert (ada.state, eve.state, eve.attempts) == ("sent", "queued", 0)
    assert (await sending.mail(id)).state == "queued"


async def test_canceling_stops_what_is_being_tried_and_tells_what_has_arrived(sending: SmtpSending) -> None:
    id = await sending.put(ADA, BEN)
    await attempt(sending, {"RCPT TO:<ben@": "451 4.3.0 later"})
    assert await sending.database.run(outbound_answers.cancel_mail(id, signed(), sending.clock())) == "canceled"
    assert (await sending.states(id), (await sending.mail(id)).state) == (["sent", "canceled"], "partially_sent")
    held = await sending.put(ADA)
    (leased,) = await sending.lease()
    assert await sending.database.run(outbound_answers.cancel_mail(held, signed(), sending.clock())) == "stopping"
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.delivery(leased, transport).attempt()
    assert (await sending.states(held), server.received) == (["canceled"], [])


async def test_mail_that_requires_tls_does_not_leave_without_it(quickly: SmtpSending) -> None:
    new = new_mail(ADA, options=MailOptions(require_tls=True))
    await quickly.database.run(queue_mail([new], quickly.clock()))
    server = await attempt(quickly)
    (ada,) = await quickly.results(new.id)
    assert (ada.state, server.received) == ("deferred", [])
    assert not any(each.startswith("MAIL") for each in server.commands)


class Slow:
    """A transport at which the content has begun to leave; it has an answer when the test says so."""

    def __init__(self) -> None:
        self.is_leaving = asyncio.Event()
        self.answers = asyncio.Event()

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        await leaving([each.position for each in recipients])
        self.is_leaving.set()
        await self.answers.wait()
        return [decided(each.position, Reply(250, None, "Ok", None, "content")) for each in recipients]


async def test_a_process_that_is_stopped_hears_the_answer_to_what_is_leaving(sending: SmtpSending) -> None:
    id, transport = await sending.put(ADA), Slow()
    (leased,) = await sending.lease()
    delivering = asyncio.create_task(sending.delivery(leased, transport).run())
    await transport.is_leaving.wait()
    delivering.cancel()
    await asyncio.sleep(0)
    transport.answers.set()
    await asyncio.wait({delivering})
    assert delivering.cancelled()
    assert await sending.states(id) == ["sent"]


async def test_without_an_answer_it_is_unknown_and_what_was_not_leaving_waits(
    sending: SmtpSending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.outbound.queue.smtp_delivery.STOP_GRACE_S", 0.0)
    id, transport = await sending.put(ADA), Slow()
    (leased,) = await sending.lease()
    delivering = asyncio.create_task(sending.delivery(leased, transport).run())
    await transport.is_leaving.wait()
    delivering.cancel()
    await asyncio.wait({delivering})
    (ada,) = await sending.results(id)
    assert (ada.state, "the process ended" in (ada.last_reply or "")) == ("unknown", True)


class Silent:
    """A transport whose destinations take as long as they like to answer."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        self.asked.put_nowait(recipients[0].address)
        await asyncio.Event().wait()
        raise AssertionError


async def test_destinations_that_do_not_answer_keep_no_other_tenant_waiting(sending: SmtpSending) -> None:
    """Mail that has been under way for long leaves its slot to others, and no tenant gets all of the room."""
    pace, transport = Pace(at_once=2, slow=timedelta(0)), Silent()

    async def transport_of() -> Transport:
        return transport

    await sending.database.run(queue_mail([new_mail(f"{place}@slow.example") for place in range(60)], sending.clock()))
    road = SmtpRoad(transport_of, "out.sender.example")
    running = asyncio.create_task(
        OutboundDispatcher(sending.database, no_mailbox, pace, sending.clock, smtp=road).run()
    )
    async with asyncio.timeout(PATIENCE_S):
        slow = [await transport.asked.get() for _ in range(pace.room // 2)]
        await sending.put(CLEO, sender=OTHER)
        assert await transport.asked.get() == CLEO
    assert len(set(slow)) == pace.room // 2
    running.cancel()
    await asyncio.wait({running})


async def test_behind_a_smart_host_all_mail_waits_for_its_turn(sending: SmtpSending) -> None:
    """There, more mail under way would only wait outside of the fair queue."""
    pace, transport = Pace(at_once=2, slow=timedelta(0), poll=timedelta(milliseconds=1)), Silent()

    async def transport_of() -> Transport:
        return transport

    await sending.database.run(queue_mail([new_mail(f"{place}@slow.example") for place in range(9)], sending.clock()))
    road = SmtpRoad(transport_of, "out.sender.example", by_smart_host=True)
    running = asyncio.create_task(
        OutboundDispatcher(sending.database, no_mailbox, pace, sending.clock, smtp=road).run()
    )
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(2):
            await transport.asked.get()
    asked = [each.state for each in await sending.database.run(list_mail(99))].count("sending")
    assert (asked, transport.asked.qsize()) == (2, 0)
    running.cancel()
    await asyncio.wait({running})


async def no_mailbox(permit: Any) -> Any:
    raise AssertionError(permit)
