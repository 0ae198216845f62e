"""Decides whether automation may act by itself, needs a person's approval, or must not act. Code, not prompt.

Every proposed action is judged here, no matter who proposed it. The verdict is `allow`, `approve` (it waits for a
person) or `refuse` (nothing is done). The reasons are recorded with the decision. Of several actions each is judged,
and the strictest verdict holds for the whole.

    protected sender or label                      refuse, no matter who asks
    forward, unless proposed by a user's rule      refuse: addresses come from the user alone
    cc, attachments, unless from a user's rule     refuse: for the same reason
    auto_reply where RFC 3834 forbids it           refuse
    hiding mail that people alone hide, unless     refuse: such mail stays where it is, without asking
        a rule or the user does it
    hiding over a cap, likewise                    refuse: judged when it is recorded, see core/actions/hiding.py
    delete, forward, auto_reply                    approve; a setting may trust rules with the latter two
    auto_reply with a foreign Reply-To             approve, even if rules are trusted
    confidence under 0.7, for trash under 0.9      approve
    the rule or the model asks for approval        approve
    on the user's list                             approve
    proposed by an agent                           approve, unless a setting trusts agents with reversible actions
    by an agent over its hourly cap                approve, even if agents are trusted
    an agent's label that does not exist           approve: agents do not create labels by themselves
    irreversible, over the hourly cap              approve

An agent may undo only what it proposed itself and nobody had to approve; with the setting that trusts agents, also
anything else that can be undone, except what the user asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from postroom.core.actions.action import IRREVERSIBLE, SENDING, RecordedType
from postroom.core.actions.hiding import HidingCaps, HidingLimits
from postroom.core.actions.steps import steps_of
from postroom.core.days import day_began
from postroom.core.mail.addresses import canonical

Source = Literal["rule", "model", "agent", "user"]
Verdict = Literal["allow", "approve", "refuse"]
STRICTNESS: tuple[Verdict, ...] = ("refuse", "approve", "allow")
ProtectedKind = Literal["sender", "domain", "label"]
ShadowKind = Literal["category", "model"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The user's safety settings."""

    confidence: float = 0.7
    trash_confidence: float = 0.9
    always_approve: frozenset[str] = frozenset()
    trust_rules: bool = False
    trust_agents: bool = False
    hourly_cap: int = 20
    agent_hourly_cap: int = 20
    """How much one agent may do and undo within an hour without a person's approval."""
    hiding: HidingLimits = field(default_factory=HidingLimits)
    zone: tzinfo = UTC
    """The time zone of the owner's day."""

    def least_confidence(self, action_type: str) -> float:
        """The confidence under which this action needs approval."""
        return self.trash_confidence if action_type == "trash" else self.confidence

    def hiding_caps(self, now: datetime) -> HidingCaps:
        """The caps on hiding that hold now."""
        return HidingCaps(self.hiding, day_began(now, self.zone))


@dataclass(frozen=True, slots=True)
class Protected:
    """The senders, domains and labels whose mail is never touched.

    Senders and domains are canonical; labels are casefolded names or ids. `label_ids` maps the ids of protected labels
    in one account to their names.
    """

    senders: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    label_ids: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def names_labels(self) -> bool:
        """Whether any label is protected, so that the labels of a message matter."""
        return bool(self.labels or self.label_ids)

    def reason(self, sender: str, labels: frozenset[str]) -> str | None:
        sender = canonical(sender) or sender.lower()
        if sender in self.senders:
            return "the sender is protected"
        domain = sender.rpartition("@")[2]
        if any(domain == each or domain.endswith(f".{each}") for each in self.domains):
            return "the sender's domain is protected"
        held = {label.casefold() for label in labels} & self.labels
        held |= {name for id, name in self.label_ids.items() if id in labels}
        return f"the label {sorted(held)[0]!r} is protected" if held else None


