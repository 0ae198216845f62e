"""The rules that a preview applies: those in a file, starter rules, or the rules in use. The database is only read."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import IngestionRule
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rule import Rule
from postroom.core.rules.rulebook import Rulebook
from postroom.core.rules.starter import drafts_of, starters
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.preview.arrivals import Recipient
from postroom.operations.preview.preview import NO_RESTRAINTS, PreviewRules
from postroom.operations.rules.rules import with_resolved_scopes
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.actions.protection import Restraints, restraints
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import applied_migrations
from postroom.store.intake.ingestion_rules import list_ingestion_rules
from postroom.store.rules.rules import list_rules

IN_USE = "your rules"
NONE_YET = "all starter rules, since you have no rules yet; nothing is switched on"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rules and all else that affects decisions, what to call them, and whose mailbox it is."""

    rules: PreviewRules
    source: str
    recipient: Recipient
    broken: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    """The state of the database: its rules in use, the restraints, and the account of the user."""

    rules: Sequence[Rule] = ()
    restraints: Restraints = NO_RESTRAINTS
    account_id: UUID | None = None
    drafts: Sequence[RuleDraft] = ()


async def choose_rules(
    database: Database,
    settings: Settings,
    source: str,
    drafts: Sequence[RuleDraft] | None,
    recipient: Recipient,
    now: datetime,
) -> Chosen:
    """The drafts as rules, else those in use, else all starter rules. What is protected counts in any case."""
    found = await _read_installation(database, drafts or (), recipient.known.user_addresses, now)
    if drafts is not None:
        rules, source = rules_of(found.drafts), f"{source}, {counted(len(found.drafts), 'rule')}"
    elif found.rules:
        rules, source = list(found.rules), f"{IN_USE}, {counted(len(found.rules), 'rule')}"
    else:
        rules, source = rules_of(drafts_of(starters())), NONE_YET
    broken = tuple((rule.name, why) for rule, why in Rulebook(rules).broken)
    chosen = PreviewRules(
        rules,
        policy_of(settings),
        settings.model.provider != "none",
        found.restraints,
        timedelta(days=settings.outbound.auto_reply_days),
    )
    if found.account_id is not None:
        recipient = replace(recipient, account_id=found.account_id)
    return Chosen(chosen, source, recipient, broken)


async def _read_installation(
    database: Database, drafts: Sequence[RuleDraft], users: Set[str], now: datetime
) -> Installation:
    """Read everything that decisions depend on, and resolve the accounts of the drafts."""
    if not await database.run(applied_migrations()):
        return Installation(drafts=drafts)
    accounts = [each for each in await list_accounts(database) if each.state != "removed"]
    account_id = next((each.id for each in accounts if each.email.lower() in users), None)
    stored = [view.rule for view in await database.run(list_rules()) if view.decides]
    found = await database.run(restraints(account_id or UUID(int=0), now))
    return Installation(stored, found, account_id, await with_resolved_scopes(database, drafts))


def rules_of(drafts: Sequence[RuleDraft]) -> list[Rule]:
    """The enabled drafts as rules, in the given order where their priorities are equal."""
    wanted = [draft for draft in drafts if draft.enabled]
    ids = sorted(new_id() for _ in wanted)
    return [draft.as_rule(id) for id, draft in zip(ids, wanted, strict=True)]


async def own_filters(database: Database, settings: Settings) -> list[IngestionRule]:
    """The filters in use, the user's own and the built-in ones. Raises BadInput if there is no database: a preview
    must not create one.
    """
    if not await database.run(applied_migrations()):
        remedy = "name the folder with --data-dir, run `postroom migrate` first, or omit --filters"
        raise BadInput("--filters", f"there is no database in {settings.data_dir}", remedy)
    return [view.rule for view in await database.run(list_ingestion_rules()) if view.enabled]
