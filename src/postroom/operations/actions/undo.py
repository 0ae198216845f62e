"""Take back one action, or everything that a rule, a batch or a period did, or that automation has hidden."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.access import STEER
from postroom.core.errors import BadInput, NotFound
from postroom.core.jobs.types import CATALOGUE
from postroom.core.moments import LONG_AGO
from postroom.operations.accounts.accounts import find_account
from postroom.operations.caller import Caller
from postroom.operations.nouns import MAIL
from postroom.operations.operation import Argument, dialogue, flow
from postroom.operations.people.tokens import actors_named
from postroom.store.actions.actions import FAR_AHEAD
from postroom.store.actions.approvals import Approval, show_approval
from postroom.store.actions.hiding import cancel_hiding, count_open_hiding
from postroom.store.actions.undos import RequestedUndo, Undoable, has_decided, undoable
from postroom.store.engine.codecs import time_text
from postroom.store.engine.database import Database
from postroom.store.people.audit import record_audit
from postroom.store.rules.rules import list_rules
from postroom.triage.act.undo_requests import MOST, check_undoable, find_candidate, undo_one, undo_these


class Undone(NamedTuple):
    """How much is, or would be, undone; and how many actions that had not begun are canceled instead."""

    actions: int
    messages: int
    canceled: int = 0


@dataclass(frozen=True, slots=True)
class UndoSelection:
    """Everything that matches all given fields. A rule is named as it was when it decided; `hidden` is what the model
    and agents have hidden without a person's approval.
    """

    rule: Annotated[str | None, Argument("Everything that the rule of this name did.")] = None
    batch: Annotated[UUID | None, Argument("Everything of this batch.")] = None
    hidden: Annotated[bool, Argument("Everything that the model and agents have hidden without your approval.")] = False
    since: Annotated[datetime | None, Argument("Everything done since then.")] = None
    until: Annotated[datetime | None, Argument("The end of the period, by default now.")] = None
    account: Annotated[str | None, Argument("Only in the mailbox of this account.", typed_as="--account ADDRESS")] = (
        None
    )
    by: Annotated[
        str | None,
        Argument("Everything that this agent asked for: its token's name or id; or `model`.", typed_as="--by NAME"),
    ] = None

    def in_words(self) -> dict[str, str]:
        """The fields that are given, for the audit log."""
        given = {name: value for name, value in asdict(self).items() if value}
        return {name: time_text(each) if isinstance(each, datetime) else str(each) for name, each in given.items()}


class UndoPreview(NamedTuple):
    """A preview of an undo: how many actions, and the newest of them in words."""

    undone: Undone
    newest: Sequence[Approval]


async def preview_undo(database: Database, selection: UndoSelection, most: int = 10) -> UndoPreview:
    """Show what a selection would undo."""
    chosen = await _select_undoable(database, selection)
    newest = [await database.run(show_approval(each.id)) for each in chosen[:most]]
    return UndoPreview(Undone(len(chosen), _messages(chosen)), newest)


async def undo_action(by: Caller, id: UUID) -> RequestedUndo:
    """Undo one action; asked again, return the same undo. Raise NotFound, or BadInput with the reason why not."""
    return await undo_one(by.database, CATALOGUE, id, by.signature, by.clock)


async def check_action(database: Database, id: UUID) -> None:
    """Raise NotFound, or BadInput with the reason why the action cannot be undone."""
    check_undoable(await find_candidate(database, id))


def undo_words(undo: RequestedUndo) -> str:
    """Return what happens to an action after a request to undo it."""
    return "It is already undone." if undo.state == "completed" else "It is being undone."


@MAIL.operation(STEER, flow("/mail/bring-back"), flow("/today/undo"), dialogue("undo"))
async def undo_selection(by: Caller, /, selection: UndoSelection, dry_run: bool = False) -> Undone:
    """Undo everything in a selection."""
    if not selection.in_words().keys() - {"until", "account"}:
        raise BadInput("ACTION", "is missing", "name an action, or give --rule, --batch, --hidden, --by or --since")
    canceled = await _cancel_hiding(by, selection, dry_run) if selection.hidden else 0
    chosen = await _select_undoable(by.database, selection)
    after = {**selection.in_words(), "actions": len(chosen), "messages": _messages(chosen)}
    if canceled:
        after["canceled"] = canceled
    entry = by.signature.under("actions.undo", "selection", str(by.signature.entry_id), after=after)
    if chosen and not dry_run:
        await undo_these(by.database, CATALOGUE, chosen, by.clock, entry=entry)
    elif canceled and not dry_run:
        await by.run(record_audit(entry, by.clock()))
    return Undone(len(chosen), _messages(chosen), canceled)


async def _cancel_hiding(by: Caller, selection: UndoSelection, dry_run: bool) -> int:
    """Cancel what would be hidden later, so that nothing is when a pause ends; return how many actions that are."""
    account = None if selection.account is None else (await find_account(by.database, selection.account)).id
    span = (account, selection.since or LONG_AGO, selection.until or FAR_AHEAD)
    if dry_run:
        return await by.run(count_open_hiding(*span))
    return await by.run(cancel_hiding(*span, by.signature, by.clock()))


def _messages(chosen: Sequence[Undoable]) -> int:
    return len({(each.account_id, each.message_id) for each in chosen})


async def _select_undoable(database: Database, selection: UndoSelection) -> list[Undoable]:
    if selection.rule is not None:
        await _check_rule(database, selection.rule)
    account = None if selection.account is None else (await find_account(database, selection.account)).id
    return await database.run(
        undoable(
            MOST,
            rule_name=selection.rule,
            account_id=account,
            batch_id=selection.batch,
            askers=None if selection.by is None else await actors_named(database, selection.by),
            since=selection.since or LONG_AGO,
            until=selection.until or FAR_AHEAD,
            only_hiding=selection.hidden,
        )
    )


async def _check_rule(database: Database, name: str) -> None:
    """Raise NotFound if no rule has this name; a removed rule is still known by its decisions."""
    if any(found.name == name for found in await database.run(list_rules())):
        return
    if not await database.run(has_decided(name)):
        raise NotFound(f"there is no rule {name!r}, and no decision was made by one; `postroom rules list` lists them")
