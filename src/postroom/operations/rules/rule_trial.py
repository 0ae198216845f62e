"""Test the rules on a message: which one decides, and why the others do not. It changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from postroom.core.access import READ
from postroom.core.actions.steps import combined, shown
from postroom.core.errors import BadInput
from postroom.core.mail.files import mail_in
from postroom.core.mail.mime import parse_message
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.explain import Explained, explain
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.file_facts import facts_from_file, read_history
from postroom.core.rules.needs import ABOUT_CONTACTS, unknown_kinds
from postroom.core.rules.rule import Rule, kinds_used
from postroom.core.rules.rulebook import Rulebook
from postroom.operations.accounts.accounts import find_account
from postroom.operations.accounts.contacts import known_to
from postroom.operations.nouns import RULES
from postroom.operations.operation import dialogue
from postroom.operations.rules.rules import with_resolved_scopes
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import EVERY_MAILBOX
from postroom.store.mail.mail import load_message
from postroom.store.rules.rules import enabled_rules
from postroom.triage.decide.engine import unknown_conditions

# Conditions for which all mail in the files is read once before.
NEED_A_HISTORY = frozenset({"sender_seen_before", "reply_to_mine"})


@dataclass(frozen=True, slots=True)
class TrialMessage:
    """A message, its account if known, and which parts of it are missing."""

    name: str
    account_id: UUID | None
    message: MessageFacts
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TriedRule:
    """The verdict of one rule on the message, and why."""

    rule: str
    result: str
    why: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The deciding rule and its action, the rules that decide in shadow, and every rule if requested."""

    message: str
    matched: str | None
    action: str | None
    shadowed: Sequence[str]
    rules: Sequence[TriedRule] | None


@RULES.operation(READ, dialogue("rules test"))
async def prepare_trial(
    database: Database, /, drafts: Sequence[RuleDraft] | None, message_id: UUID | None, account: str | None
) -> "RuleTrial":
    """Prepare a trial of the rules in use, or of those drafts that are enabled."""
    if drafts is None:
        rules = await database.run(enabled_rules())
    else:
        rules = [draft.as_rule(new_id()) for draft in await with_resolved_scopes(database, drafts) if draft.enabled]
    stored = None if message_id is None else await _load_stored(database, message_id)
    found = None if account is None else await find_account(database, account)
    contacts = await _contacts(database, rules, found)
    return RuleTrial(rules, stored, found, contacts)


async def _contacts(database: Database, rules: Sequence[Rule], account: AccountView | None) -> frozenset[str] | None:
    """The contacts of the account, or of all mailboxes, if a rule looks at them."""
    if not any(kinds_used(rule.conditions) & ABOUT_CONTACTS for rule in rules):
        return None
    return await known_to(database, EVERY_MAILBOX if account is None else account.endpoint_identity)


async def _load_stored(database: Database, id: UUID) -> TrialMessage:
    found = await database.run(load_message(id))
    return TrialMessage(str(found.id), found.account_id, found.facts, unknown_conditions(found))


class RuleTrial:
    """The rules, ready to be tested on a stored message, or on mail in files for an account."""

    def __init__(
        self,
        rules: Sequence[Rule],
        stored: TrialMessage | None,
        account: AccountView | None,
        contacts: frozenset[str] | None = None,
    ) -> None:
        self._stored = stored
        self._account_id = None if account is None else account.id
        self._own = frozenset[str]() if account is None else frozenset({account.email})
        self._contacts = contacts
        self._has_history = any(NEED_A_HISTORY & kinds_used(rule.conditions) for rule in rules)
        self._book = Rulebook(rules)
        self._rules = sorted(rules, key=lambda rule: rule.order)

    def messages(self, path: Path) -> Iterator[TrialMessage]:
        """Yield the stored message, or the mail in a file or folder as if the account had just received it."""
        if self._stored is not None:
            yield self._stored
            return
        read = (mail.raw for mail in mail_in(path)) if self._has_history else ()
        history = read_history(read, self._own, self._contacts)
        for mail in mail_in(path):
            if mail.problem is not None:
                raise BadInput("MAIL", f"{mail.path}: {mail.problem}", "give another path")
            facts = facts_from_file(parse_message(mail.raw), len(mail.raw), history)
            yield TrialMessage(mail.path, self._account_id, facts, unknown_kinds(facts))

    def on(self, tried: TrialMessage, now: datetime, *, every_rule: bool) -> TrialResult:
        outcome = self._book.decide(tried.account_id or UUID(int=0), tried.message, now, tried.hidden)
        names = [rule.name for rule in outcome.rules]
        about = (tried.account_id, tried.message, now, tried.hidden)
        rules = [_describe(explain(rule, *about), names) for rule in self._rules] if every_rule else None
        shadowed = [rule.name for rule in outcome.shadowed]
        action = shown(*combined(outcome.joined.steps)) if names else None
        return TrialResult(tried.name, " + ".join(names) or None, action, shadowed, rules)


def _describe(explained: Explained, deciding: Sequence[str]) -> TriedRule:
    """Describe one rule's result: of several that match, the first decides, and those that it lets add to it."""
    decides = explained.rule.name in deciding
    result = "decides" if decides else explained.result
    if explained.result == "matches" and not decides:
        result = "matches in shadow" if explained.rule.shadow else "matches, but comes later"
    return TriedRule(explained.rule.name, result, explained.why)
