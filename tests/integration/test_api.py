"""The JSON API: what is read and done over real HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.api.registry import OPERATIONS
from support.api import RunningApi, running_api
from support.sqlite import new_sqlite


@pytest.fixture
async def api(tmp_path: Path, migrated_sqlite: Path) -> AsyncIterator[RunningApi]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_api(database, tmp_path) as running:
        yield running
    await database.close()


async def test_every_list_is_read(api: RunningApi) -> None:
    admin = await api.token()
    for operation in OPERATIONS:
        if operation.is_safe and "{" not in operation.path:
            given = {"stage": "failed"} if operation.path == "/jobs/selection" else {}
            answer = await admin.get(operation.path, **given)
            assert answer.status_code == 200, (operation.path, answer.text)
            print(operation.path, answer.text[:600])
