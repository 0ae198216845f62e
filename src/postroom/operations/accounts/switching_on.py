"""Switch a mailbox on for the first time: add the starter rules that its owner chose, and act from the chosen time on.

Rules come first: after a crash in between the mailbox is still in shadow, and nothing in it has changed. Safe to
repeat: rules that exist are kept, and the time never moves forward, so that no mail is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from postroom.core.access import ANSWER_AGAIN
from postroom.core.rules.starter import drafts_of, starters_named
from postroom.operations.accounts.accounts import AccountName, check_in_use, find_account
from postroom.operations.accounts.acting import ActingAccount, begin_acting, plan_acting
from postroom.operations.caller import Caller
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import Argument, dialogue, flow
from postroom.operations.rules.rules import list_rules, switch_rule
from postroom.operations.rules.starter_rules import add_starters
from postroom.store.engine.ids import new_id


@dataclass(frozen=True, slots=True)
class SwitchedOn:
    """The account that acts now, and the names of the starter rules that were added or switched on for it."""

    acting: ActingAccount
    rules: Sequence[str]


@CONNECTORS.operation(ANSWER_AGAIN, flow("/start/on/yes"), dialogue("init"))
async def switch_on(
    by: Caller,
    /,
    account: AccountName,
    starters: Annotated[Sequence[str], Argument("Starters to add, as their list names them; none is fine.", 0)] = (),
    since: Annotated[datetime | None, Argument("Act on mail since this time; only on new mail if omitted.")] = None,
) -> SwitchedOn:
    """Add the chosen starter rules, and act on an account's mail from a time on. Safe to repeat."""
    found = await find_account(by.database, account)
    check_in_use(found)
    if since is not None:
        await plan_acting(by.database, account, since, by.clock)  # it refuses a time in the future
    rules = await _use_starters(by, starters)
    if found.acts_from is not None and since is None:
        return SwitchedOn(ActingAccount(found, found.acts_from, 0, new_id()), rules)
    start = since if since is None or found.acts_from is None else min(since, found.acts_from)
    return SwitchedOn(await begin_acting(by.again(), account, start), rules)


async def _use_starters(by: Caller, names: Sequence[str]) -> list[str]:
    """Add the rules of these starters, and switch on those that are off; return their names."""
    if not names:
        return []
    kept = await add_starters(by, names)
    wanted = {draft.name for draft in drafts_of(starters_named(names))}
    off = [rule.name for rule in await list_rules(by.database) if rule.name in wanted and not rule.enabled]
    for name in off:
        await switch_rule(by.again(), name, enabled=True)
    return [*kept.added, *off]
