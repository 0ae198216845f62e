"""The context of a decision about a message, read in one snapshot."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.store.actions.protection import Restraints, restraints
from postroom.store.engine.database import Script, query
from postroom.store.mail import mail
from postroom.store.mail.mail import LastDecision, StoredMessage
from postroom.store.rules.rules import rules_mark


@dataclass(frozen=True, slots=True)
class MessageContext:
    """A message, its current decision, the restraints that safety checks, and the mark of the rules in use."""

    message: StoredMessage
    last: LastDecision | None
    restraints: Restraints
    rules_mark: tuple[object, ...]


@query
def message_context(message_id: UUID, now: datetime) -> Script[MessageContext]:
    """Read the context. Raises NotFound if there is no such message."""
    message = yield from mail.load_message.script(message_id)
    last = yield from mail.last_decision.script(message_id)
    found = yield from restraints.script(message.account_id, now)
    return MessageContext(message, last, found, (yield from rules_mark.script()))
