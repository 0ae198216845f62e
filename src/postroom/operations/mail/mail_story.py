"""The way of one message as a story in plain sentences: arrived, decided, approved, done, undone, and what you did."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, assert_never

from postroom.core.actions.undo import why_not_undoable
from postroom.core.budget_shares import why_share_ended
from postroom.core.mail.headers import sender_name
from postroom.core.mail.ingestion import IngestionFacts, IngestionPolicy
from postroom.core.short_ids import short_id
from postroom.core.views import Internal
from postroom.store.actions.actions import ActionView
from postroom.store.actions.decisions import BEFORE_ACTING, Decision, DecisionView
from postroom.store.mail.mail_views import MailRecord, MailRow, UndoView
from postroom.store.rules.outcomes import OutcomeView
from postroom.words import actions as action_words
from postroom.words.mail import PLACES
from postroom.words.tiers import doubted_contact, tier_reason

HIDDEN = frozenset({*PLACES, "UNREAD", "STARRED", "IMPORTANT"})


class Alternative(NamedTuple):
    """Another action that the model weighed, and its confidence in it."""

    what: str
    confidence: float


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One event in the way of a message; without a time it holds now. `command` are the words after `postroom` of a
    command that helps.
    """

    at: datetime | None
    text: str
    command: Internal[str | None] = None


def tell(record: MailRecord, filters: IngestionPolicy) -> Iterator[StoryLine]:
    """The lines of the story in their order."""
    came = record.mail
    yield from _arrival_lines(came, filters)
    if not record.decisions and not record.actions:
        yield StoryLine(None, "Nothing has been decided about it yet.", "jobs list --type classify")
        if (wait := record.model_wait) is not None:
            reason = why_share_ended(wait.kind, came.policy_tier)
            yield StoryLine(wait.waits_since, f"{reason[:1].upper()}{reason[1:]}.", "model status")
    events = [*_decisions(record), *_requests(record)]
    events += [(each.observed_at, line) for each in record.outcomes for line in _reaction_lines(each)]
    yield from (line for _, line in sorted(events, key=lambda event: event[0]))
    yield StoryLine(came.deleted_at, _now(came))


Event = tuple[datetime, StoryLine]


def _decisions(record: MailRecord) -> Iterator[Event]:
    """The decisions, each followed by what came of it."""
    done = {each.decision_id: each for each in record.actions if each.decision_id is not None}
    for view in record.decisions:
        yield from ((view.created_at, line) for line in _decision_lines(view))
        if (action := done.get(view.decision.id)) is not None:
            yield from ((view.created_at, line) for line in _carried_out(action, record.undos.get(action.id)))


def _requests(record: MailRecord) -> Iterator[Event]:
    """The actions that people and agents asked for, each followed by what came of it."""
    for action in record.actions:
        if action.decision_id is None and action.actor != "undo":
            yield action.created_at, StoryLine(action.created_at, _request_line(action))
            yield from ((action.created_at, line) for line in _carried_out(action, record.undos.get(action.id)))


def _arrival_lines(came: MailRow, filters: IngestionPolicy) -> Iterator[StoryLine]:
    name = sender_name(came.headers)
    sender = f"{name} <{came.sender}>" if name else came.sender
    how = "It arrived"
    if came.is_backfilled:
        how = "A backfill fetched it"
    elif came.on_demand:
        how = "Somebody searched the mailbox for it, which brought it here"
    yield StoryLine(came.accepted_at or came.stored_at, f"{how} in {came.account}, from {sender}.")
    yield StoryLine(None, f"Its tier is {came.tier.replace('_', ' ')}: {tier_reason(came).words}.")
    if came.is_contact and (doubted := doubted_contact(came.sender_doubt)):
        yield StoryLine(None, f"It is {doubted}. So it does not count as mail from a contact.")
    if came.pruned_at is not None:
        yield StoryLine(came.pruned_at, "Its content is no longer kept: its retention ended.")
        return
    yield StoryLine(None, _why_extent(came, filters))


def _why_extent(came: MailRow, filters: IngestionPolicy) -> str:
    """The filter that decided how much is stored; as filters are today."""
    decided = filters.decide(IngestionFacts(came.sender, came.headers))
    by = f", by the filter {decided.rule!r}" if decided.tier == came.ingestion_tier else ""
    if came.ingestion_tier == "metadata":
        return f"Only its headers were stored, not its text{by}; rules that need the text cannot match it."
    named = by if decided.tier == "full" and any(rule.name == decided.rule for rule in filters.rules) else ""
    return f"It was stored in full{named or ': no filter asks for less'}."


def _decision_lines(view: DecisionView) -> Iterator[StoryLine]:
    decision = view.decision
    if decision.shadow:
        yield StoryLine(view.created_at, _in_shadow(decision))
        return
    again = "It was decided again. " if decision.generation > 1 else ""
    yield StoryLine(view.created_at, again + _deciding(decision))
    if (said := _safety(decision)) is not None:
        yield StoryLine(view.created_at, said)


