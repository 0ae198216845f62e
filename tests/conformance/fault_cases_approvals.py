"""For each writing verb of approvals: a database in which it has something to do."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_inbox import ENDPOINT
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_mail import _store_as
from conformance.fault_cases_registry import signed
from postroom.core.actions.action import ActionType, Actor, action_hash
from postroom.store import actions, approvals, decisions, mail
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

LIFE = timedelta(hours=24)


async def pending(
    desk: Desk, action: ActionType = "trash", parameters: dict[str, Any] | None = None, actor: Actor = "agent"
) -> UUID:
    """An action on a stored message, always the same one, which waits for its approval; its id."""
    message_id, wanted = await _stored(desk), parameters or {}
    account = await desk.database.run(mail.account_of(ENDPOINT))
    safety = {"verdict": "approve", "reasons": ["agents propose, people approve"]}
    wish = decisions.Decision(new_id(), account.id, message_id, "none", action, wanted, 1.0, "it is old", safety=safety)
    hashed, expires_at = action_hash(message_id, action, wanted), desk.clock() + LIFE
    new = decisions.NewAction(new_id(), actor, approvals.WAITING, hashed, None, expires_at, asked_by="token:7")
    await desk.database.run(decisions.ask_for_action(wish, new, None, desk.clock()))
    return new.id


async def _stored(desk: Desk) -> UUID:
    for before in await desk.database.run(actions.list_actions(1)):
        return before.message_id
    id = new_id()
    await desk.database.run(await _store_as(desk, id))
    return id


async def approve_action(desk: Desk) -> Transaction[Any]:
    id = await pending(desk)
    shown = await desk.database.run(approvals.show_approval(id))
    return approvals.approve_action(id, shown.action_hash, desk.new(key="do it"), signed(), desk.clock())


async def reject_action(desk: Desk) -> Transaction[Any]:
    return approvals.reject_action(await pending(desk), signed(), desk.clock())


async def expire_approvals(desk: Desk) -> Transaction[Any]:
    await pending(desk)
    return approvals.expire_approvals(desk.clock.forward(LIFE.total_seconds()))


async def keep_notice(desk: Desk) -> Transaction[Any]:
    return approvals.keep_notice(await pending(desk), "discord", "4711", desk.clock())


async def close_notice(desk: Desk) -> Transaction[Any]:
    id = await _noticed(desk)
    return approvals.close_notice(id, "discord", desk.clock())


async def ask_to_close(desk: Desk) -> Transaction[Any]:
    await desk.database.run(approvals.reject_action(await _noticed(desk), signed(), desk.clock()))
    return approvals.ask_to_close(new_id(), desk.clock())


async def _noticed(desk: Desk) -> UUID:
    id = await pending(desk)
    await desk.database.run(approvals.keep_notice(id, "discord", "4711", desk.clock()))
    return id


async def take_slot(desk: Desk) -> Transaction[Any]:
    """The hour has no slot left, so the digest is enqueued."""
    return approvals.take_slot(await pending(desk), 0, desk.new(key="digest"), desk.clock())


CASES: list[Case] = [
    approve_action,
    reject_action,
    expire_approvals,
    take_slot,
    keep_notice,
    close_notice,
    ask_to_close,
]
