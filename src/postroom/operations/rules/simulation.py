"""The effect that a change of rules would have had on stored mail. Nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from postroom.core.access import READ
from postroom.core.errors import ModelRefused
from postroom.core.moments import LONG_AGO
from postroom.core.money import MICROS_PER_CENT
from postroom.core.rules.draft import RuleDraft
from postroom.operations.accounts.accounts import find_account
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, dialogue
from postroom.operations.rules.rules import with_resolved_scopes
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.settings.sections import ModelSettings
from postroom.store.engine.database import Database
from postroom.store.mail.simulation import MessageSelection
from postroom.store.rules.rules import list_rules
from postroom.triage.decide.model_prices import prices_of
from postroom.triage.decide.simulate import Progress
from postroom.triage.decide.simulated import ChangeOfRules, SimulationRequest, SimulationResult, simulate

MOST_REPLAYED = 50_000
# The tokens of a call if nothing is known: a message of one page, and a decision.
TYPICAL_TOKENS = (2_500, 150)


@dataclass(frozen=True)
class PastMail:
    """The stored mail that is replayed: the newest, since a time, of one account or all."""

    since: Annotated[datetime | None, Argument("Only mail stored since then.")] = None
    account: Annotated[str | None, Argument("Only mail of this account.", typed_as="--account ID_OR_ADDRESS")] = None
    limit: Annotated[int, Argument("At most this many messages, the newest.", 1, 10_000_000)] = MOST_REPLAYED


ALL_MAIL = PastMail()


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """How many more calls to the model there would be, their cost if known, and the basis of the estimate."""

    more_calls: int
    cents: float | None
    basis: str


@RULES.operation(READ, dialogue("simulate"))
async def simulate_change(
    database: Database,
    settings: Settings,
    /,
    change: ChangeOfRules,
    now: datetime,
    progress: Progress,
    mail: PastMail = ALL_MAIL,
) -> SimulationResult:
    """Replay stored mail under the present rules and under the changed ones."""
    account_id = None if mail.account is None else (await find_account(database, mail.account)).id
    drafts: Sequence[RuleDraft] = await with_resolved_scopes(database, change.drafts)
    stored = await database.run(list_rules())
    question = SimulationRequest(
        [view.rule for view in stored if view.decides],
        replace(change, drafts=drafts).applied_to(stored),
        MessageSelection(mail.since or LONG_AGO, mail.limit, account_id),
        policy_of(settings),
        settings.model.provider != "none",
        timedelta(days=settings.outbound.auto_reply_days),
    )
    return await simulate(database, question, now, progress)


def estimate_cost(found: SimulationResult, model: ModelSettings) -> CostEstimate:
    more = found.after.model_calls - found.before.model_calls
    micros, basis = _call_cost(found, model)
    return CostEstimate(more, None if micros is None else round(more * micros / MICROS_PER_CENT, 4), basis)


def _call_cost(found: SimulationResult, model: ModelSettings) -> tuple[float | None, str]:
    """Return the cost of one call, and what it is based on."""
    if model.provider == "none":
        return None, "there is no model"
    if found.call_micros is not None:
        return found.call_micros, "by the cost of recent calls"
    try:
        return prices_of(model).cost(*TYPICAL_TOKENS), f"by the price, at {TYPICAL_TOKENS[0]:,} tokens a call"
    except ModelRefused:
        return None, "the price of the model is unknown"
