"""Mailboxes on a Dovecot of our own, over TLS: `python -m bench.imap_mail take-in COUNT`, `… idle ACCOUNTS SECONDS`,
`… arrive COUNT`.

`take-in`: COUNT messages of about 6 KB are in the inbox; the connector reads them for the first time, gives them their
tiers and hands them in to the switchboard in its own process, each durable on SQLite. Then `mbsync` copies the same
mailbox into a Maildir. Printed are seconds by the clock and by the processor, of the connector's process and of mbsync;
Dovecot's are not counted.

`idle`: ACCOUNTS connectors with the pauses that the product has, after their first rounds and when the connections for
work are closed again, for SECONDS in which nothing happens. `arrive`: another client brings COUNT messages at random
moments, one after the other, into a mailbox that is watched; each is timed from the moment at which the server has it
until it is accepted.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import uvloop

from postroom.compose.tasks import settle_memory
from postroom.core.mail.accounts import endpoint_of
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.imap.account import KEPT_S
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.following.live import ImapConnector
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.sources.runtime import ConnectorHealth
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.history import count_states
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.dovecot import running_dovecot
from support.imap_mailbox import account_on
from support.imap_server import PASSWORD, ImapServer, authority
from support.programs import system_program

from .live_mail import memory_mib, services_on
from .order import answer
from .tiering import CONTACT, messages

# As `imap.poll_s` is unless somebody sets it.
POLL_S = 30.0
PATIENCE_S = 600.0


def address_of(user: str) -> str:
    return f"{user}@lindqvist.example"


class _Counted(ConnectorHealth):
    """Tells when a round has ended."""

    def __init__(self) -> None:
        super().__init__(wall_clock)
        self.rounds = 0
        self.ended = asyncio.Event()

    def reach(self, cursor: str) -> None:
        super().reach(cursor)
        self.rounds += 1
        self.ended.set()


class Bench:
    """A Dovecot, a switchboard on SQLite, and connectors between them."""

    def __init__(self, server: ImapServer, folder: Path, database: Database, services: Services) -> None:
        self.server, self.folder, self.database, self.services = server, folder, database, services
        self.healths: list[_Counted] = []
        self.hints: list[IdleHints] = []
        self._stack = AsyncExitStack()

    async def connector(self, user: str, watching: bool = False) -> ImapConnector:
        endpoint = endpoint_of("imap", address_of(user))
        await self.database.run(keep_account(new_id(), "imap", endpoint, address_of(user), wall_clock()))
        account, own = account_on(self.server, user), self.folder / user
        index, sent = PlaceIndex(own / "places.db"), SentIndex(own / "sent.db")
        hints = IdleHints(account.open, POLL_S)
        for each in (index, sent, hints):
            self._stack.callback(each.close)
        self._stack.push_async_callback(account.log_out)
        self.healths.append(_Counted())
        self.hints.append(hints)
        return ImapConnector(
            account,
            switchboard_within(build_server(self.services, Principal(Role.CONNECTOR, endpoint))),
            index,
            email=address_of(user),
            endpoint_identity=endpoint,
            clock=wall_clock,
            health=self.healths[-1],
            knowledge=Knowledge([address_of(user)], sent=sent, contacts=lambda: frozenset({CONTACT})),
            folder=own,
            hints=hints if watching else None,
        )

    async def accepted(self) -> int:
        return sum((await self.database.run(count_states("email"))).values())

    async def close(self) -> None:
        await self._stack.aclose()


def fill(server: ImapServer, user: str, count: int) -> None:
    """Put messages into the inbox, as a delivery agent does."""
    client = server.second_client(user)
    client.select("INBOX")
    client.logout()
    inbox, given, now = server.folder / "mail" / user / "cur", [raw for raw, _ in messages()], int(time.time())
    owner, stamp = inbox.stat(), format_datetime(datetime.now(UTC)).encode()
    for number in range(count):
        raw = given[number % len(given)].replace(b"Message-ID: <", b"Message-ID: <%d." % number)
        raw = b"Received: from mx.example by localhost with LMTP id %d; %s\r\n" % (number, stamp) + raw
        file = inbox / f"{now}.M{number}P1.bench,S={len(raw)}:2,"
        file.write_bytes(raw)
        os.chown(file, owner.st_uid, owner.st_gid)


async def take_in(bench: Bench, count: int) -> dict[str, float]:
    user = bench.server.new_user()
    fill(bench.server, user, count)
    connector = await bench.connector(user)
    clock, cpu = time.perf_counter(), time.process_time()
    await connector.sync()
    seconds, cpu_s = time.perf_counter() - clock, time.process_time() - cpu
    if (accepted := await bench.accepted()) != count:
        raise RuntimeError(f"of {count} messages, {accepted} are in the database")
    peer_s, peer_cpu_s = await asyncio.to_thread(_mbsync, bench.server, user, bench.folder, count)
    return {"seconds": seconds, "cpu_s": cpu_s, "peer_s": peer_s, "peer_cpu_s": peer_cpu_s}


def _mbsync(server: ImapServer, user: str, folder: Path, count: int) -> tuple[float, float]:
    """Copy the inbox with mbsync into a new Maildir; the seconds by the clock and by the processor."""
    program = system_program("mbsync", "isync")
    certificate, near, config = folder / "authority.pem", folder / "near", folder / "mbsyncrc"
    authority().cert_pem.write_to_path(str(certificate))
    near.mkdir()
    config.write_text(
        f"IMAPAccount a\nHost localhost\nPort {server.tls_port}\nUser {user}\nPass {PASSWORD}\nSSLType IMAPS\n"
        f"CertificateFile {certificate}\n\nIMAPStore far\nAccount a\n\n"
        f"MaildirStore near\nPath {near}/\nInbox {near}/in\n\n"
        "Channel c\nFar :far:INBOX\nNear :near:INBOX\nSync Pull\nCreate Near\nSyncState *\n"
    )
    clock = time.perf_counter()
    process = os.posix_spawn(program, [program, "-q", "-c", str(config), "c"], os.environ)
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - clock
    copied = sum(1 for each in (near / "in").glob("*/*") if each.is_file())
    if os.waitstatus_to_exitcode(status) != 0 or copied != count:
        raise RuntimeError(f"mbsync ended with {os.waitstatus_to_exitcode(status)} and copied {copied} of {count}")
    return seconds, usage.ru_utime + usage.ru_stime


async def idle(bench: Bench, accounts: int, seconds: float) -> dict[str, float]:
    stop, running = asyncio.Event(), list[asyncio.Task[None]]()
    for number in range(accounts):
        connector = await bench.connector(bench.server.new_user(), watching=True)
        running.append(asyncio.create_task(connector.run(timedelta(seconds=POLL_S), stop)))
        if number % 20 == 19:
            await _rounds(bench, 1)
    await _resting(bench)
    settle_memory()
    cpu, before = time.process_time(), sum(each.rounds for each in bench.healths)
    await asyncio.sleep(seconds)
    cpu_s = time.process_time() - cpu
    rounds = sum(each.rounds for each in bench.healths) - before
    found = {"core_percent": 100 * cpu_s / seconds, "memory_mib": memory_mib(), "rounds": float(rounds)}
    stop.set()
    await asyncio.gather(*running)
    return found


async def _rounds(bench: Bench, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for each in bench.healths:
            while each.rounds < count:
                each.ended.clear()
                await each.ended.wait()


async def _resting(bench: Bench) -> None:
    """Wait until each connector has only its connection that waits for news: the one for work is kept for a while.
    While it starts so many processes, Dovecot ends one connection in a hundred, which is opened again after a pause.
    """
    await asyncio.sleep(2 * KEPT_S)
    if asleep := sum(not each.is_watching for each in bench.hints):
        raise RuntimeError(f"{asleep} of {len(bench.hints)} accounts are not watched")


async def arrive(bench: Bench, count: int) -> dict[str, Any]:
    user, rng, stop = bench.server.new_user(), random.Random(2026), asyncio.Event()
    connector = await bench.connector(user, watching=True)
    running = asyncio.create_task(connector.run(timedelta(seconds=POLL_S), stop))
    await _rounds(bench, 2)
    client = await asyncio.to_thread(bench.server.second_client, user)
    given, latencies, (health,) = [raw for raw, _ in messages()], list[float](), bench.healths
    for number in range(count):
        await asyncio.sleep(rng.uniform(0.05, 0.5))
        raw = given[number % len(given)].replace(b"Message-ID: <", b"Message-ID: <%d." % number)
        await asyncio.to_thread(client.append, "INBOX", "", "", raw)
        delivered = time.perf_counter()
        async with asyncio.timeout(PATIENCE_S):
            while health.counters["ingested"] <= number:
                health.ended.clear()
                await health.ended.wait()
        latencies.append((time.perf_counter() - delivered) * 1000)
    await asyncio.to_thread(client.logout)
    stop.set()
    await running
    return {"p50_ms": statistics.median(latencies), "p95_ms": statistics.quantiles(latencies, n=20)[-1]}


async def main(work: str, *numbers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, running_dovecot() as server:
        database = await open_database(Path(name))
        bench = Bench(server, Path(name), database, await services_on(database, ()))
        try:
            match work:
                case "take-in":
                    return await take_in(bench, *numbers)
                case "idle":
                    return await idle(bench, *numbers)
                case _:
                    return await arrive(bench, *numbers)
        finally:
            await bench.close()
            await database.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answer(json.dumps(runner.run(main(sys.argv[1], *map(int, sys.argv[2:])))))
