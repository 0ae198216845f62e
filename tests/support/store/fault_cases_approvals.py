"""For each writing verb of approvals: a database in which it has something to do."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.action import ActionType, Actor, action_hash
from postroom.store.actions import actions, approvals, decisions
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail
from support.store.fault_cases_inbox import ENDPOINT
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_mail import _store_as
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

LIFE = timedelta(hours=24)


async def pending(
    setup: JobSetup, action: ActionType = "trash", parameters: dict[str, Any] | None = None, actor: Actor = "agent"
) -> UUID:
    """An action on a stored message, always the same one, which waits for its approval; its id."""
    message_id, wanted = await _stored(setup), parameters or {}
    account = await setup.database.run(mail.account_of(ENDPOINT))
    safety = {"verdict": "approve", "reasons": ["agents propose, people approve"]}
    decision = decisions.Decision(
        new_id(), account.id, message_id, "none", action, wanted, 1.0, "it is old", safety=safety
    )
    hashed, expires_at = action_hash(message_id, action, wanted), setup.clock() + LIFE
    new = decisions.NewAction(new_id(), actor, approvals.WAITING, hashed, None, expires_at, asked_by="token:7")
    await setup.database.run(decisions.ask_for_action(decision, new, None, setup.clock()))
    return new.id


async def _stored(setup: JobSetup) -> UUID:
    for before in await setup.database.run(actions.list_actions(1)):
        return before.message_id
    id = new_id()
    await setup.database.run(await _store_as(setup, id))
    return id


async def approve_action(setup: JobSetup) -> Transaction[Any]:
    id = await pending(setup)
    shown = await setup.database.run(approvals.show_approval(id))
    return approvals.approve_action(id, shown.action_hash, setup.new(key="do it"), signed(), setup.clock())


async def reject_action(setup: JobSetup) -> Transaction[Any]:
    return approvals.reject_action(await pending(setup), signed(), setup.clock())


async def take_back_rejection(setup: JobSetup) -> Transaction[Any]:
    id = await pending(setup)
    await setup.database.run(approvals.reject_action(id, signed(), setup.clock()))
    return approvals.take_back_rejection(id, signed(), setup.clock())


async def expire_approvals(setup: JobSetup) -> Transaction[Any]:
    await pending(setup)
    return approvals.expire_approvals(setup.clock.forward(LIFE.total_seconds()))


async def keep_notice(setup: JobSetup) -> Transaction[Any]:
    return approvals.keep_notice(await pending(setup), "discord", "4711", setup.clock())


async def close_notice(setup: JobSetup) -> Transaction[Any]:
    id = await _noticed(setup)
    return approvals.close_notice(id, "discord", setup.clock())


async def ask_to_close(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(approvals.reject_action(await _noticed(setup), signed(), setup.clock()))
    return approvals.ask_to_close(new_id(), setup.clock.forward(15))


async def _noticed(setup: JobSetup) -> UUID:
    id = await pending(setup)
    await setup.database.run(approvals.keep_notice(id, "discord", "4711", setup.clock()))
    return id


async def take_slot(setup: JobSetup) -> Transaction[Any]:
    """The hour has no slot left, so the digest is enqueued."""
    return approvals.take_slot(await pending(setup), 0, setup.new(key="digest"), setup.clock())


CASES: list[Case] = [
    approve_action,
    reject_action,
    take_back_rejection,
    expire_approvals,
    take_slot,
    keep_notice,
    close_notice,
    ask_to_close,
]
