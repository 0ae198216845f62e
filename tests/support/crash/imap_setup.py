"""A mailbox on a real IMAP server that another program uses too, a switchboard that counts, and between them the
connector and its actions in a process that can be killed, over connections that can be cut.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from postroom.core.mail.accounts import endpoint_of
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.inbox import LeaseRef
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.crash.gmail_setup import CountingIntake
from support.crash.imap_other_client import OtherClient, kind_of
from support.imap_server import ImapServer, address_of
from support.processes import Child, ProcessGroup
from support.scripted_imap import Meddler
from support.switchboard import Served, served, services_on

CONNECTOR = "support.crash.imap_process"
OWNER = "mara@lindqvist.example"
ENDPOINT = endpoint_of("imap", OWNER)
_NUMBER = re.compile(r"number (\d+)")

Placed = tuple[int, str, frozenset[str]]
"""A message in the mailbox: its number, its folder and its flags."""


class Cutting(Meddler):
    """Ends all connections in the middle of an answer, when it is told to."""

    def __init__(self) -> None:
        super().__init__(answers=self._answer)
        self._left = 0
        self.cuts = 0

    def cut_after(self, answers: int) -> None:
        self._left = answers

    def _answer(self, chunk: bytes) -> bytes:
        self._left -= 1
        if self._left != 0:
            return chunk
        self.cuts += 1
        asyncio.get_running_loop().call_soon(self.cut)
        return chunk[: len(chunk) // 2]


@dataclass
class Orders:
    """Actions for the process of the moment. Those that it did not announce as done are repeated for the next."""

    waiting: dict[str, str] = field(default_factory=dict[str, str])
    done: set[str] = field(default_factory=set[str])
    _writer: asyncio.StreamWriter | None = None

    def add(self, id: str, kind: str) -> None:
        self.waiting[id] = kind
        self._send(id, kind)

    def settle(self, child: Child) -> None:
        for line in child.announced("done"):
            self.waiting.pop(line.details, None)
            self.done.add(line.details)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        for id, kind in self.waiting.items():
            self._send(id, kind)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    def _send(self, id: str, kind: str) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(f"{id} {kind}\n".encode())


@dataclass
class ImapCrashSetup:
    """All that the processes work on."""

    folder: Path
    other: OtherClient
    cutting: Cutting
    port: int
    board: Served
    token: str
    intake: CountingIntake
    orders: Orders
    processes: ProcessGroup
    user: str
    arrived: dict[str, int] = field(default_factory=dict[str, int])
    """The number of each message that was taken in, by its id."""

    async def start(self) -> Child:
        child = await self.processes.start(
            CONNECTOR,
            *("--folder", str(self.folder), "--port", str(self.port), "--user", self.user, "--email", OWNER),
            *("--switchboard", f"{self.board.address}/mcp", "--token", self.token),
            *("--orders", str(self.folder.parent / "orders")),
        )
        await child.hear("ready")
        return child

    async def read_inbox(self) -> None:
        """Read what was taken in, and order the actions for it."""
        while leased := await self.board.services.buffer.next("email", 100):
            for each in leased:
                id, found = each.envelope["event"]["external_event_id"], _NUMBER.search(str(each.envelope["payload"]))
                assert found is not None, each.envelope
                assert id not in self.arrived, "it came twice"
                self.arrived[id] = number = int(found[1])
                if (kind := kind_of(number)) is not None:
                    self.orders.add(id, kind)
            await self.board.services.buffer.ack([LeaseRef(each.message_id, each.lease_token) for each in leased])

    async def read_until(self, must: set[int]) -> None:
        """Read until all of these were taken in."""
        while True:
            so_far = self.intake.fresh
            await self.read_inbox()
            if must <= set(self.arrived.values()):
                return
            await self.intake.until(so_far + 1)


def seen_by(other: OtherClient) -> list[Placed]:
    """All messages of the mailbox."""
    client, found = other.client, list[Placed]()
    _, listed = client.list()
    for line in listed:
        assert isinstance(line, bytes)
        folder = line.decode().rpartition(' "/" ')[2].strip('"')
        client.select(folder, readonly=True)
        _, answers = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
        for each in answers:
            if isinstance(each, tuple):
                number = _NUMBER.search(each[1].decode())
                flags = re.search(rb"FLAGS \(([^)]*)\)", each[0])
                assert number is not None
                assert flags is not None
                found.append((int(number[1]), folder, frozenset(flags[1].decode().split()) - {"\\Recent"}))
    return found


def twice(found: list[Placed]) -> list[int]:
    """The messages that are in more than one place, without those that are marked as deleted."""
    counted = Counter(number for number, _, flags in found if "\\Deleted" not in flags)
    return [number for number, count in counted.items() if count > 1]


@asynccontextmanager
async def imap_crash_setup(
    folder: Path, processes: ProcessGroup, server: ImapServer, profile: str, rng: Random
) -> AsyncGenerator[ImapCrashSetup]:
    database = await open_database(folder)
    await database.run(keep_account(new_id(), "imap", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = CountingIntake(database, None, queues=services.queues, tally=services.tally)
    services = replace(services, intake=intake)
    user, orders, cutting = server.new_user(), Orders(), Cutting()
    other = await asyncio.to_thread(OtherClient, server, user, OWNER, Random(rng.randrange(2**32)))
    listening = await asyncio.start_unix_server(orders.serve, folder / "orders")
    try:
        async with (
            cutting.before(server.port, address_of(profile)) as port,
            served(services) as board,
        ):
            token = await board.token("connector", ENDPOINT)
            yield ImapCrashSetup(folder / "state", other, cutting, port, board, token, intake, orders, processes, user)
    finally:
        listening.close()
        await asyncio.to_thread(other.close)
        await database.close()
