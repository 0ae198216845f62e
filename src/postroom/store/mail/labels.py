"""The labels of a mailbox as they were last seen there. A description by the user survives every sync."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.mailbox import MailboxLabel
from postroom.core.mail.providers import facts_of
from postroom.core.rules.rule import labels_used
from postroom.store.actions.protection import resolve_protected
from postroom.store.engine.codecs import as_time, as_uuid, from_json, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing

LONGEST_DESCRIPTION = 1_000


@dataclass(frozen=True, slots=True)
class LabelView:
    """A label, with the user's description."""

    provider_label_id: str
    name: str
    kind: str
    description: str
    available_to_classifier: bool


@dataclass(frozen=True, slots=True)
class AccountLabel:
    """A label with its account."""

    account_id: UUID
    account: str
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


def seen(labels: Iterable[MailboxLabel]) -> list[SeenLabel]:
    """The labels of a mailbox in stored form."""
    return [SeenLabel(each.id, each.name, "system" if each.is_system else "user") for each in labels]


class LabelsSynced(NamedTuple):
    """The result of a sync: how many labels there are, which names are gone, and which rules were disabled."""

    seen: int
    gone: tuple[str, ...]
    disabled: tuple[UUID, ...]


@query
def list_labels(account_id: UUID) -> Script[list[LabelView]]:
    rows = yield sql("select_labels", account_id)
    return read_rows(LabelView, rows)


@query
def list_all_labels() -> Script[list[AccountLabel]]:
    """The labels of every account, by name."""
    return read_rows(AccountLabel, (yield sql("select_all_labels")))


@transaction
def edit_labels(
    labels: Sequence[AccountLabel], description: str | None, available: bool | None, signed: Signature, now: datetime
) -> Script[list[AccountLabel]]:
    """Set what labels are for, and whether the classifier may use them; None changes nothing."""
    if description is not None and (len(description) > LONGEST_DESCRIPTION or "\0" in description):
        raise BadInput("description", "is too long", f"give up to {LONGEST_DESCRIPTION:,} characters")
    stored = {(each.account_id, each.provider_label_id): each for each in (yield from list_all_labels.script())}
    before: list[AccountLabel] = []
    for label in labels:
        found = stored.get((label.account_id, label.provider_label_id))
        if found is None:
            raise NotFound(f"the label {label.name!r} is gone; see `postroom labels list`")
        before.append(found)
        text = found.description if description is None else description
        usable = found.available_to_classifier if available is None else available
        yield sql("update_label", found.account_id, found.provider_label_id, text, usable, now)
    after = {"description": description, "available_to_classifier": available}
    entry = signed.under(
        "labels.edit",
        "label",
        before[0].name if before else "",
        before={"labels": [_description_of(each) for each in before]},
        after={name: value for name, value in after.items() if value is not None},
    )
    yield from auditing(entry, now)
    kept = {(each.account_id, each.provider_label_id): each for each in (yield from list_all_labels.script())}
    return [kept[each.account_id, each.provider_label_id] for each in before]


def _description_of(label: AccountLabel) -> dict[str, object]:
    return {
        "account": str(label.account_id),
        "description": label.description,
        "available_to_classifier": label.available_to_classifier,
    }


@transaction
def sync_labels(
    account_id: UUID, seen: Sequence[SeenLabel], now: datetime, asked_at: datetime | None = None
) -> Script[LabelsSynced]:
    """Store the labels of the mailbox. A label that is gone disables the rules that use it, with the reason; a renamed
    one is gone under its old name, and rules that use its id go on.

    `asked_at` is when the mailbox was asked: labels seen since then are not gone. Every mailbox has labels, so an empty
    answer is a fault and changes nothing.
    """
    if not seen:
        return LabelsSynced(0, (), ())
    rows = yield sql("select_labels_seen", account_id)
    present = {label.provider_label_id: label.name for label in seen}
    known = {id: name for id, name, at in rows if id in present or asked_at is None or as_time(at) <= asked_at}
    gone = {id: name for id, name in known.items() if id not in present}
    yield sql("upsert_labels", account_id, rows_text([tuple(label) for label in seen]), now)
    yield sql("delete_lost_labels", account_id, sorted(_words(present.items())))
    yield from resolve_protected(account_id, [(label.provider_label_id, label.name) for label in seen])
    if gone:
        yield sql("delete_labels", account_id, sorted(gone))
    others = {id: name for id, name, _ in rows if id not in known}
    ((provider,),) = yield sql("select_provider", account_id)
    lost_here = _lost_labels(known, others | present, facts_of(provider).owner)
    disabled: list[UUID] = []
    if lost_here:
        yield sql("upsert_lost_labels", account_id, rows_text(sorted(lost_here.items())), now)
        left = _words((yield sql("select_label_words")))
        lost_everywhere = {word: why for word, why in lost_here.items() if word not in left}
        disabled = yield from _disable_rules(account_id, lost_here, lost_everywhere, now)
    return LabelsSynced(len(seen), tuple(sorted(gone.values())), tuple(disabled))


@transaction
def keep_label(account_id: UUID, label: SeenLabel, now: datetime) -> Script[None]:
    """Store a label that we have just created."""
    yield sql("upsert_labels", account_id, rows_text([tuple(label)]), now)
    yield sql("delete_lost_labels", account_id, sorted(_words([label[:2]])))


@query
def why_not_created(account_id: UUID, name: str, asked_at: datetime | None) -> Script[str | None]:
    """Why not to create a label of this name: the user had one, and it was deleted or renamed after somebody asked for
    it. None if it may be created. `asked_at` is when a person last asked for it.
    """
    for reason, lost_at in (yield sql("select_lost_label", account_id, sorted({name, name.casefold()}))):
        if asked_at is None or as_time(lost_at) >= asked_at:
            return reason
    return None


def _lost_labels(known: Mapping[str, str], present: Mapping[str, str], mailbox: str) -> dict[str, str]:
    """The ids and names that no longer stand for a label of the account, each with what became of the label."""
    here = _words(present.items())
    lost: dict[str, str] = {}
    for id, name in known.items():
        why = f"was renamed to {present[id]!r} in {mailbox}" if id in present else f"was deleted from {mailbox}"
        lost |= {word: why for word in _words([(id, name)]) if word not in here}
    return lost


def _words(labels: Iterable[Sequence[Any]]) -> set[str]:
    """How rules may refer to these labels: by exact id, or by name in any case."""
    return {word for id, name in labels for word in (id, name.casefold())}


def _disable_rules(
    account_id: UUID, lost_here: Mapping[str, str], lost_everywhere: Mapping[str, str], now: datetime
) -> Script[list[UUID]]:
    """Disable rules. Rules of this account need a label of this account; those for several accounts, a label of any."""
    disabled: list[UUID] = []
    for rule in (yield sql("select_enabled_rules")).by_name():
        id, is_for_one = as_uuid(rule["id"]), rule["scope"] == "account"
        if is_for_one and rule["scope_ref"] != str(account_id):
            continue
        lost = lost_here if is_for_one else lost_everywhere
        for label in sorted(labels_used(from_json(rule["conditions_json"]), from_json(rule["parameters_json"]))):
            if why := lost.get(label) or lost.get(label.casefold()):
                yield sql("disable_rule", id, f"Label {label!r} {why}", False, now)
                disabled.append(id)
                break
    return disabled
