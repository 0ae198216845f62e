"""How the action of a mail ends with it: part of every transaction that ends a delivery."""

from datetime import datetime
from uuid import UUID

from postroom.core.actions.undo import irreversible_hint
from postroom.store.actions import locking
from postroom.store.decisions import CHANNEL as DECISIONS
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Notify, Script, sql

CHANNEL = "outbound"


def completing(action_id: UUID, sent_message_id: str | None, now: datetime) -> Script[None]:
    """Part of a transaction. An action that somebody has ended meanwhile stays as it is: the mail is out all the same,
    and says so itself."""
    action = yield from locking(action_id)
    if action is not None:
        yield sql("note_on_action", action_id, None, now)
        hint = irreversible_hint(action.action_type, sent_message_id=sent_message_id)
        yield sql("complete_action", action_id, json_text(hint), now)
    yield Notify(CHANNEL, "delivered")
    yield Notify(DECISIONS, "completed")


def canceling(action_id: UUID, reason: str, now: datetime) -> Script[None]:
    """Part of a transaction: the action ends as canceled, unless it has ended before."""
    yield sql("cancel_action", action_id, reason, now)
    yield Notify(CHANNEL, "canceled")
    yield Notify(DECISIONS, "canceled")
