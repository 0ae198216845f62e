"""Changes the user made in the mailbox: labels added or removed, messages deleted. Decisions are judged by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.mail.accounts import provider_of
from postroom.core.mail.providers import facts_of
from postroom.core.rules.agreement import OwnerLabelChange
from postroom.store.actions import decisions
from postroom.store.engine.codecs import as_uuid, from_json, json_text
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.mail.unknown_labels import noticing_labels
from postroom.store.rules.outcomes import learning_from


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one message in the mailbox's history; the changes of a message come in order."""

    message_id: str
    labels_added: frozenset[str] = frozenset()
    labels_removed: frozenset[str] = frozenset()
    deleted: bool = False


@transaction
def apply_changes(endpoint_identity: str, changes: Sequence[Change], now: datetime) -> Script[int]:
    """Update stored messages; return how many changed. Unknown messages are skipped.

    Safe to repeat: a label that is on is not added again. With some providers a message may come back after it was
    deleted, with the same id. One whose labels change is there.
    """
    may_return = facts_of(provider_of(endpoint_identity)).messages_return
    rows = yield sql("select_messages_of", endpoint_identity, sorted({each.message_id for each in changes}))
    moves: dict[UUID, OwnerLabelChange] = {}
    for id, provider_id, labels_json, deleted_at, account_id in rows:
        before = frozenset[str](from_json(labels_json))
        after, deleted = before, deleted_at is not None
        for each in changes:
            if each.message_id == provider_id:
                after = (after | each.labels_added) - each.labels_removed
                deleted = each.deleted or (deleted and not may_return)
        if after != before:
            yield sql("update_message_labels", as_uuid(id), json_text(sorted(after)), now)
            yield from noticing_labels(as_uuid(account_id), after - before, now)
        if deleted and deleted_at is None:
            yield sql("mark_message_deleted", as_uuid(id), now)
        if deleted_at is not None and not deleted:
            yield sql("mark_message_returned", as_uuid(id), now)
        moved = OwnerLabelChange(after - before, before - after, deleted and deleted_at is None)
        if moved != OwnerLabelChange():
            moves[as_uuid(id)] = moved
    if moves:
        yield from learning_from(moves, now)
        yield Notify(decisions.CHANNEL, "changed")
    return len(moves)
