"""A process that applies a file's rules, as `postroom rules apply` does, and is killed before one of its statements.

    python -m support.crash.rules_process --data-dir FOLDER [--url URL] [--kill 3] NAME=WORD …

It announces `applied` with the number of statements, if it lives that long.
"""

import argparse
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from postroom.core.rules.draft import RuleDraft
from postroom.operations.caller import Caller
from postroom.operations.rules.rule_plans import apply_rules, plan_rules
from postroom.store.engine.database import Database, Dialect, Script, Step, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import Signature
from support.fork_server import run_as_child
from support.processes import announce

T = TypeVar("T")
VERB = "apply_plan"


class StruckDatabase:
    """A database of which the statements of one transaction are counted; before one of them the process is killed."""

    def __init__(self, database: Database, kill: int | None) -> None:
        self._database = database
        self._kill = kill
        self.statements = 0

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.name != VERB:
            return await self._database.run(transaction)
        result = await self._database.run(
            Transaction(VERB, lambda: self._struck(transaction.begin()), transaction.kind)
        )
        self._strike()
        return result

    def _struck(self, script: Script[T]) -> Script[T]:
        rows: Any = None
        while True:
            try:
                step: Step = next(script) if rows is None else script.send(rows)
            except StopIteration as end:
                self._strike()
                return cast("T", end.value)
            self._strike()
            rows = yield step

    def _strike(self) -> None:
        if self.statements == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        self.statements += 1


async def main(arguments: argparse.Namespace) -> None:
    opened = await open_database(arguments.data_dir, arguments.url)
    database = StruckDatabase(opened, arguments.kill)
    plan = await plan_rules(cast("Database", database), drafts(arguments.rules))
    await apply_rules(Caller(cast("Database", database), Signature(new_id(), "cli:ada", "admin")), plan)
    announce("applied", database.statements)
    await opened.close()


def drafts(rules: Sequence[str]) -> list[RuleDraft]:
    """`NAME=WORD` archives what has this word in its subject."""
    pairs = [each.partition("=") for each in rules]
    return [RuleDraft(name, {"subject_contains": word}, "archive") for name, _, word in pairs]


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--kill", type=int)
    parser.add_argument("rules", nargs="+")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