@dataclass(frozen=True, slots=True)
class Proposed:
    """An action that a rule, the model, an agent or the user proposes."""

    action_type: RecordedType
    parameters: Mapping[str, Any]
    confidence: float
    source: Source
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class SafetyFacts:
    """The facts about a message and the past hour that safety looks at. `labels` are ids and names.

    `no_answer` is why the message may not be answered; `answers_elsewhere` says that an answer would go to an address
    other than the sender's.
    """

    sender: str
    labels: frozenset[str]
    protected: Protected = Protected()
    irreversible_this_hour: int = 0
    no_answer: str | None = None
    answers_elsewhere: bool = False
    new_label: str | None = None
    """Why the label to apply counts as new; None when it exists, or when no label is applied."""
    agent_actions_this_hour: int = 0
    hides: bool = False
    """Whether the action would take the message out of sight."""
    kept_in_sight: str | None = None
    """Why only people hide the message; None if it may be hidden, or if this action does not hide it."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict on a proposed action, and the reasons for it."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    hides: bool = False
    """Whether a model or an agent would hide the message by itself: that is counted against the caps."""

    def as_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "reasons": list(self.reasons)}


def safety_ruling(proposed: Proposed, facts: SafetyFacts, policy: Policy) -> Ruling:
    """Decide whether a proposed action is done, waits for approval, or is refused. The only place that does."""
    steps = steps_of(proposed.action_type, proposed.parameters)
    parts = [replace(proposed, action_type=step.action_type, parameters=step.parameters) for step in steps]
    rulings = [_step_ruling(part, facts, policy) for part in parts]
    strictest: Verdict = next(each for each in STRICTNESS if any(ruling.verdict == each for ruling in rulings))
    reasons = [reason for ruling in rulings if ruling.verdict == strictest for reason in ruling.reasons]
    is_counted = strictest == "allow" and facts.hides
    return Ruling(strictest, tuple(dict.fromkeys(reasons)), is_counted)


def is_of_people(proposed: Proposed) -> bool:
    """Whether the user, or a rule of the user, proposes it."""
    return proposed.source in ("rule", "user")


def _step_ruling(proposed: Proposed, facts: SafetyFacts, policy: Policy) -> Ruling:
    if refused := _refusals(proposed, facts):
        return Ruling("refuse", refused)
    if proposed.source == "user":
        return Ruling("allow", ("requested by the user",))
    doubts = _doubts(proposed, facts, policy)
    return Ruling("approve", doubts) if doubts else Ruling("allow")


def why_agent_may_not_undo(
    agent: str, actor: str, asked_by: str | None, approved_by: str | None, policy: Policy
) -> str | None:
    """Why this agent may not undo the action; None when it may. Only people undo actions that they approved."""
    if actor == "user":
        return "the user requested this action; only people may undo it"
    if policy.trust_agents:
        return None
    if asked_by != agent:
        return "this agent did not propose the action; agents undo their own unless safety.trust_agents is set"
    if approved_by is not None:
        return "a person approved this action; people may undo it, or agents if safety.trust_agents is set"
    return None


def _refusals(proposed: Proposed, facts: SafetyFacts) -> tuple[str, ...]:
    found: list[str] = []
    if (reason := facts.protected.reason(facts.sender, facts.labels)) is not None:
        found.append(reason)
    if proposed.action_type == "forward" and not is_of_people(proposed):
        found.append("mail is forwarded only to addresses in the user's own rules")
    if not is_of_people(proposed) and (proposed.parameters.keys() & {"cc", "attachments"}):
        found.append("copies and files are sent only by the user's own rules")
    if proposed.action_type == "auto_reply" and facts.no_answer is not None:
        found.append(facts.no_answer)
    if facts.kept_in_sight is not None and not is_of_people(proposed):
        found.append(facts.kept_in_sight)
    return tuple(found)


def _doubts(proposed: Proposed, facts: SafetyFacts, policy: Policy) -> tuple[str, ...]:
    action, doubts = proposed.action_type, list[str]()
    trusted = policy.trust_rules and proposed.source == "rule" and action in SENDING
    if action in IRREVERSIBLE and not trusted:
        doubts.append(f"{action} cannot be undone")
    if action == "auto_reply" and facts.answers_elsewhere:
        doubts.append("the reply would go to an address other than the sender's")
    least = policy.least_confidence(action)
    if proposed.confidence < least:
        doubts.append(f"the confidence of {proposed.confidence:.2f} is under {least:.2f}")
    if proposed.needs_approval:
        doubts.append(f"the {proposed.source} asks for approval")
    if action in policy.always_approve:
        doubts.append(f"{action} is on the list of actions that need approval")
    if proposed.source == "agent" and not policy.trust_agents:
        doubts.append("agents propose, people approve")
    if proposed.source == "agent" and facts.new_label is not None:
        doubts.append(facts.new_label)
    if proposed.source == "agent" and facts.agent_actions_this_hour >= policy.agent_hourly_cap:
        doubts.append(f"this agent has done {policy.agent_hourly_cap} things within the hour, which is the cap")
    if action in IRREVERSIBLE and facts.irreversible_this_hour >= policy.hourly_cap:
        doubts.append(f"{policy.hourly_cap} irreversible actions were begun within the hour, which is the cap")
    return tuple(doubts)
