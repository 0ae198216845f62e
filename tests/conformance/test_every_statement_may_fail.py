"""Every writing verb, failed before each of its statements and before its commit: all or nothing."""

import importlib
import pkgutil
from typing import Any

import pytest

import postroom.store
from postroom.store.engine.database import Transaction, Verb
from support.faults import FailingAt, InjectedFault
from support.store.dump import Dump, dump
from support.store.fault_cases import CASES
from support.store.fault_cases_jobs import CHANGES_NOTHING, ONLY_ON, Case
from support.store.job_setup import JobSetup
from support.store.wake_ups import WOKEN, Ears

ELSEWHERE = {"apply", "apply_all"}  # test_migrate does the same to a database of its own


def _writing_verbs() -> set[str]:
    """The names of every verb in the store that writes."""
    names: set[str] = set()
    for module in pkgutil.walk_packages(postroom.store.__path__, "postroom.store."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Verb) and value.kind != "read":
                names.add(value.name)
    return names


def test_every_writing_verb_has_a_case() -> None:
    assert set(CASES) == _writing_verbs() - ELSEWHERE


@pytest.mark.parametrize("name", CASES)
async def test_a_verb_that_fails_anywhere_changes_nothing_and_works_the_next_time(setup: JobSetup, name: str) -> None:
    if ONLY_ON.get(name, setup.database.dialect) != setup.database.dialect:
        return  # a verb of the other database
    case: Case = CASES[name]
    transaction = await case(setup)
    before = await dump(setup.database, receipts=True)
    ears = Ears(setup.database) if setup.database.dialect == "sqlite" else None
    faults = 0
    while await _fails(FailingAt(setup.database, faults + 1), transaction):
        faults += 1
        assert await dump(setup.database, receipts=True) == before, f"{name} failed at {faults} and left something"
    assert faults >= 1
    assert (_kept(await dump(setup.database)) != _kept(before)) == (name not in CHANGES_NOTHING)
    assert ears is None or await ears.heard() == WOKEN.get(name, frozenset()), f"{name} wakes others than it should"


async def _fails(database: FailingAt, transaction: Transaction[Any]) -> bool:
    try:
        await database.run(transaction)
    except InjectedFault:
        return True
    return False


def _kept(rows: Dump) -> Dump:
    """Without the receipts, which every transaction leaves."""
    return {name: each for name, each in rows.items() if name != "postroom.receipts"}
