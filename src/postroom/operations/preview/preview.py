"""A preview of what Postroom would do with mail. Nothing is changed, stored or sent.

Each message is decided as live mail is: by the filters, the rules and the safety policy of the settings. A message that
something would be sent about, or that would be deleted, is decided after all others, in the order of dates, since
earlier ones count: only so many are done within an hour, and nobody is answered twice within days.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from postroom.core.actions.safety import Policy, Protected
from postroom.core.actions.steps import combined, is_irreversible, leaves_inbox, shown
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import display_names
from postroom.core.mail.files import MailFile
from postroom.core.mail.headers import values
from postroom.core.mail.ingestion import excerpt
from postroom.core.mail.mail_head import MailHead
from postroom.core.mail.own_mail import is_own_mail
from postroom.core.mail.tiers import sender_address
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rulebook import Rulebook
from postroom.operations.preview.arrivals import Arrival, IncomingMessage, Recipient, arrive
from postroom.operations.rules.doubts import doubts_about
from postroom.store.actions.protection import Restraints
from postroom.store.mail.mail import StoredMessage
from postroom.triage.decide.engine import OWN_MAIL, apply_rules
from postroom.triage.decide.prompt import LONGEST_BODY, SYSTEM
from postroom.triage.decide.simulate import ForeseenDecision, SimulatedRules, SimulationContext

Result = Literal["done", "waits", "refused", "stays", "model", "own", "skipped"]
"""The fate of a message: something is done, or waits for a yes, or safety refuses it; it stays as it is; the
model would be asked; it is the user's own mail; a filter skips it.
"""
NO_RESTRAINTS = Restraints(Protected(), frozenset(), model_in_shadow=False, irreversible_this_hour=0)
# Letters to a token, and the tokens of a prompt around the text of a mail and of an answer.
LETTERS_PER_TOKEN = 4
PROMPT_TOKENS = len(SYSTEM) // LETTERS_PER_TOKEN + 500
ANSWER_TOKENS = 150


@dataclass(frozen=True, slots=True)
class Previewed(MailHead):
    """The preview of one message."""

    path: str
    sender_name: str
    sent_at: datetime | None
    policy_tier: str
    assignment_rule: str
    ingestion_tier: str
    categories: list[str]
    result: Result
    why: str
    problem: str | None
    rules: list[str] = field(default_factory=list[str])
    action: str = "none"
    leaves_inbox: bool = False
    doubts: list[str] = field(default_factory=list[str])
    doubt: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PreviewRules:
    """The rules to preview, and everything else that affects decisions."""

    rules: Sequence[Rule]
    policy: Policy
    has_model: bool = False
    restraints: Restraints = NO_RESTRAINTS
    answered_again: timedelta = timedelta(days=7)


class Undecided(NamedTuple):
    """A message that is decided later, in the order of dates."""

    number: int
    row: Previewed
    message: StoredMessage
    outcome: Outcome
    at: datetime


class Previewer:
    """Previews messages one after another. `finish` decides about those that had to wait."""

    def __init__(self, chosen: PreviewRules, recipient: Recipient, now: datetime) -> None:
        context = SimulationContext(
            chosen.restraints, {}, chosen.policy, chosen.has_model, answered_again=chosen.answered_again
        )
        self._book = Rulebook(chosen.rules)
        self._simulated = SimulatedRules(chosen.rules, context)
        self._recipient = recipient
        self._now = now
        self._waiting: list[Undecided] = []
        self.rows: list[Previewed] = []

    @property
    def broken(self) -> tuple[tuple[Rule, str], ...]:
        """The invalid rules, with the reason."""
        return self._book.broken

    def add(self, incoming: IncomingMessage) -> None:
        """Preview one message."""
        try:
            arrival = arrive(incoming, self._recipient, self._now)
        except BadInput as error:
            self.rows.append(_unreadable(incoming.mail, str(error)))
            return
        row = self._row(incoming.mail, arrival)
        message = arrival.message
        if message is None or row.result == "own":
            self.rows.append(row)
            return
        outcome = apply_rules(message, self._book, arrival.at)
        if outcome.matched is not None and is_irreversible(*combined(outcome.joined.steps)):
            message = replace(message, facts=replace(message.facts, body_text=excerpt(message.facts.body_text)))
            self._waiting.append(Undecided(len(self.rows), row, message, outcome, arrival.at))
            self.rows.append(row)
            return
        self.rows.append(self._decide(row, message, outcome, arrival.at))

    def take(self) -> tuple[list[Previewed], list[Undecided]]:
        """Hand over what was previewed so far, for another previewer to continue with, and begin anew."""
        taken = self.rows, self._waiting
        self.rows, self._waiting = [], []
        return taken

    def continue_with(self, rows: Sequence[Previewed], waiting: Iterable[Undecided]) -> None:
        """Continue after what another previewer of the same rules handed over."""
        self._waiting += [put._replace(number=put.number + len(self.rows)) for put in waiting]
        self.rows += rows

    def finish(self) -> list[Previewed]:
        """Decide about the messages that had to wait, and return all."""
        for put in sorted(self._waiting, key=lambda each: each.at):
            self.rows[put.number] = self._decide(put.row, put.message, put.outcome, put.at)
        self._waiting.clear()
        return self.rows

    def _row(self, mail: MailFile, arrival: Arrival) -> Previewed:
        """The preview before anything is decided."""
        headers, message = arrival.parsed.headers, arrival.message
        problem = mail.problem or "; ".join(arrival.parsed.problems) or None
        result, why = not_decided(arrival, self._recipient)
        return Previewed(
            sender_address(headers),
            (values(headers, "subject") or [""])[0],
            mail.path,
            next((name for value in values(headers, "from") for name in display_names(value)), ""),
            None if message is None else message.facts.sent_at,
            *arrival.assignment,
            arrival.ingestion.tier,
            [] if message is None else sorted(message.facts.categories or ()),
            result,
            why,
            problem,
        )

    def _decide(self, row: Previewed, message: StoredMessage, outcome: Outcome, at: datetime) -> Previewed:
        foreseen = self._simulated.decide(message, outcome, at)
        names = [rule.name for rule in outcome.rules]
        if foreseen.source == "llm":
            return replace(row, result="model", why="no rule matches; the model decides", tokens=_tokens(message.facts))
        if not names:
            tokens = _tokens(message.facts) if message.ingestion_tier == "full" else 0
            return replace(row, why="no rule matches", tokens=tokens)
        result, why = _result_of(foreseen)
        steps, left_out = outcome.joined
        leaves = result == "done" and leaves_inbox(steps)
        decided = replace(row, rules=names, action=shown(*combined(steps)), result=result, why=why, leaves_inbox=leaves)
        doubts = doubts_about(
            message.facts,
            row.policy_tier,
            row.categories,
            left_out,
            leaves=leaves_inbox(steps),
            waits=result == "waits",
        )
        return replace(decided, doubts=[each.reason for each in doubts], doubt=sum(each.weight for each in doubts))


def preview_mail(
    mail: Iterable[MailFile], chosen: PreviewRules, recipient: Recipient, now: datetime
) -> list[Previewed]:
    """Preview messages; in order."""
    previewer = Previewer(chosen, recipient, now)
    for each in mail:
        previewer.add(IncomingMessage(each))
    return previewer.finish()


def not_decided(arrival: Arrival, recipient: Recipient) -> tuple[Result, str]:
    """Why no rule is asked about the message; `stays` if they are."""
    if is_own_mail(arrival.parsed.headers, arrival.labels, recipient.known):
        return "own", OWN_MAIL
    if arrival.message is None:
        return "skipped", f"the filter {arrival.ingestion.rule} skips it"
    return "stays", "no rule matches"


def _result_of(foreseen: ForeseenDecision) -> tuple[Result, str]:
    reasons = "; ".join(str(each) for each in foreseen.safety.get("reasons", ()))
    match foreseen.ruling:
        case "approve":
            return "waits", reasons
        case "refuse":
            return "refused", reasons
        case _ if foreseen.held_back:
            return "stays", "the sender was answered recently"
        case None:
            return "stays", "" if foreseen.source == "deterministic" else "decided in shadow"
        case _:
            return "done", ""


def _tokens(facts: MessageFacts) -> int:
    """About how many tokens the prompt about this message has."""
    return PROMPT_TOKENS + (len(facts.subject) + min(len(facts.body_text), LONGEST_BODY)) // LETTERS_PER_TOKEN


def _unreadable(mail: MailFile, problem: str) -> Previewed:
    why = "it cannot be read"
    return Previewed("", "", mail.path, "", None, "default", "fallback_default", "skip", [], "skipped", why, problem)
