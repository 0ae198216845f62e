"""An action that waits for approval, for tests of how it is shown."""

from datetime import UTC, datetime
from uuid import UUID

from postroom.store.actions.approvals import Approval
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.ids import new_id

WAITING = Approval(
    id=new_id(),
    account_id=new_id(),
    account="me@example.com",
    message_id=new_id(),
    actor="model",
    asked_by=None,
    agent=None,
    action_type="forward",
    parameters={"to": ["a@example.com", "b@example.com"], "note": "look"},
    state="approved_pending",
    action_hash="0f" * 32,
    rationale="it is about money",
    reasons=("forward cannot be undone",),
    error=None,
    approved_by=None,
    expires_at=datetime(2026, 11, 16, 8, tzinfo=UTC),
    created_at=datetime(2026, 11, 15, 8, tzinfo=UTC),
    sender="shop@store.example",
    subject="Your bill",
    answer_to="help@store.example",
    rule_name=None,
    confidence=0.55,
    model="small",
)


@transaction
def tamper(change: str, id: UUID) -> Script[None]:
    """What somebody with access to the database could do."""
    yield Text(f"UPDATE actions SET {change} WHERE id = '{id}'")
