"""Mail as it arrived and what became of it, read as the pages read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.lifecycle import ActionState, InboxState
from postroom.core.rules.rule import DecisionSource
from postroom.store.engine.database import Database
from postroom.store.mail.mail_lists import ListedEvent, list_arrived
from postroom.store.mail.mail_views import MailRow


@dataclass(frozen=True, slots=True)
class ArrivedMail:
    """A message, from acceptance to action. `state` is that of a message which is not stored."""

    id: UUID
    accepted_at: datetime
    tier: str
    sender: str
    subject: str
    state: InboxState = "done"
    reason: str | None = None
    action_type: DecidedType | None = None
    """The action that was decided on."""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: DecisionSource | None = None
    rule_name: str | None = None
    rationale: str | None = None
    action_state: ActionState | None = None
    action_error: str | None = None


async def arrived_mail(database: Database, most: int = 10_000) -> list[ArrivedMail]:
    """The newest mail, newest first."""
    page = await database.run(list_arrived(most, with_events=False))
    return [_stored(each) if isinstance(each, MailRow) else _unstored(each) for each in page.items]


def _stored(each: MailRow) -> ArrivedMail:
    return ArrivedMail(
        each.id,
        each.accepted_at or each.stored_at,
        each.tier,
        each.sender,
        each.subject,
        action_type=each.decided_type,
        parameters=each.decided_parameters or {},
        source=each.source,
        rule_name=each.rule_name,
        rationale=each.rationale,
        action_state=each.action_state,
        action_error=each.action_error,
    )


def _unstored(each: ListedEvent) -> ArrivedMail:
    return ArrivedMail(each.id, each.at, each.tier, each.sender, each.subject or "", each.state, each.reason)
