"""Tasks that run every few seconds take no longer the more mail is stored."""

import contextlib
import re
import sqlite3
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from postroom.store.engine.database import Rows, ScriptRun, Statement
from postroom.store.engine.ids import new_id
from postroom.store.engine.statements import blocks
from postroom.triage.act.maintenance import maintenance_tasks

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
# What each statement finds, so that the chore goes on to the next.
FOUND: dict[str, list[tuple[object, ...]]] = {
    "select_parking_keys": [(f"cap:{new_id()}",)],
    "count_irreversible": [(1,)],
}
# A scan of an index that holds only what lives, sleeps or waits is short, and so is that of a table of one row.
SHORT = re.compile(r"USING (COVERING )?INDEX (actions_live|jobs_parked|approval_notices_open)\b|^SCAN search_backlog$")


@contextlib.contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        yield connection


def statements_of(chore: str) -> list[Statement]:
    """Those of the chore's transaction, in their order, up to where it finds nothing more to do."""
    run, found = ScriptRun(maintenance_tasks(20)[chore](NOW).begin()), list[Statement]()
    while run.step is not None:
        step = run.step
        if isinstance(step, Statement):
            found.append(step)
        rows = Rows()
        rows += FOUND.get(step.name, []) if isinstance(step, Statement) else []
        run.send(rows)
    return found


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    rows: list[str] = []
    for part in blocks("sqlite")[name]:
        arguments = [None] * (part.text.count("?") and max(int(n) for n in re.findall(r"\?(\d+)", part.text)))
        rows += [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {part.text}", arguments)]
    return rows


@pytest.mark.parametrize("chore", maintenance_tasks(20))
def test_a_chore_reads_no_whole_table(migrated_sqlite: Path, chore: str) -> None:
    names = [each.name for each in statements_of(chore)]
    assert names
    with opened(migrated_sqlite) as connection:
        for name in names:
            scans = [step for step in plan(connection, name) if step.startswith("SCAN") and not SHORT.search(step)]
            assert scans == [], name


def test_the_newest_actions_are_found_by_their_index(migrated_sqlite: Path) -> None:
    with opened(migrated_sqlite) as connection:
        steps = plan(connection, "select_actions")
    assert any("actions_created" in step for step in steps), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps
