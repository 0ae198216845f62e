"""Take back one action, or everything that a rule, a batch or a period did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.act.undo_many import MOST, undo_these
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import BadInput, NotFound
from postroom.core.jobs.types import CATALOGUE
from postroom.manage.accounts import find_account
from postroom.store.actions import FAR_AHEAD
from postroom.store.audit import AuditEntry, Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.rules import list_rules
from postroom.store.undos import LONG_AGO, Undoable, has_decided, undo_candidate, undoable


class Undone(NamedTuple):
    """How much is, or would be, undone."""

    actions: int
    messages: int


@dataclass(frozen=True, slots=True)
class UndoSelection:
    """Everything that matches all given fields. A rule is named as it was when it decided."""

    rule: str | None = None
    batch: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    account: str | None = None


async def undo_action(
    database: Database, id: UUID, signed: Signature, *, dry_run: bool = False, clock: Clock = wall_clock
) -> Undone:
    """Undo one action. Raise NotFound, or BadInput with the reason why it cannot be undone."""
    entry = signed.under("action.undo", "action", str(id))
    return await _undo(database, [await _candidate(database, id)], entry, dry_run, clock)


async def undo_selection(
    database: Database,
    selection: UndoSelection,
    signed: Signature,
    *,
    as_given: Mapping[str, str],
    dry_run: bool = False,
    clock: Clock = wall_clock,
) -> Undone:
    """Undo everything in a selection; `as_given` is the selection in the user's words, for the audit log."""
    chosen = await _selected(database, selection)
    after = {**as_given, "actions": len(chosen), "messages": _messages(chosen)}
    entry = signed.under("actions.undo", "selection", str(signed.entry_id), after=after)
    return await _undo(database, chosen, entry, dry_run, clock)


async def _undo(
    database: Database, chosen: Sequence[Undoable], entry: AuditEntry, dry_run: bool, clock: Clock
) -> Undone:
    if chosen and not dry_run:
        await undo_these(database, CATALOGUE, chosen, clock, entry=entry)
    return Undone(len(chosen), _messages(chosen))


def _messages(chosen: Sequence[Undoable]) -> int:
    return len({(each.account_id, each.message_id) for each in chosen})


async def _candidate(database: Database, id: UUID) -> Undoable:
    found = await database.run(undo_candidate(id))
    if found is None:
        raise NotFound(f"there is no action {id}; `postroom actions list` lists them")
    reason = why_not_undoable(found.action_type, found.state, found.hint)
    if found.undone in ("queued", "executing"):
        reason = "it is being undone"
    elif found.undone == "completed":
        reason = "it is already undone"
    if reason is not None:
        raise BadInput("ACTION", f"cannot be undone: {reason}", "`postroom actions list` lists what can")
    return Undoable(id, found.account_id, found.message_id)


async def _selected(database: Database, selection: UndoSelection) -> list[Undoable]:
    if selection.rule is not None:
        await _check_rule(database, selection.rule)
    account = None if selection.account is None else (await find_account(database, selection.account)).id
    return await database.run(
        undoable(
            MOST,
            rule_name=selection.rule,
            account_id=account,
            batch_id=selection.batch,
            since=selection.since or LONG_AGO,
            until=selection.until or FAR_AHEAD,
        )
    )


async def _check_rule(database: Database, name: str) -> None:
    """Raise NotFound if no rule has this name; a removed rule is still known by its decisions."""
    if any(found.name == name for found in await database.run(list_rules())):
        return
    if not await database.run(has_decided(name)):
        raise NotFound(f"there is no rule {name!r}, and no decision was made by one; `postroom rules list` lists them")
