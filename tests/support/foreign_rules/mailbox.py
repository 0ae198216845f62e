"""The state of a message in a mailbox after rules: the measure by which two sets of rules do the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from uuid import UUID

from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step
from postroom.core.mail.mime import parse_message
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.file_facts import facts_from_file, read_history
from postroom.core.rules.rulebook import Rulebook

NOW = datetime(2026, 11, 17, tzinfo=UTC)
ACCOUNT = UUID(int=1)


@dataclass(frozen=True)
class State:
    """Where a message is, and its marks."""

    labels: frozenset[str] = frozenset()
    in_inbox: bool = True
    in_trash: bool = False
    read: bool = False
    starred: bool = False
    forwarded: frozenset[str] = frozenset()

    def is_part_of(self, whole: "State") -> bool:
        """Whether everything done here is done there, too."""
        return (
            self.labels <= whole.labels
            and self.forwarded <= whole.forwarded
            and (self.in_inbox or not whole.in_inbox)
            and self.in_trash <= whole.in_trash
            and self.read <= whole.read
            and self.starred <= whole.starred
        )


def state_after(steps: Iterable[Step]) -> State:
    """The state that Postroom's actions leave."""
    labels: set[str] = set()
    forwarded: set[str] = set()
    done: set[str] = set()
    for step in steps:
        done.add(step.action_type)
        if step.action_type == "apply_label":
            labels.add(step.parameters["label"])
        elif step.action_type == "forward":
            forwarded.update(recipients_of(step.parameters))
        elif step.action_type not in ("archive", "trash", "mark_read", "star"):
            raise AssertionError(f"no import makes {step.action_type}")
    return State(
        frozenset(labels),
        not done & {"archive", "trash"},
        "trash" in done,
        "mark_read" in done,
        "star" in done,
        frozenset(forwarded),
    )


def rulebook_of(drafts: Iterable[RuleDraft]) -> Rulebook:
    return Rulebook(draft.as_rule(UUID(int=number)) for number, draft in enumerate(drafts, 1))


def decided(rules: Rulebook, facts: MessageFacts) -> State:
    """The state after Postroom's rules."""
    assert rules.broken == ()
    return state_after(rules.decide(ACCOUNT, facts, NOW).joined.steps)


def facts_of(message: EmailMessage, own: frozenset[str] = frozenset()) -> MessageFacts:
    raw = message.as_bytes()
    return facts_from_file(parse_message(raw), len(raw), read_history([raw], own, None))
