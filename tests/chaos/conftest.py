"""Fixtures of the chaos suite: a database to break, children to kill, and randomness that can be repeated."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import pytest

from chaos.evidence import Place
from support.processes import Family, family


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


@pytest.fixture
async def children(tmp_path: Path) -> AsyncGenerator[Family]:
    async with family(tmp_path) as started:
        yield started
