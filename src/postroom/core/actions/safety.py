"""What automation may do by itself, what waits for a person's yes, and what is never done. Code, not prompt.

Every proposed action comes here, whoever proposed it. Three ends: `allow`, `approve` (it waits for a person, with the
reasons), `refuse` (nothing is done, with the reasons). Reasons are recorded with the decision.

    protected sender or label                      refuse, whoever asks
    forward proposed by other than the user's rule refuse: addresses come from the user alone
    cc, attachments of others than the user's rule refuse: for the same reason
    auto_reply where RFC 3834 forbids it           refuse
    delete, forward, auto_reply                    approve; a rule may be trusted with the latter two by a setting
    auto_reply whose Reply-To is somebody else     approve, also where rules are trusted
    confidence under 0.7, for trash under 0.9      approve
    asked for by the rule or the model itself      approve
    on the user's list                             approve
    proposed by an agent                           approve, unless a setting trusts agents with what can be undone
    an agent's, and this hour's share is used      approve, also where agents are trusted
    a label that does not exist, but for a rule    approve: agents create no labels by themselves
    irreversible, and this hour's share is used    approve

What was done an agent takes back only if it proposed it itself and nobody had to approve it; with the setting that
trusts agents, anything that can be undone and that the user did not ask for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from postroom.core.actions.action import IRREVERSIBLE, SENDING, ActionType
from postroom.core.mail.addresses import canonical

Source = Literal["rule", "model", "agent", "user"]
Verdict = Literal["allow", "approve", "refuse"]
ProtectedKind = Literal["sender", "domain", "label"]
ShadowKind = Literal["category", "model"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user has settled once and for all."""

    confidence: float = 0.7
    trash_confidence: float = 0.9
    always_approve: frozenset[str] = frozenset()
    trust_rules: bool = False
    trust_agents: bool = False
    hourly_cap: int = 20
    agent_hourly_cap: int = 20
    """What one agent may do, and take back, within an hour without a person's yes."""


@dataclass(frozen=True, slots=True)
class Protected:
    """Whose mail, and which labelled mail, is never touched.

    Senders and domains are in the form in which addresses are compared, labels casefolded, by name or id. `label_ids`
    are the ids that protected names stand for in one account, with the names.
    """

    senders: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    label_ids: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def names_labels(self) -> bool:
        """Whether any label is protected, so that labels have to be known."""
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
    """What somebody would like to do with a message."""

    action_type: ActionType
    parameters: Mapping[str, Any]
    confidence: float
    source: Source
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class SafetyFacts:
    """What is known of the message and the hour. `labels` are ids and names.

    `no_answer` says why none may be sent; `answers_elsewhere` that one would go to another address than the sender's.
    """

    sender: str
    labels: frozenset[str]
    protected: Protected = Protected()
    irreversible_this_hour: int = 0
    no_answer: str | None = None
    answers_elsewhere: bool = False
    new_label: str | None = None
    """Why the label that would be applied is a new one; None when it exists, or none would be applied."""
    agent_actions_this_hour: int = 0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a proposed action, and why."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "reasons": list(self.reasons)}


def rule_on(proposed: Proposed, around: SafetyFacts, policy: Policy) -> Ruling:
    """The one place where it is decided whether something is done, waits, or is not done."""
    if refused := _refusals(proposed, around):
        return Ruling("refuse", refused)
    if proposed.source == "user":
        return Ruling("allow", ("asked for by the user",))
    doubts = _doubts(proposed, around, policy)
    return Ruling("approve", doubts) if doubts else Ruling("allow")


def why_no_agent_undoes(
    agent: str, actor: str, asked_by: str | None, approved_by: str | None, policy: Policy
) -> str | None:
    """Why this agent may not take the action back; None when it may. What people have said yes to is theirs."""
    if actor == "user":
        return "the user asked for this action; it is undone by people only"
    if policy.trust_agents:
        return None
    if asked_by != agent:
        return "this agent did not propose the action; agents undo their own unless safety.trust_agents is set"
    if approved_by is not None:
        return "a person approved this action; people undo it, or agents when safety.trust_agents is set"
    return None


def _refusals(proposed: Proposed, around: SafetyFacts) -> tuple[str, ...]:
    found: list[str] = []
    if (reason := around.protected.reason(around.sender, around.labels)) is not None:
        found.append(reason)
    if proposed.action_type == "forward" and proposed.source not in ("rule", "user"):
        found.append("mail is forwarded only to addresses that the user's own rule names")
    if proposed.source not in ("rule", "user") and (proposed.parameters.keys() & {"cc", "attachments"}):
        found.append("copies and files go only where the user's own rule says so")
    if proposed.action_type == "auto_reply" and around.no_answer is not None:
        found.append(around.no_answer)
    return tuple(found)


def _doubts(proposed: Proposed, around: SafetyFacts, policy: Policy) -> tuple[str, ...]:
    action, doubts = proposed.action_type, list[str]()
    trusted = policy.trust_rules and proposed.source == "rule" and action in SENDING
    if action in IRREVERSIBLE and not trusted:
        doubts.append(f"{action} cannot be undone")
    if action == "auto_reply" and around.answers_elsewhere:
        doubts.append("the answer would go to another address than the sender's")
    least = policy.trash_confidence if action == "trash" else policy.confidence
    if proposed.confidence < least:
        doubts.append(f"the confidence of {proposed.confidence:.2f} is under {least:.2f}")
    if proposed.needs_approval:
        doubts.append(f"the {proposed.source} asks for approval")
    if action in policy.always_approve:
        doubts.append(f"{action} is on the list of what needs approval")
    if proposed.source == "agent" and not policy.trust_agents:
        doubts.append("agents propose, people approve")
    if proposed.source == "agent" and around.new_label is not None:
        doubts.append(around.new_label)
    if proposed.source == "agent" and around.agent_actions_this_hour >= policy.agent_hourly_cap:
        doubts.append(f"this agent has done {policy.agent_hourly_cap} things within the hour, which is the cap")
    if action in IRREVERSIBLE and around.irreversible_this_hour >= policy.hourly_cap:
        doubts.append(f"{policy.hourly_cap} irreversible actions were begun within the hour, which is the cap")
    return tuple(doubts)