def _deciding(decision: Decision) -> str:
    match decision.source:
        case "deterministic":
            wish = action_words.asked(*_chosen_action(decision))
            return f"The rule {decision.rule_name or '(removed)'!r} matched; it says: {wish}."
        case "llm":
            wish = action_words.asked(*_chosen_action(decision))
            model = f"the model {decision.model}" if decision.model else "the model"
            sure = f"{decision.confidence:.0%} sure"
            others = "; ".join(f"{what} ({confidence:.0%})" for what, confidence in weighed(decision))
            also = f" It also weighed: {others}." if others else ""
            said = f"No rule matched, so {model} was asked. It says: {wish} ({sure}).{also}"
            return f"{said} Its reason: {decision.rationale}"
        case "none":
            return f"It was left as it is: {decision.rationale}."
        case _:
            assert_never(decision.source)


def weighed(decision: Decision) -> list[Alternative]:
    """Other actions that the model weighed, in words."""
    return [
        Alternative(action_words.asked(str(each["action"]), each["parameters"]), float(each["confidence"]))
        for each in decision.alternatives or ()
    ]


def _chosen_action(decision: Decision) -> tuple[str, Mapping[str, Any]]:
    """The action that was decided on, also where safety refused it."""
    refused: Mapping[str, Any] | None = (decision.safety or {}).get("proposed")
    if refused is not None:
        return str(refused["action"]), refused["parameters"]
    return decision.action_type, decision.parameters


def _in_shadow(decision: Decision) -> str:
    wish = action_words.asked(decision.action_type, decision.parameters)
    why = str((decision.safety or {}).get("shadow", ""))
    if why == BEFORE_ACTING:
        return f"The rules or the model would {wish}; you have not switched on acting for mail of that time yet."
    if why in ("backfill", "on_demand"):
        return f"The rules or the model would {wish}; nothing is done with old mail, so this is only recorded."
    by = "The model" if decision.source == "llm" else f"The rule {decision.rule_name or '(removed)'!r}"
    category = f" (mail of the category {why.partition(':')[2]} is in shadow)" if why.startswith("category:") else ""
    return f"{by} runs in shadow: it would {wish}{category}."


def _safety(decision: Decision) -> str | None:
    safety = decision.safety or {}
    reasons = "; ".join(map(str, safety.get("reasons", ())))
    match safety.get("verdict"):
        case "refuse":
            return f"Safety refused that, so nothing was done: {reasons}."
        case "approve":
            return f"Safety asked for your approval: {reasons}."
        case "allow":
            return "Safety allowed it."
        case _:
            return None


def _request_line(action: ActionView) -> str:
    wish = action_words.asked(action.action_type, action.parameters)
    who = {"user": "You", "agent": "An agent"}.get(action.actor, "Somebody")
    return f"{who} ({action.asked_by}) asked to {wish}." if action.asked_by else f"{who} asked to {wish}."


def _carried_out(action: ActionView, undo: UndoView | None) -> Iterator[StoryLine]:
    done = action_words.done(action.action_type, action.parameters)
    if action.approved_by is not None:
        yield StoryLine(None, f"It was approved by {action.approved_by}.")
    match action.state:
        case "approved_pending":
            until = f" until {_time(action.expires_at)}" if action.expires_at else ""
            yield StoryLine(None, f"It waits for your answer{until}.", f"approvals approve {action.id}")
        case "queued" | "executing":
            yield StoryLine(None, f"It is being {done}.")
        case "completed" if (action.undo_hint or {}).get("no_op"):
            yield StoryLine(action.executed_at, f"Nothing had to be changed: it was {done} already.")
        case "completed":
            yield StoryLine(action.executed_at, f"It was {done}.")
        case "failed":
            yield StoryLine(None, f"It could not be {done}: {action.error}")
        case "canceled" | "rejected" | "expired":
            why = f": {action.error}" if action.error else ""
            yield StoryLine(None, f"It was not {done}; the action was {action.state}{why}.")
        case _:
            assert_never(action.state)
    if undo is not None:
        yield _undone(undo)
    elif _can_be_undone(action):
        yield StoryLine(None, "That can be taken back.", f"undo {short_id(action.id)}")


def _undone(undo: UndoView) -> StoryLine:
    by = f" by {undo.asked_by}" if undo.asked_by else ""
    match undo.state:
        case "completed":
            return StoryLine(undo.executed_at, f"That was undone{by}.")
        case "queued" | "executing" | "approved_pending":
            return StoryLine(None, "That is being undone.")
        case _:
            return StoryLine(None, f"That could not be undone: {undo.error or undo.state}")


def _can_be_undone(action: ActionView) -> bool:
    if action.actor == "undo" or action.undone in ("queued", "executing", "completed"):
        return False
    return why_not_undoable(action.action_type, action.state, action.undo_hint) is None


def _reaction_lines(outcome: OutcomeView) -> Iterator[StoryLine]:
    verdict = "as had been decided" if outcome.agreed else "against what had been decided"
    yield StoryLine(outcome.observed_at, f"Then you {outcome.what} yourself, {verdict}.")


def _now(came: MailRow) -> str:
    if came.is_gone:
        return "It is gone from the mailbox."
    places = [name for label, name in PLACES.items() if label in came.labels]
    where = " and ".join(places) if places else "the archive"
    states = [
        *(["unread"] if "UNREAD" in came.labels else ["read"]),
        *(["starred"] if "STARRED" in came.labels else []),
    ]
    own = [label for label in came.labels if label not in HIDDEN and not label.startswith("CATEGORY_")]
    labels = f", with the label{'s' if len(own) > 1 else ''} {', '.join(map(repr, own))}" if own else ""
    return f"Now it is in {where}, {' and '.join(states)}{labels}."


def _time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"
