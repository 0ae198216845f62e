"""A folder with 200,000 messages (`make soak`; a hundredth of it in `make test`): what is older than the window is not
read, memory is bounded, and a round costs as much as what changed, whatever the folder holds.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from postroom.core.backfill.job import NewBackfill
from postroom.mailboxes.backfill.walk import JobStopped
from postroom.operations.people.audit import signature
from support.clocks import ManualClock
from support.imap_server import ImapServer, address_of
from support.imap_setup import ENDPOINT, ImapSetup, imap_setup
from support.large_folder import LargeFolder, long_ago, mail
from support.scale import scale
from support.scripted_imap import Meddler
from support.sqlite import new_sqlite

OLD = scale(2_000, 200_000)
FEW = 10
NEW = 20
IN_BACKFILL = 30
T = TypeVar("T")


@dataclass
class Cost:
    """Of one piece of work: bytes from the server, and the most memory at any moment."""

    received: int
    memory: int


class Counted(Meddler):
    """Counts what the server sends."""

    def __init__(self) -> None:
        super().__init__(answers=self._count)
        self.received = 0

    def _count(self, chunk: bytes) -> bytes:
        self.received += len(chunk)
        return chunk

    async def cost(self, work: Awaitable[T]) -> tuple[T, Cost]:
        before = self.received
        gc.collect()
        tracemalloc.start()
        try:
            found = await work
            return found, Cost(self.received - before, tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()


@asynccontextmanager
async def large(
    server: ImapServer, migrated: Path, folder: Path, profile: str, old: int
) -> AsyncGenerator[tuple[ImapSetup, Counted, LargeFolder]]:
    """A mailbox with so many old messages, some in the middle that are each other than the rest, and some new ones."""
    clock, counted, database = ManualClock(), Counted(), await new_sqlite(folder, migrated)
    try:
        async with (
            counted.before(server.port, address_of(profile)) as port,
            imap_setup(server, database, clock, folder, profile, port) as setup,
        ):
            setup.beside.client.select("INBOX")
            inbox = LargeFolder(server, setup.user)
            await asyncio.to_thread(_put, inbox, old)
            assert setup.beside.client.select("INBOX", readonly=True)[1] == [str(old + IN_BACKFILL + NEW).encode()]
            yield setup, counted, inbox
    finally:
        await database.close()


def _put(inbox: LargeFolder, old: int) -> None:
    inbox.fill(old, long_ago(100))
    inbox.deliver((mail("Your invoice", number) for number in range(IN_BACKFILL)), long_ago(50))
    inbox.deliver((mail("recent", number) for number in range(NEW)), long_ago(1))


async def _backfill(setup: ImapSetup) -> str:
    first, last = (long_ago(days).date() for days in (55, 45))
    new = NewBackfill("imap", ENDPOINT, ("finance",), first, last, rate_limit_per_hour=1_000_000, consent=True)
    await setup.services.parts.backfills.create(new, signature("test", "admin"))
    assignment = await setup.board.poll_backfill("imap", ENDPOINT)
    assert assignment is not None
    try:
        await setup.connector().backfill(setup.board, 10, time.monotonic).begin(assignment).work()
    except JobStopped as stopped:
        return stopped.status
    raise AssertionError("it works until it is stopped")


async def _costs(server: ImapServer, migrated: Path, folder: Path, profile: str, old: int) -> dict[str, Cost]:
    """All that happens in the life of a mailbox, and what each of it costs."""
    costs: dict[str, Cost] = {}
    async with large(server, migrated, folder, profile, old) as (setup, counted, inbox):
        connector = setup.connector()
        fresh, costs["first"] = await counted.cost(connector.sync())
        assert fresh == NEW
        assert len(await setup.waiting()) == NEW

        fresh, costs["nothing"] = await counted.cost(connector.sync())
        assert fresh == 0

        inbox.deliver([mail("new", 1)], long_ago(0))
        client = setup.beside.client
        client.select("INBOX")
        # One that was never read, one that is gone, and one that is known.
        client.uid("STORE", "5", "+FLAGS", "(\\Flagged)")
        client.uid("STORE", "6", "+FLAGS", "(\\Deleted)")
        client.uid("EXPUNGE", "6")
        client.uid("STORE", str(old + IN_BACKFILL + 1), "+FLAGS", "(\\Flagged)")
        fresh, costs["changed"] = await counted.cost(connector.sync())
        assert fresh == 1
        assert [each["labels_added"] for each in setup.board.reports] == [["STARRED"]]

        status, costs["backfill"] = await counted.cost(_backfill(setup))
        assert status == "completed"
        assert len(await setup.waiting()) == NEW + 1 + IN_BACKFILL

        found, costs["search"] = await counted.cost(_found(setup, "subject:invoice"))
        assert len(found) == IN_BACKFILL
        found, costs["newest"] = await counted.cost(_found(setup, "", pages=1))
        assert len(found) == 10
        assert not any("\\Seen" in each for each in setup.beside.flags()[-NEW:])
    return costs


async def _found(setup: ImapSetup, query: str, pages: int = 100) -> list[str]:
    found: list[str] = []
    async for page in setup.connector().source.message_pages(query, (), 10):
        found += [each.id for each in page.messages]
        pages -= 1
        if not pages or page.next_page_token is None:
            break
    return found


@pytest.mark.parametrize("profile", ["all", "bare"])
async def test_what_is_old_costs_nothing(
    dovecot: ImapServer, migrated_sqlite: Path, tmp_path: Path, profile: str
) -> None:
    small = await _costs(dovecot, migrated_sqlite, tmp_path / "small", profile, FEW)
    big = await _costs(dovecot, migrated_sqlite, tmp_path / "large", profile, OLD)
    for what, cost in big.items():
        control = small[what]
        print(
            f"{profile}, {OLD:,} old messages ({FEW}): {what} {cost.received:,} bytes received ({control.received:,}), "
            f"{cost.memory:,} of memory ({control.memory:,})"
        )
        if what == "newest":
            # The UIDs of all messages, which some servers write out one by one.
            assert cost.received < control.received + 8 * OLD
            assert cost.memory < control.memory + 500_000 + 200 * OLD
        else:
            assert cost.received < 1.2 * control.received
            assert cost.memory < 1.5 * control.memory
