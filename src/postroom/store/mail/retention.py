"""Retention: removes the content of mail that is past its time, and remembers what was removed under which settings.

The row of a message stays with its ids, sender, date and labels, so that it is recognised when it comes again, and so
that its actions can still be undone. Its headers, subject, text and search words go, its envelope too, and what a model
or an agent wrote about it. A message with something open is held: an action, an approval, an outgoing mail, a decision
still to be made, or a snooze.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import Refused
from postroom.core.mail.mail_head import MailHead
from postroom.core.queue.envelope import IngestionTier
from postroom.store.engine.codecs import as_time, as_uuid, from_json, json_text
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing

RUNS_KEPT = timedelta(days=400)
NO_CATEGORY = "none"


@dataclass(frozen=True, slots=True)
class KeptMessage(MailHead):
    """A message whose content is kept, as far as needed to know how long."""

    id: UUID
    ingestion_tier: IngestionTier
    headers: tuple[tuple[str, str], ...]
    stored_at: datetime
    account_email: str
    endpoint_identity: str
    text_start: str
    stored_categories: tuple[str, ...]
    """Those it was stored with; none for mail from before they were stored."""


class ExpiredMessage(NamedTuple):
    """A message that is past its time."""

    id: UUID
    tier: IngestionTier
    categories: tuple[str, ...]


class PruneCounts(NamedTuple):
    """How many messages were pruned, or would be, by tier and by category; and how many are held for now."""

    messages: int = 0
    held: int = 0
    tiers: Mapping[str, int] = {}
    categories: Mapping[str, int] = {}

    def plus(self, other: "PruneCounts") -> "PruneCounts":
        return PruneCounts(
            self.messages + other.messages,
            self.held + other.held,
            Counter(self.tiers) + Counter(other.tiers),
            Counter(self.categories) + Counter(other.categories),
        )

    def as_json(self) -> dict[str, Any]:
        return {"tiers": dict(sorted(self.tiers.items())), "categories": dict(sorted(self.categories.items()))}


@dataclass(frozen=True, slots=True)
class RetentionRun:
    """A dry run, or a pruning. `counts` are by tier and by category."""

    id: UUID
    is_dry: bool
    policy: Mapping[str, Any]
    messages: int
    held: int
    counts: Mapping[str, Any]
    ran_by: str
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class RetentionApproval:
    """The settings under which mail is pruned every day, and who approved them."""

    policy: Mapping[str, Any]
    approved_by: str
    approved_at: datetime


@query
def kept_messages(before: datetime, after: Cursor, most: int) -> Script[list[KeptMessage]]:
    """Messages whose content is kept and that were stored before then, oldest first, after a position."""
    return read_rows(KeptMessage, (yield sql("select_kept_page", before, after.at, after.id, most)))


@query
def held_messages(ids: Sequence[UUID], now: datetime) -> Script[set[UUID]]:
    """Those of these messages that must not be pruned yet."""
    if not ids:
        return set()
    held = {as_uuid(id) for (id,) in (yield sql("select_busy", list(ids)))}
    snoozes = yield sql("select_snoozed", list(ids))
    return held | {as_uuid(id) for id, until in snoozes if as_time(until) > now}


@transaction
def prune_messages(
    past: Sequence[ExpiredMessage], signed: Signature, now: datetime, approved: Mapping[str, Any] | None = None
) -> Script[PruneCounts]:
    """Remove the content of these messages, except of those that are held or pruned already; audited with counts.

    With `approved`, raises Refused unless these settings are the approved ones.
    """
    if approved is not None:
        found = yield from retention_approval.script()
        if found is None or found.policy != approved:
            raise Refused("the retention settings are not approved any more; see `postroom retention show`")
    rows = yield sql("lock_kept", [each.id for each in past])
    kept = {as_uuid(row["id"]): row for row in rows.by_name()}
    held = yield from held_messages.script(list(kept), now)
    pruned = [each for each in past if each.id in kept and each.id not in held]
    counts = count_messages(pruned, len(held))
    if pruned:
        ids = [each.id for each in pruned]
        yield sql("prune_messages", ids, now)
        yield sql("prune_reasons", ids)
        yield sql("prune_threads", sorted({as_uuid(kept[id]["thread_id"]) for id in ids}))
        found = yield sql("select_envelopes_of", [as_uuid(kept[id]["inbox_id"]) for id in ids])
        yield sql("delete_inbox", [seq for (seq,) in found])
        after = {"messages": counts.messages, "held": counts.held, **counts.as_json()}
        yield from auditing(signed.under("retention.prune", "messages", str(signed.entry_id), after=after), now)
    return counts


@transaction
def merge_words(pages: int) -> Script[bool]:
    """Merge parts of the search index, so that no words of pruned mail are left in it; return whether more is to be
    done. A run begins with a negative number of pages, and continues with positive ones.
    """
    before = (yield sql("count_changes"))[0][0]
    yield sql("merge_words", pages)
    return (yield sql("count_changes"))[0][0] - before >= 2


def count_messages(past: Sequence[ExpiredMessage], held: int = 0) -> PruneCounts:
    categories = Counter(name for each in past for name in each.categories or (NO_CATEGORY,))
    return PruneCounts(len(past), held, Counter(each.tier for each in past), categories)


@transaction
def record_run(run: RetentionRun) -> Script[None]:
    """Store what a run did; forget runs of long ago."""
    yield sql("prune_retention_runs", run.ended_at - RUNS_KEPT)
    yield fill("insert_retention_run", run)


@query
def list_runs(most: int) -> Script[list[RetentionRun]]:
    """The newest runs first."""
    rows = yield sql("select_retention_runs", most)
    return read_rows(RetentionRun, rows)


@query
def retention_approval() -> Script[RetentionApproval | None]:
    """The approved settings; None if nothing is pruned automatically."""
    return read_first(RetentionApproval, (yield sql("select_retention_approval")))


@transaction
def approve_retention(policy: Mapping[str, Any], signed: Signature, now: datetime) -> Script[None]:
    """Prune every day under these settings, and no others."""
    before = yield sql("delete_retention_approval")
    yield sql("insert_retention_approval", json_text(policy), signed.actor, now)
    entry = signed.under("retention.enable", "settings", "retention", before=_policy(before), after=dict(policy))
    yield from auditing(entry, now)


@transaction
def withdraw_retention(signed: Signature, now: datetime) -> Script[bool]:
    """Prune nothing automatically any more. False if nothing was."""
    before = yield sql("delete_retention_approval")
    if before:
        entry = signed.under("retention.disable", "settings", "retention", before=_policy(before))
        yield from auditing(entry, now)
    return bool(before)


def _policy(rows: Any) -> Mapping[str, Any] | None:
    return from_json(rows[0][0]) if rows else None
