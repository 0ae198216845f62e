"""The starter rules: list them with what they would have done lately, and add those that somebody chooses."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from postroom.core.access import OPERATE, READ
from postroom.core.actions.steps import leaves_inbox, steps_of
from postroom.core.rules.starter import Starter, drafts_of, starters, starters_named
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, command, flow
from postroom.operations.preview.preview_rules import rules_of
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import applied_migrations
from postroom.store.mail.simulation import MessageSelection, PastMessage
from postroom.store.rules.rules import KeptRules as KeptRules
from postroom.store.rules.rules import RuleView, keep_rules, list_rules
from postroom.system.wall_clock import Clock
from postroom.triage.decide.simulate import (
    ForeseenDecision,
    Progress,
    SimulatedPair,
    SimulatedRules,
    SimulationContext,
    load_context,
    needed_by,
    past_pages,
)

LATELY = timedelta(days=7)
MOST_MAIL = 20_000
ORIGIN = "starter"

Names = Annotated[Sequence[str], Argument("Starters, as the list names them, or all.", typed_as="NAME…")]
Chosen = Literal["no", "yes", "partly"]


@dataclass(slots=True, kw_only=True)
class RuleEffect:
    """The effect of some rules: the numbers of messages, of all that were looked at (`mail`)."""

    mail: int = 0
    matched: int = 0
    leave_inbox: int = 0
    wait: int = 0

    def add(self, foreseen: ForeseenDecision, *, is_in_inbox: bool = True) -> None:
        """Count a message that these rules decide."""
        self.matched += 1
        steps = steps_of(foreseen.action_type, foreseen.parameters)
        self.leave_inbox += is_in_inbox and foreseen.ruling == "allow" and leaves_inbox(steps)
        self.wait += foreseen.ruling == "approve"


@dataclass(slots=True)
class StarterView(RuleEffect):
    """A starter, whether its rules are in use, and what it would have done, by itself, to the mail of the last 7 days.

    `mail` is how many messages there were.
    """

    name: str
    title: str
    description: str
    rules: list[str]
    chosen: Chosen = "no"


@RULES.operation(READ, command("rules starter list"))
async def list_starters(database: Database, settings: Settings, clock: Clock, /) -> list[StarterView]:
    """List the starters, and what each would have done by itself to the mail of the last 7 days. It changes nothing."""
    return await replay_starters(database, settings, clock())


async def replay_starters(
    database: Database, settings: Settings, now: datetime, progress: Progress = lambda _done, _total: None
) -> list[StarterView]:
    """List every starter with what it would have done, replaying stored mail once for all. Nothing is changed."""
    if not await database.run(applied_migrations()):
        return [view_of(each, ()) for each in starters()]
    found = await plain_starters(database)
    context = await load_context(database, policy_of(settings), has_model=False, now=now)
    pairs = [_pair(starter, context) for starter in starters()]

    def replay_page(page: Sequence[PastMessage]) -> None:
        for past in page:
            for view, pair in zip(found, pairs, strict=True):
                _, foreseen = pair.decide(past)
                if foreseen.rule_name is not None:
                    view.add(foreseen)

    done, needed = 0, needed_by(rules_of(drafts_of(starters())))
    async for page, total in past_pages(database, MessageSelection(now - LATELY, MOST_MAIL), needed):
        # In a thread, so that the server still answers meanwhile.
        await asyncio.to_thread(replay_page, page)
        done += len(page)
        progress(done, max(total, done))
    for view in found:
        view.mail = done
    return found


async def plain_starters(database: Database) -> list[StarterView]:
    """List every starter and whether it is in use, without what it would have done."""
    stored = await database.run(list_rules())
    return [view_of(each, stored) for each in starters()]


@RULES.operation(OPERATE, flow("/rules/starter/{starter}/add"), command("rules starter add {names}"))
async def add_starters(by: Caller, /, names: Names) -> KeptRules:
    """Add the rules of starters to yours. Rules whose names exist already are left as they are. Safe to repeat."""
    await prepare(by.database)
    drafts = [(new_id(), draft) for draft in drafts_of(starters_named(names))]
    return await by.run(keep_rules(drafts, "skip", ORIGIN, by.signature, by.clock()))


def _pair(starter: Starter, context: SimulationContext) -> SimulatedPair:
    """No rules, and those of the starter alone."""
    return SimulatedPair(SimulatedRules((), context), SimulatedRules(rules_of(starter.rules), context))


def view_of(starter: Starter, stored: Iterable[RuleView]) -> StarterView:
    """The starter, and whether its rules are among those in use."""
    names, in_use = [rule.name for rule in starter.rules], {view.name for view in stored if view.enabled}
    return StarterView(starter.name, starter.title, starter.description, names, _choice_of(names, in_use))


def _choice_of(rules: Iterable[str], stored: set[str]) -> Chosen:
    found = [name in stored for name in rules]
    if all(found):
        return "yes"
    return "partly" if any(found) else "no"
