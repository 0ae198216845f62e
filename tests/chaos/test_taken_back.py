"""SIGKILL right after a rejection was acknowledged: it holds, and another process still takes it back."""

import asyncio
import signal
import subprocess
import sys

from postroom.store.actions import approvals
from postroom.store.engine.opening import open_database
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.crash.evidence import Place
from support.processes import child_environment
from support.store.fault_cases_approvals import pending
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

REJECT = """
import asyncio, os, pathlib, signal, sys, uuid
from postroom.store.actions.approvals import reject_action
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock

async def reject(folder, id, url=None):
    database = await open_database(pathlib.Path(folder), url)
    await database.run(reject_action(uuid.UUID(id), Signature(uuid.uuid4(), "cli:ada", "admin"), wall_clock()))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(reject(*sys.argv[1:]))
"""


async def test_a_rejection_outlives_its_process_and_is_taken_back_by_another(place: Place) -> None:
    database = await open_database(place.folder, place.url)
    try:
        setup = JobSetup(database, ManualClock(wall_clock()))
        id = await pending(setup)
        words = [sys.executable, "-c", REJECT, str(place.folder), str(id), *([place.url] if place.url else [])]
        ended = await asyncio.to_thread(subprocess.run, words, env=child_environment(), check=False)
        assert ended.returncode == -signal.SIGKILL
        rejected = await database.run(approvals.show_approval(id))
        assert (rejected.state, rejected.error) == ("rejected", "rejected by cli:ada")
        assert rejected.updated_at is not None
        await database.run(approvals.take_back_rejection(id, signed(), rejected.updated_at + approvals.GRACE / 2))
        assert (await database.run(approvals.show_approval(id))).is_waiting
    finally:
        await database.close()
