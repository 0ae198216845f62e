"""Requests to undo one action, or many at once. They are the same for people and agents; only agents are restricted."""

from collections.abc import Callable, Sequence
from uuid import UUID

from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import BadInput, NotFound
from postroom.core.jobs.types import Catalogue
from postroom.store.actions import undos
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import ASKED_PRIORITY
from postroom.store.people.audit import AuditEntry, Signature
from postroom.system.wall_clock import Clock

MOST = 100_000
_BATCH = 500


async def find_candidate(database: Database, id: UUID) -> undos.UndoCandidate:
    """Return the action that somebody wants to undo. Raise NotFound."""
    found = await database.run(undos.undo_candidate(id))
    if found is None:
        raise NotFound(f"there is no action {id}")
    return found


def check_undoable(found: undos.UndoCandidate, field: str = "action") -> None:
    """Raise BadInput with the reason why the action can never be undone, if there is one."""
    if (reason := why_not_undoable(found.action_type, found.state, found.hint)) is not None:
        raise BadInput(field, f"cannot be undone: {reason}", "the list of actions shows which ones can be undone")


async def undo_one(
    database: Database,
    catalogue: Catalogue,
    id: UUID,
    signed: Signature,
    clock: Clock,
    *,
    field: str = "action",
    check: Callable[[undos.UndoCandidate], None] | None = None,
    hourly_cap: int | None = None,
) -> undos.RequestedUndo:
    """Start the undo of an action, or return the one that was started before; a failed one is started again.

    `check` raises if the signer may not undo this action. Raise NotFound, BadInput with the reason why it cannot be
    undone, and SafetyRefused at the cap.
    """
    found = await find_candidate(database, id)
    if check is not None:
        check(found)
    check_undoable(found, field)
    chain = undos.UndoChain(catalogue, found.account_id, (id,), ASKED_PRIORITY)
    return await database.run(undos.request_undo(chain, signed, clock(), hourly_cap))


async def undo_these(
    database: Database,
    catalogue: Catalogue,
    chosen: Sequence[undos.Undoable],
    clock: Clock,
    entry: AuditEntry | None = None,
) -> int:
    """Enqueue the undoing of all of them; return the number of messages. `chosen` is newest first.

    `entry` is written with the first batch.
    """
    now = clock()
    by_message: dict[tuple[UUID, UUID], list[UUID]] = {}
    for id, account_id, message_id in chosen:
        by_message.setdefault((account_id, message_id), []).append(id)
    chains = [undos.UndoChain(catalogue, each[0], tuple(ids), ASKED_PRIORITY) for each, ids in by_message.items()]
    for start in range(0, len(chains), _BATCH):
        await database.run(undos.enqueue_undos(chains[start : start + _BATCH], now, entry if start == 0 else None))
    return len(chains)
