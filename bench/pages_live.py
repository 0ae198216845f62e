"""What open pages cost: `python -m bench.pages_live product FILLED PER_SECOND SECONDS`.

The whole product runs here in one process, on a copy of a filled SQLite database, as in the claim `road`: an emulator
in a process of its own delivers mail, a rule archives it. First nobody looks; then a hundred pages are open, in a
process of their own. What they cost is the processor time of this process in the second part beside the first.
"""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx2
import uvloop

from postroom.compose.serve import run_product
from postroom.core.rules.draft import RuleDraft
from postroom.operations.caller import Caller
from postroom.operations.people.people import add_person
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import FILE, open_database
from postroom.store.engine.sqlite_connection import connect
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom.telemetry.logs import configure_logging

from .install import ROOT
from .order import answer
from .pages import sign_in
from .road import DOMAIN, PATIENCE_S, product_settings
from .told_emulator import ToldEmulator, told_emulator

WARM_UP_S = 5
# One person may have some forty pages open.
PEOPLE = 4
# The history's own mailboxes are nowhere, and what waits for them would only fail.
_SETTLED = """
    UPDATE accounts SET state = 'paused';
    UPDATE job_rows SET state = 'completed', ready = 0, finished_at = updated_at WHERE state = 'queued' AND ready = 1;
    DELETE FROM outbound_ready;
    DELETE FROM outbound_turns;
    UPDATE outbound_mail SET state = 'sent', ready = 0, ended_at = updated_at WHERE state = 'queued';
    UPDATE outbound_recipients SET state = 'sent' WHERE state = 'queued';
"""


@dataclass(frozen=True)
class Outcome:
    """The share of one core that the product took without and with open pages; and the boards that each page got."""

    alone: float
    watched: float
    seconds: float
    boards: dict[str, int]


async def live(filled: Path, per_second: float, seconds: int) -> Outcome:
    configure_logging(Settings.model_validate({"log": {"level": "error"}}).log)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=filled.parent)))
        shutil.copyfile(filled, folder / FILE)
        connection = connect(folder / FILE)
        connection.execute(_SETTLED)
        connection.close()
        database = await open_database(folder)
        stack.push_async_callback(database.close)
        rule = (new_id(), RuleDraft("Shop", {"sender_domain": DOMAIN}, "archive", {}))
        await database.run(add_rules([rule], wall_clock()))
        emulator = await stack.enter_async_context(told_emulator("bench.road"))
        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        settings = product_settings(folder, emulator.said["address"])
        running = asyncio.create_task(run_product(settings, database, stop, ready.set_result))
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        try:
            return await _measure(emulator, database, settings, ready.result(), per_second, seconds)
        finally:
            stop.set()
            await emulator.tell({"last": True})
            await running


async def _measure(
    emulator: ToldEmulator, database: Database, settings: Settings, address: str, per_second: float, seconds: int
) -> Outcome:
    cookies = [await _signed_in(database, settings, address) for _ in range(PEOPLE)]
    await _flow(emulator, per_second, WARM_UP_S)
    alone = await _flow(emulator, per_second, seconds)
    watchers = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.page_watchers", address, *cookies),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert watchers.stdout is not None
    assert watchers.stdin is not None
    said = await watchers.stdout.readline()
    if said != b"open\n":
        raise RuntimeError("the pages could not be opened")
    await _flow(emulator, per_second, WARM_UP_S)
    watched = await _flow(emulator, per_second, seconds)
    watchers.stdin.close()
    boards = json.loads(await watchers.stdout.readline())
    await watchers.wait()
    return Outcome(alone, watched, seconds, boards)


async def _signed_in(database: Database, settings: Settings, address: str) -> str:
    """The cookie of a new person."""
    by = Caller(database, Signature(new_id(), "bench", "admin"))
    made = await add_person(by, settings, f"watcher-{new_id().hex}", "admin")
    async with httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as http:
        return await sign_in(http, made.link.partition("#")[2])


async def _flow(emulator: ToldEmulator, per_second: float, seconds: int) -> float:
    """The share of one core while mail comes in."""
    clock, cpu = time.monotonic(), time.process_time()
    await emulator.tell({"last": False, "count": max(1, round(per_second * seconds)), "per_second": per_second})
    return (time.process_time() - cpu) / (time.monotonic() - clock)


if __name__ == "__main__":
    _, path, rate, lasting = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answer(json.dumps(asdict(runner.run(live(Path(path), float(rate), int(lasting))))))
