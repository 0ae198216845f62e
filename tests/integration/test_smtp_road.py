"""The road out by SMTP as it is composed: signed mail, reports of others, restores, and the commands."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dkim
import pytest

from postroom.compose.smtp import SmtpOnDemand
from postroom.core.errors import BadInput
from postroom.core.outbound.replies import Reply
from postroom.core.outbound.transport import (
    Leaving,
    OutgoingMail,
    OutgoingRecipient,
    RecipientOutcome,
    Transport,
    decided,
)
from postroom.operations.accounts.keys import rotate_keys
from postroom.operations.caller import Caller
from postroom.operations.installation.vault import vault_of
from postroom.operations.outbound.destinations import add_dkim
from postroom.operations.outbound.reports import take_report
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.dsn import Action, ReportedMail, ReportedRecipient, delivery_report
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.smtp_delivery import SmtpRoad
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.installation import timeline
from postroom.store.outbound import outbound, sender_counts, suppressions
from postroom.store.outbound.outbound_turns import miscounted_turns
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.smtp_server import Drop, SmtpServer
from support.clocks import ManualClock
from support.shell import Shell
from support.smtp import CONTENT, smtp_transport, zone_of
from support.smtp_sending import MARA, SmtpSending, new_mail, queue_mail
from support.store.fault_cases_registry import signed
from support.until import until

ADA, BEN = "ada@example.org", "ben@example.org"
MESSAGE = b"Message-ID: <one@sender.example>\r\n" + CONTENT
GONE = Reply(550, "5.1.1", "User unknown", "mx.example.org", "rcpt")
COMPLAINT = (
    b"From: feedback@example.org\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: text/plain\r\n\r\nA complaint.\r\n"
    b"--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n"
    b"Original-Rcpt-To: ada@example.org\r\n\r\n"
    b"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <one@sender.example>\r\n\r\n--b--\r\n"
)


async def no_mailbox(permit: Any) -> Any:
    raise AssertionError(permit)


async def test_mail_leaves_signed_and_byte_for_byte_through_the_transport_of_the_settings(tmp_path: Path) -> None:
    """With a key that was made, sealed, and sealed anew; another implementation checks the signature."""
    async with SmtpServer() as server:
        given = {"smart_host": "127.0.0.1", "smart_host_port": server.port, "smart_host_tls": "opportunistic"}
        overrides = {f"delivery.{name}": value for name, value in given.items()}
        settings = load_settings({"data_dir": tmp_path, **overrides}, environ={}, cwd=tmp_path)
        database = await open_database(tmp_path)
        vault = vault_of(settings)
        made = await add_dkim(Caller(database, signed()), vault, "Sender.example", "s1", "rsa-sha256")
        assert made.name == "s1._domainkey.sender.example"
        await rotate_keys(Caller(database, signed()), vault, settings, drop_old=True)
        new = new_mail(ADA)
        await database.run(queue_mail([new], wall_clock()))
        async with SmtpOnDemand(settings, database) as smtp:
            sending = asyncio.create_task(OutboundDispatcher(database, no_mailbox, smtp=smtp.road()).run())

            async def look() -> str:
                return (await database.run(outbound.load_mail(new.id))).state

            assert (
                await until(database, look, lambda state: state in ("sent", "bounced"), (outbound.CHANNEL,)) == "sent"
            )
            sending.cancel()
            await asyncio.wait({sending})
        await database.close()
    (mail,) = server.received

    def published(_name: bytes, timeout: int = 5) -> bytes:
        return made.record.encode()

    signature, separator, original = mail.content.partition(CONTENT[:40])
    assert signature.startswith(b"DKIM-Signature: ")
    assert separator + original == CONTENT
    assert dkim.verify(mail.content, dnsfunc=published)
    forged = mail.content.replace(b"Line one", b"Line two")
    assert not dkim.verify(forged, dnsfunc=published)


class Counting:
    """Counts the mails that it has in hand at the same time. The first ones stay until so many have come."""

    def __init__(self, full: int) -> None:
        self.here = self.most = 0
        self._full = full
        self._is_full = asyncio.Event()

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        self.here += 1
        self.most = max(self.most, self.here)
        if self.here == self._full:
            self._is_full.set()
        await self._is_full.wait()
        await leaving([each.position for each in recipients])
        self.here -= 1
        return [decided(each.position, Reply(250, None, "ok", None, "content")) for each in recipients]


async def test_two_senders_together_have_no_more_in_delivery_than_the_queue_may_have(tmp_path: Path) -> None:
    databases = [await open_database(tmp_path), await open_database(tmp_path)]
    mails = [new_mail(f"zoe-{number}@example.org") for number in range(50)]
    await databases[0].run(queue_mail(mails, wall_clock()))
    counting = Counting(5)

    async def transport() -> Transport:
        return counting

    async def look() -> set[str]:
        return {each.state for each in await databases[0].run(outbound.list_mail(100))}

    # Nothing is slow, however long it takes.
    pace, road = Pace(slow=timedelta(hours=1)), SmtpRoad(transport, "out.example")
    sending = [
        asyncio.create_task(OutboundDispatcher(each, no_mailbox, pace, smtp=road, most=5).run()) for each in databases
    ]
    assert await until(databases[0], look, lambda states: states == {"sent"}, (outbound.CHANNEL,)) == {"sent"}
    assert counting.most == 5
    for task in sending:
        task.cancel()
    await asyncio.wait(sending)
    for each in databases:
        await each.close()


class SlowElsewhere:
    """Takes mail to example.org at once, and never answers about any other."""

    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        if not recipients[0].address.endswith("@example.org"):
            await asyncio.Event().wait()
        await leaving([each.position for each in recipients])
        return [decided(each.position, Reply(250, None, "ok", None, "content")) for each in recipients]


async def test_a_dozen_slow_destinations_stop_nobody_by_default(tmp_path: Path) -> None:
    settings = load_settings({"data_dir": tmp_path}, environ={}, cwd=tmp_path)
    database = await open_database(tmp_path)
    new = new_mail(ADA)
    slow = [new_mail(f"zoe@slow-{number}.example") for number in range(12)]
    await database.run(queue_mail([*slow, new], wall_clock()))

    async def transport() -> Transport:
        return SlowElsewhere()

    async def look() -> str:
        return (await database.run(outbound.load_mail(new.id))).state

    pace = Pace(at_once=settings.outbound.concurrency)
    sending = asyncio.create_task(
        OutboundDispatcher(database, no_mailbox, pace, smtp=SmtpRoad(transport, "out.example")).run()
    )
    assert await until(database, look, lambda state: state == "sent", (outbound.CHANNEL,)) == "sent"
    sending.cancel()
    await asyncio.wait({sending})
    await database.close()


async def sent(sending: SmtpSending, answers: dict[str, Any] | None = None) -> Any:
    id = await sending.put(ADA, BEN, content=MESSAGE)
    async with SmtpServer(answers or {}) as server, smtp_transport(zone_of(), server.port) as transport:
        await sending.attempt(transport)
    return id


def report(action: Action, *to: str, content: bytes = MESSAGE) -> bytes:
    about = ReportedMail(new_id(), MARA.envelope_sender, content, datetime(2026, 11, 15).astimezone())
    told = [ReportedRecipient(each, action, GONE) for each in to]
    return delivery_report(new_id(), "mx.example.org", about, told, about.accepted_at)


async def test_a_report_moves_a_recipient_that_was_sent_to_bounced_suppresses_it_and_counts(
    database: Database, clock: ManualClock
) -> None:
    sending = SmtpSending(database, clock)
    id = await sent(sending)
    raw = report("failed", "Ada@example.org")
    assert await take_report(database, raw, clock) == 1
    assert await take_report(database, raw, clock) == 0
    ada, ben = await sending.results(id)
    assert (ada.state, ada.bounce_class, ben.state) == ("bounced", "hard", "sent")
    assert (await sending.mail(id)).state == "partially_sent"
    (found,) = await database.run(suppressions.list_suppressions("sender.example", 9))
    assert (found.address, found.cause) == (ADA, "bounce")
    (counted,) = await database.run(sender_counts.scored_senders(clock(), 0, 9, clock()))
    assert (counted.delivered, counted.bounced) == (2, 1)


async def test_a_report_tells_what_became_of_a_recipient_that_was_unknown(
    database: Database, clock: ManualClock
) -> None:
    sending = SmtpSending(database, clock)
    id = await sent(sending, {".": Drop()})
    assert await sending.states(id) == ["unknown", "unknown"]
    assert await take_report(database, report("relayed", ADA), clock) == 1
    assert (await sending.mail(id)).state == "unknown"
    assert await take_report(database, report("failed", BEN), clock) == 1
    assert (await sending.states(id), (await sending.mail(id)).state) == (["sent", "bounced"], "partially_sent")


async def test_reports_about_other_mail_or_recipients_change_nothing(database: Database, clock: ManualClock) -> None:
    sending = SmtpSending(database, clock)
    id = await sent(sending)
    other = MESSAGE.replace(b"one@", b"two@")
    assert await take_report(database, report("failed", ADA, content=other), clock) == 0
    assert await take_report(database, report("failed", "eve@example.org"), clock) == 0
    assert await take_report(database, report("delayed", ADA), clock) == 0
    with pytest.raises(BadInput):
        await take_report(database, CONTENT, clock)
    assert await sending.states(id) == ["sent", "sent"]


async def test_whoever_complains_gets_no_more_mail_of_the_tenant(database: Database, clock: ManualClock) -> None:
    sending = SmtpSending(database, clock)
    await sent(sending)
    assert await take_report(database, COMPLAINT, clock) == 1
    again = await sent(sending)
    assert await sending.states(again) == ["rejected", "sent"]
    (found,) = await database.run(suppressions.list_suppressions(None, 9))
    assert (found.cause, found.detail) == ("complaint", "abuse")


async def test_after_a_restore_mail_that_may_have_left_since_is_unknown(database: Database, clock: ManualClock) -> None:
    sending = SmtpSending(database, clock)
    waiting, held = await sending.put(ADA), await sending.put(BEN)
    seen = timeline.Seen(new_id(), 1, 1)
    await sending.lease(1)
    await database.run(
        timeline.mark_restored(new_id(), timeline.DatabasePlace("file 2"), seen, clock(), signed(), clock.forward(60))
    )
    for id in (waiting, held):
        assert await sending.states(id) == ["unknown"]
        assert "restored" in ((await sending.mail(id)).error or "")
    assert await database.run(miscounted_turns()) == []
    clock.forward(3600)
    assert await sending.lease() == []


def test_keys_pauses_and_suppressions_are_made_listed_and_removed(shell: Shell) -> None:
    assert shell("dkim", "add", "example.com", "s1", "--algorithm", "ed25519-sha256") == 0
    assert shell.out.startswith('s1._domainkey.example.com. IN TXT "v=DKIM1; k=ed25519; p=')
    assert shell("dkim", "add", "example.com", "s1") == 2
    assert "another selector" in shell.err
    assert shell("dkim", "list", "--json") == 0
    (key,) = shell.json()
    assert "sealed" not in key
    assert shell("dkim", "remove", "example.com", "s1") == 0
    assert shell("dkim", "remove", "example.com", "s1") == 1
    assert shell("destination", "pause", "Example.ORG", "--reason", "blocked") == 0
    assert shell("destination", "list", "--json") == 0
    assert [(each["destination"], each["reason"]) for each in shell.json()] == [("example.org", "blocked")]
    assert shell("destination", "resume", "example.org") == 0
    assert shell("destination", "resume", "example.org") == 1
    assert shell("destination", "pause", "no domain") == 2
    assert shell("suppression", "add", "acme", ADA) == 1
    assert "there is no tenant acme" in shell.err
    assert shell("tenant", "add", "acme") == 0
    assert shell("suppression", "add", "acme", "Ada@Example.org", "--reason", "asked us") == 0
    assert shell("suppression", "list", "--tenant", "acme", "--json") == 0
    assert [(each["address"], each["cause"], each["detail"]) for each in shell.json()] == [(ADA, "person", "asked us")]
    assert shell("suppression", "remove", "acme", ADA) == 0
    assert shell("suppression", "remove", "acme", ADA) == 1
    assert shell("audit", "list", "--json") == 0
    assert [each["action"] for each in shell.json()] == [
        "suppression.remove",
        "suppression.add",
        "tenant.add",
        "destination.resume",
        "destination.pause",
        "dkim.remove",
        "dkim.add",
    ]


def test_a_report_is_taken_from_a_file(shell: Shell) -> None:
    assert shell("migrate") == 0
    file = shell.folder / "report.eml"
    file.write_bytes(report("failed", ADA))
    assert shell("outbound", "report", str(file)) == 0
    assert shell.out == "recipients concerned: 0\n"
    file.write_bytes(CONTENT)
    assert shell("outbound", "report", str(file)) == 2
