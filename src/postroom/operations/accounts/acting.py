"""Switch acting on for a mailbox: from when on decisions about its mail are carried out.

Until its owner has said so, everything is decided in shadow. Mail since the chosen time that nothing was done with is
decided again, with today's rules and model; earlier mail stays as it is. Safe to repeat: after a crash in between, the
same request goes on with the messages that are left.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.access import ANSWER_AGAIN
from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.operations.accounts.accounts import AccountName, find_account
from postroom.operations.caller import Caller
from postroom.operations.mail.reclassify import MOST, decide_all_again
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import Argument, dialogue, form, post
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.actions.decisions import Undecided, UntouchedMessage, waiting_to_act
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock


class ActingPlan(NamedTuple):
    """The effect of acting since a time: how many messages are decided again, and what was decided on them so far."""

    account: AccountView
    since: datetime
    messages: int
    would: Mapping[str, int]
    """How many messages each action was decided for in shadow, the most frequent first."""

    @property
    def changes(self) -> int:
        return sum(self.would.values())


@dataclass(frozen=True, slots=True)
class ActingAccount:
    """An account that acts now. `messages` are decided again, and what follows belongs to the batch."""

    account: AccountView
    acts_from: datetime
    messages: int
    batch_id: UUID


async def plan_acting(database: Database, name: str, since: datetime, clock: Clock = wall_clock) -> ActingPlan:
    """Tell what acting on the mail of this account since a time would mean. Nothing is changed."""
    account = await _find(database, name)
    if since > clock():
        raise BadInput("since", f"{since:%Y-%m-%d %H:%M} UTC is in the future", "choose a time in the past")
    found = await _waiting(database, account, since)
    would = Counter(str(each.would) for each in found if each.would is not None)
    return ActingPlan(account, since, len(found), dict(would.most_common()))


def _describe_acting(acting: ActingAccount, _given: Mapping[str, Any]) -> str:
    again = f" Deciding again about {counted(acting.messages, 'message')}." if acting.messages else ""
    return f"Postroom acts on mail of {acting.account.email}.{again}"


@CONNECTORS.operation(
    ANSWER_AGAIN, post("/connectors/act"), form("/connectors/act", _describe_acting), dialogue("account act")
)
async def begin_acting(
    by: Caller,
    /,
    account: AccountName,
    since: Annotated[datetime | None, Argument("Act on mail since this time; now if omitted.")] = None,
) -> ActingAccount:
    """Act on an account's mail from a time on. Mail since then that nothing was done with is decided again. Safe to
    repeat.
    """
    # Servers tell the time of a message in whole seconds.
    start = (since or by.clock()).replace(microsecond=0)
    plan = await plan_acting(by.database, account, start, by.clock)
    acting = await by.run(accounts.act_from(plan.account.id, start, by.signature, by.clock()))
    waiting = [Undecided(*each[:3]) for each in await _waiting(by.database, acting, start)]
    again = await decide_all_again(by.again(), waiting, start)
    return ActingAccount(acting, acting.acts_from or start, *again)


async def _find(database: Database, name: str) -> AccountView:
    account = await find_account(database, name)
    if account.state == "removed":
        raise BadInput("account", f"{account.email} was removed", "connect it again first")
    return account


async def _waiting(database: Database, account: AccountView, since: datetime) -> list[UntouchedMessage]:
    return await database.run(waiting_to_act(account.id, since, MOST))
