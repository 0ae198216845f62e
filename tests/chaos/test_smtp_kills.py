"""Mail that leaves by SMTP from processes that are killed at any moment, to a server that loses answers.

The server counts each mail at the moment at which it is complete, before it answers. Each recipient gets it exactly
once, or is `unknown` with the reason; whoever sent to an address that does not exist gets exactly one report.
"""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from postroom.core.lifecycle import DELIVERY
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.outbound import outbound, outbound_recipients
from postroom.system.wall_clock import wall_clock
from support.crash.evidence import Place
from support.fork_server import fork_server
from support.patience import PATIENCE_S
from support.processes import ProcessGroup
from support.scale import scale
from support.smtp_sending import new_mail, queue_mail
from support.until import until

CHILD = "support.crash.smtp_process"
LOST, LATER = 0.03, 0.1
LATEST_KILL_S = 0.1
LEASE_S = 3.0
SETTLED = DELIVERY.terminal | {"unknown"}


class Sink:
    """Takes all mail, and counts it by its mark and recipient. Some answers it loses; some recipients come later."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.arrived: Counter[tuple[str, str]] = Counter()
        self.lost = 0
        self.news = asyncio.Event()

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("gone"):
            return "550 5.1.1 no such user here"
        if self._rng.random() < LATER:
            return "451 4.3.0 come back later"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 Ok"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        content = envelope.original_content or b""
        mark = content.partition(b"X-Mark: ")[2].partition(b"\r\n")[0].decode()
        for each in envelope.rcpt_tos:
            self.arrived[mark, each] += 1
        self.news.set()
        if self._rng.random() < LOST:
            self.lost += 1
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return "250 2.0.0 Ok"

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.arrived.total() < count:
                self.news.clear()
                await self.news.wait()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SMTP(self, enable_SMTPUTF8=True, loop=loop), "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]


async def submit(database: Database, count: int) -> None:
    """Mail for two recipients each; to every fifth belongs one that does not exist."""
    news: list[Any] = []
    for number in range(count):
        to = [f"r{number}@one.example", f"r{number}@two.example"]
        to += [f"gone{number}@one.example"] if number % 5 == 0 else []
        subject = str(number)
        content = f"From: mara@sender.example\r\nSubject: {subject}\r\nX-Mark: {number}\r\n\r\nHello.\r\n"
        news.append(dataclasses.replace(new_mail(*to, content=content.encode()), subject=subject))
    await database.run(queue_mail(news, wall_clock()))


async def test_mail_of_killed_processes_arrives_exactly_once_for_each_recipient_or_is_unknown_with_its_reason(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    mails, kills = scale(60, 1000), scale(10, 100)
    sink = Sink(Random(rng.randrange(2**32)))
    database = await open_database(place.folder, place.url)
    try:
        async with sink.listening() as port, fork_server(place.folder, children, CHILD) as forks:
            await submit(database, mails)
            words = (*place.arguments(), "--port", str(port), "--lease", str(LEASE_S))
            for number in range(kills):
                process = await forks.start(CHILD, *words)
                await process.hear("ready")
                await sink.until(int(1.8 * mails * (number + rng.random()) / kills))
                await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
                await process.kill()
            process = await forks.start(CHILD, *words)

            async def look() -> list[outbound.MailView]:
                return await database.run(outbound.list_mail(10_000))

            found = await until(database, look, _all_settled, (outbound.CHANNEL,))
            await process.kill()
        counts: Counter[str] = Counter()
        for each in found:
            for recipient in await database.run(outbound_recipients.list_results(each.id)):
                check(sink, each, recipient)
                counts[recipient.state] += 1
    finally:
        await database.close()
    reports = [each for each in found if each.kind == "report"]
    print(f"{mails} mails, {kills} kills, {sink.lost} answers lost: {dict(counts)}, {len(reports)} reports")
    assert counts["sent"] > 0
    assert counts["bounced"] == len(reports) == mails // 5
    assert len(found) == mails + len(reports)


def _all_settled(found: list[outbound.MailView]) -> bool:
    return all(each.state in SETTLED for each in found)


def check(sink: Sink, mail: outbound.MailView, recipient: outbound_recipients.RecipientResult) -> None:
    if mail.kind == "report":
        assert recipient.state in ("sent", "unknown")
        return
    arrived = sink.arrived[mail.subject, recipient.address]
    match recipient.state:
        case "sent":
            assert arrived == 1, f"{recipient.address} got it {arrived} times"
        case "unknown":
            assert arrived <= 1, f"{recipient.address} got it {arrived} times"
            assert recipient.last_reply is not None
            assert "died" in recipient.last_reply or "may have arrived" in recipient.last_reply
        case "bounced":
            assert (arrived, recipient.address[:4]) == (0, "gone")
        case state:
            raise AssertionError(f"{recipient.address} is {state}: {recipient.last_reply}")
