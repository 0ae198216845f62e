"""The labels of a mailbox as they were last seen there. What the user wrote about one survives every sync."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.rules import labels_used
from postroom.store.codecs import as_uuid, from_json, rows_text
from postroom.store.database import Script, query, sql, transaction


@dataclass(frozen=True, slots=True)
class LabelView:
    """A label, with what the user says of it."""

    provider_label_id: str
    name: str
    kind: str
    description: str
    available_to_classifier: bool


class SeenLabel(NamedTuple):
    """A label as the mailbox shows it; its kind is `system` or `user`."""

    provider_label_id: str
    name: str
    kind: str


class LabelsSynced(NamedTuple):
    """What a sync found: how many there are, which names are gone, and the rules that were disabled for it."""

    seen: int
    gone: tuple[str, ...]
    disabled: tuple[UUID, ...]


@query
def list_labels(account_id: UUID) -> Script[list[LabelView]]:
    rows = yield sql("select_labels", account_id)
    return [LabelView(id, name, kind, text, bool(available)) for id, name, kind, text, available in rows]


@transaction
def sync_labels(account_id: UUID, seen: Sequence[SeenLabel], now: datetime) -> Script[LabelsSynced]:
    """Takes over what the mailbox has. A label that is gone disables the rules that use it, with the reason."""
    known = yield sql("select_labels", account_id)
    present = {label.provider_label_id for label in seen}
    gone = {id: name for id, name, *_ in known if id not in present}
    names = {label.name for label in seen}
    if seen:
        yield sql("upsert_labels", account_id, rows_text([tuple(label) for label in seen]), now)
    disabled: list[UUID] = []
    if gone:
        yield sql("delete_labels", account_id, sorted(gone))
        elsewhere = {name for (name,) in (yield sql("select_label_names"))}
        lost = {each for pair in gone.items() for each in pair} - names - elsewhere
        disabled = yield from _disable_rules(account_id, lost, now)
    return LabelsSynced(len(seen), tuple(sorted(gone.values())), tuple(disabled))


def _disable_rules(account_id: UUID, lost: set[str], now: datetime) -> Script[list[UUID]]:
    """Those of this account, and those of all when no account has the label any more."""
    disabled: list[UUID] = []
    for row in (yield sql("select_enabled_rules")):
        id, _, scope, scope_ref, _, conditions, _, parameters, *_ = row
        used = labels_used(from_json(conditions), from_json(parameters)) & lost
        if used and (scope != "account" or scope_ref == str(account_id)):
            yield sql("disable_rule", as_uuid(id), f"the label {sorted(used)[0]!r} was deleted in Gmail", False, now)
            disabled.append(as_uuid(id))
    return disabled
