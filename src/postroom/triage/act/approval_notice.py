"""The notice that a person answers: what is to be done, who receives it, why, and until when it waits.

Sender, subject and a model's rationale come from outside: they are cut to size, and cannot start a new line, reverse
the reading direction or hide anything.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from postroom.core.actions.action import Actor
from postroom.core.actions.parameters import copies_of, recipients_of
from postroom.core.actions.steps import Step, sending_step
from postroom.core.counted import counted
from postroom.core.short_ids import SHOWN
from postroom.core.views import Internal, Untrusted
from postroom.store.actions.approvals import Approval, WaitingCount
from postroom.words.actions import in_brief

LONGEST_LINE = 200
LONGEST_TEXT = 700
# What fits into a chat message; anything longer has to be approved elsewhere.
MOST_RECIPIENTS = 10
MOST_GROUPS = 5
LONGEST_ADDRESS = 80
# Control characters, invisible formatting (which can reverse the reading direction), surrogates, private characters.
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """The notice as plain lines. `content` is what would be sent, or a note that goes with it.

    `is_whole` says that everything that would be done is shown here: if false, nobody can approve by this notice alone.
    The reasons for the decision may be cut all the same.
    """

    what: Untrusted[str]
    to_whom: Untrusted[tuple[str, ...]]
    sender: Internal[str]
    subject: Internal[str]
    content: Internal[str | None]
    decided_by: Untrusted[str]
    why: Untrusted[tuple[str, ...]]
    expires_at: Internal[datetime | None]
    answer: Internal[str | None]
    is_whole: bool


def notice_of(approval: Approval) -> ApprovalNotice:
    why = [one_line(approval.rationale)] if approval.rationale else []
    what, to_whom = what_is_done(approval), whom_it_reaches(approval)
    sender, subject = one_line(approval.sender), one_line(approval.subject) or "(no subject)"
    sending = sending_step(approval.action_type, approval.parameters) or Step("archive")
    content = _content(sending.parameters)
    return ApprovalNotice(
        what=what,
        to_whom=to_whom,
        sender=sender,
        subject=subject,
        content=several_lines(content) if content else None,
        decided_by=_decided_by(approval),
        why=(*why, *(one_line(each) for each in approval.reasons)),
        expires_at=approval.expires_at,
        answer=_answer(approval),
        is_whole=not sending.parameters.get("html")
        and not sending.parameters.get("attachments")
        and len(content) <= LONGEST_TEXT
        and all(len(line) <= LONGEST_LINE for line in (what, sender, subject))
        and len(to_whom) <= MOST_RECIPIENTS
        and all(len(each) <= LONGEST_ADDRESS for each in to_whom),
    )


def whole_content(approval: Approval, longest: int) -> str:
    """Return what would be sent, line by line, or the note that goes with it; empty if nothing is sent."""
    sending = sending_step(approval.action_type, approval.parameters)
    return several_lines(_content(sending.parameters), longest) if sending is not None else ""


def what_is_done(approval: Approval) -> str:
    """Describe the action on one line, without its recipients; never cut, since people approve what they read."""
    return " ".join(_visible(in_brief(approval.action_type, approval.parameters)).split())


def whom_it_reaches(approval: Approval) -> tuple[str, ...]:
    """Return every address that would receive mail."""
    sending = sending_step(approval.action_type, approval.parameters)
    if sending is None:
        return ()
    to = recipients_of(sending.parameters) if sending.action_type == "forward" else (approval.answer_to,)
    return tuple(map(one_line, (*to, *copies_of(sending.parameters))))


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return the text on one line, with nothing hidden in it, cut to size."""
    return _cut(" ".join(_visible(text).split()), longest)


def several_lines(text: str, longest: int = LONGEST_TEXT) -> str:
    """Do the same, line by line."""
    lines = (" ".join(_visible(line).split()) for line in text[: 4 * longest].splitlines())
    return _cut("\n".join(lines).strip(), longest, whole=len(text))


def _visible(text: str) -> str:
    return "".join(" " if unicodedata.category(each) in _HIDING else each for each in text)


def _cut(text: str, longest: int, whole: int = 0) -> str:
    if len(text) <= longest:
        return text
    more = max(whole, len(text)) - longest
    return f"{text[:longest]}… ({more} more characters)"


def _content(parameters: Any) -> str:
    """Return what would be sent, uncut."""
    parts = [f"Subject: {parameters['subject']}"] if parameters.get("subject") else []
    parts += [str(parameters[name]) for name in ("text", "note") if parameters.get(name)]
    if parameters.get("html"):
        parts.append("(and a separate HTML version)")
    parts += [f"(with the file {each['filename']})" for each in parameters.get("attachments") or ()]
    return "\n".join(parts)


def _decided_by(approval: Approval) -> str:
    match approval.actor:
        case "rule":
            return f"the rule {one_line(approval.rule_name or '?')!r}"
        case "model":
            name = one_line(approval.model or "the model")
            return name if approval.confidence is None else f"{name}, {approval.confidence:.0%} sure"
        case "agent":
            return _agent(approval.agent, approval.asked_by)
        case "user" | "undo":
            return one_line(approval.asked_by or approval.actor)
        case _:
            assert_never(approval.actor)


def _answer(approval: Approval) -> str | None:
    """Describe the answer; None while the action waits."""
    match approval.state:
        case "approved_pending":
            return None
        case "expired" | "rejected" | "canceled" if approval.approved_by is None:
            return one_line(f"{approval.state}: {approval.error}" if approval.error else approval.state)
        case _:
            return one_line(f"approved by {approval.approved_by or 'nobody, as none was needed'}")


def _agent(name: str | None, asked_by: str | None) -> str:
    if name:
        return f"the agent {one_line(name)!r}"
    _, _, token = (asked_by or "").partition(":")
    return f"an agent without a name (token {one_line(token[-SHOWN:])})" if token else "an agent"


def cause_of(actor: Actor, agent: str | None) -> str:
    """Say who asked for actions, where many are counted together. `agent` is the name of an agent's token."""
    match actor:
        case "rule":
            return "rules"
        case "model":
            return "the model"
        case "user":
            return "you"
        case "undo":
            return "an undo"
        case "agent":
            return f"the agent {one_line(agent)!r}" if agent else "an agent without a name"
        case _:
            assert_never(actor)


def digest_of(waiting: Sequence[WaitingCount]) -> str:
    """Count the actions that wait without a notice of their own. Nothing in the text comes from mail."""
    groups = ", ".join(_group(each) for each in waiting[:MOST_GROUPS])
    more = sum(each.number for each in waiting[MOST_GROUPS:])
    total = sum(each.number for each in waiting)
    what = "action waits" if total == 1 else "actions wait"
    others = f", {more} others" if more else ""
    return f"{total} more {what} for your answer ({groups}{others}). `postroom approvals list` shows them."


def _group(waiting: WaitingCount) -> str:
    cause = cause_of(waiting.actor, waiting.agent)
    return f"{waiting.number} {waiting.action_type} by {cause}, mail of {counted(waiting.senders, 'sender')}"
