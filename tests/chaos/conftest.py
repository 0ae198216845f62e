"""Fixtures of the chaos suite: a database to break, child processes to kill, and reproducible randomness."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from random import Random

import pytest

from support.crash.evidence import Place
from support.fork_server import FORK_SERVER, ForkedProcesses, new_address
from support.processes import ProcessGroup, child_environment

FORKED = (
    "support.crash.worker_process",
    "support.crash.producer_process",
    "support.crash.submission_process",
    "support.crash.rules_process",
    "support.crash.imap_process",
    "support.crash.imap_sends_process",
    "support.crash.gmail_burst_process",
)


@pytest.fixture
def place(request: pytest.FixtureRequest, database_url: str | None, tmp_path: Path) -> Place:
    """Each test that asks for this runs twice: on SQLite and on PostgreSQL."""
    server = request.getfixturevalue("postgres") if database_url else None
    return Place(tmp_path, server, database_url)


@pytest.fixture
def rng() -> Random:
    """Seeded anew each time; POSTROOM_TEST_SEED repeats a run."""
    seed = int(os.environ.get("POSTROOM_TEST_SEED") or int.from_bytes(os.urandom(4), "big"))
    print(f"POSTROOM_TEST_SEED={seed}")
    return Random(seed)


@pytest.fixture(scope="session")
def fork_server_address() -> Generator[str]:
    """One fork server for all tests: to load what a worker needs takes longer than most workers live."""
    address = new_address()
    command = [sys.executable, "-m", FORK_SERVER, address, *FORKED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=child_environment()) as process:
        assert process.stdout is not None
        assert b"open" in process.stdout.readline(), "the nursery did not open"
        yield address
        process.kill()


@pytest.fixture
async def children(tmp_path: Path, fork_server_address: str) -> AsyncGenerator[ProcessGroup]:
    started = ForkedProcesses(tmp_path, fork_server_address, FORKED)
    try:
        yield started
    finally:
        await started.end()
