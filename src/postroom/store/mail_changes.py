"""What the user did in the mailbox itself: labels put on or taken off, messages deleted. Decisions are judged by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.rules.agreement import OwnerLabelChange
from postroom.store import decisions
from postroom.store.engine.codecs import as_uuid, from_json, json_text
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.outcomes import learning_from
from postroom.store.unknown_labels import noticing_labels


@dataclass(frozen=True, slots=True)
class Change:
    """One message as the mailbox's history tells of it; the changes of a message come in their order."""

    message_id: str
    labels_added: frozenset[str] = frozenset()
    labels_removed: frozenset[str] = frozenset()
    deleted: bool = False


@transaction
def apply_changes(endpoint_identity: str, changes: Sequence[Change], now: datetime) -> Script[int]:
    """Brings stored messages up to date; returns how many changed. Messages we do not have are none of ours.

    To be told twice does no harm: what is on already is not put on again.
    """
    rows = yield sql("select_messages_of", endpoint_identity, sorted({each.message_id for each in changes}))
    moves: dict[UUID, OwnerLabelChange] = {}
    for id, provider_id, labels_json, deleted_at, account_id in rows:
        before = frozenset[str](from_json(labels_json))
        after, deleted = before, deleted_at is not None
        for each in changes:
            if each.message_id == provider_id:
                after = (after | each.labels_added) - each.labels_removed
                deleted = deleted or each.deleted
        if after != before:
            yield sql("update_message_labels", as_uuid(id), json_text(sorted(after)), now)
            yield from noticing_labels(as_uuid(account_id), after - before, now)
        if deleted and deleted_at is None:
            yield sql("mark_message_deleted", as_uuid(id), now)
        moved = OwnerLabelChange(after - before, before - after, deleted and deleted_at is None)
        if moved != OwnerLabelChange():
            moves[as_uuid(id)] = moved
    if moves:
        yield from learning_from(moves, now)
        yield Notify(decisions.CHANNEL, "changed")
    return len(moves)
