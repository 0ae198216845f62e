"""The way into a new installation, step by step: connect a mailbox, preview, choose rules, switch on.

What is done is seen from the data, so that the steps are the same whoever did them, and by whatever means. Once
Postroom has acted for the first time they are over for good.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from postroom.operations.accounts.account_status import AccountLine
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database
from postroom.store.rules.rules import list_rules

StepName = Literal["connect", "preview", "rules", "on"]


@dataclass(frozen=True, slots=True)
class FirstStep:
    name: StepName
    is_done: bool
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class FirstSteps:
    steps: Sequence[FirstStep]
    rules: int
    """How many rules there are."""
    active_rules: int
    """How many of them act: they are neither off nor in shadow."""


async def first_steps(
    database: Database, accounts: Sequence[AccountLine], *, has_mail: bool, has_model: bool, is_paused: bool
) -> FirstSteps | None:
    """Return the steps; None when they are behind."""
    if accounts and await database.run(list_actions(1)):
        return None
    rules = await database.run(list_rules())
    active = sum(each.enabled and each.mode == "active" for each in rules)
    done = {
        "connect": bool(accounts),
        "preview": bool(accounts) and has_mail,
        "rules": bool(rules) or (bool(accounts) and has_model),
        "on": any(each.acts_from is not None for each in accounts) and not is_paused and bool(active or has_model),
    }
    if all(done.values()):
        return None
    names: tuple[StepName, ...] = ("connect", "preview", "rules", "on")
    following = next(name for name in names if not done[name])
    return FirstSteps([FirstStep(name, done[name], name == following) for name in names], len(rules), active)
