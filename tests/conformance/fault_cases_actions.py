"""For each writing verb of actions, undos, pauses and protection: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_inbox import ENDPOINT
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_mail import LABELS, decided_action
from conformance.fault_cases_registry import signed
from postroom.core.actions.action import label_change
from postroom.core.actions.undo import no_way_back, undo_hint
from postroom.core.jobs.job import Job
from postroom.store import action_requests as wishes
from postroom.store import actions, decisions, jobs, mail, pauses, protection, undos
from postroom.store import mailbox_writers as departures
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

CAP = 20


async def begun(desk: Desk) -> tuple[Job, UUID]:
    """An action under way, and the job that carries it out."""
    action = new_id()
    await desk.database.run(await decided_action(desk, action))
    job = await desk.claim_one()
    await desk.database.run(actions.begin_action(job, action, CAP, desk.clock()))
    return job, action


async def completed(desk: Desk) -> UUID:
    job, action = await begun(desk)
    hint = undo_hint("archive", LABELS, label_change("archive").effective(LABELS))
    await desk.database.run(actions.complete_action(job, action, frozenset(), hint, desk.clock()))
    return action


async def ask_for_action(desk: Desk) -> Transaction[Any]:
    await completed(desk)
    (view,) = await desk.database.run(actions.list_actions(10))
    wish = decisions.Decision(new_id(), view.account_id, view.message_id, "none", "star", {}, 1.0, "a wish")
    follow_up = desk.new(key="star")
    action = decisions.NewAction(new_id(), "user", "queued", "hash", follow_up.id, asked_by="me")
    return decisions.ask_for_action(wish, action, follow_up, desk.clock(), signed())


async def ask_once(desk: Desk) -> Transaction[Any]:
    await completed(desk)
    (view,) = await desk.database.run(actions.list_actions(10))
    wish = decisions.Decision(new_id(), view.account_id, view.message_id, "none", "star", {}, 1.0, "a wish")
    follow_up = desk.new(key="star once")
    action = decisions.NewAction(new_id(), "agent", "queued", "hash", follow_up.id, asked_by="an agent")
    waiting = decisions.NewAction(new_id(), "agent", "awaiting_approval", "hash", None, asked_by="an agent")
    beyond = wishes.Recorded(wish, waiting, desk.new(key="tell people"))
    cap = wishes.AgentCap(0, beyond)
    return wishes.ask_once(wishes.Recorded(wish, action, follow_up), 1, signed(), desk.clock(), cap)


async def hand_over_action(desk: Desk) -> Transaction[Any]:
    job, action = await begun(desk)
    return actions.hand_over_action(job, action, desk.new(key="sending"), desk.clock())


async def end_awakened(desk: Desk) -> Transaction[Any]:
    await completed(desk)
    (view,) = await desk.database.run(actions.list_actions(10))
    return actions.end_awakened(await desk.claimed(), view.message_id, LABELS, desk.clock())


async def release_capped(desk: Desk) -> Transaction[Any]:
    await completed(desk)
    account = await desk.database.run(mail.account_of(ENDPOINT))
    job = await desk.claimed()
    await desk.database.run(jobs.park(job.claim, f"cap:{account.id}", "too many", desk.clock()))
    return actions.release_capped(CAP, desk.clock())


async def begin_undo(desk: Desk) -> Transaction[Any]:
    original = await completed(desk)
    account = await desk.database.run(mail.account_of(ENDPOINT))
    return undos.begin_undo(await desk.claimed(), original, account.id, new_id(), desk.clock())


async def complete_undo(desk: Desk) -> Transaction[Any]:
    original = await completed(desk)
    account = await desk.database.run(mail.account_of(ENDPOINT))
    job, undo = await desk.claimed(), new_id()
    await desk.database.run(undos.begin_undo(job, original, account.id, undo, desk.clock()))
    hint, wake = no_way_back("apply_label"), desk.new(key="wake")
    await desk.database.run(jobs.enqueue_many([wake], desk.clock()))
    return undos.complete_undo(job, undo, LABELS, hint, desk.new(key="next"), desk.clock(), wake.id)


async def enqueue_undos(desk: Desk) -> Transaction[Any]:
    entry = signed().under("actions.undo", "selection", "all")
    return undos.enqueue_undos([desk.new(key="undo"), desk.new(key="undo 2")], desk.clock(), entry)


async def enqueue_decisions(desk: Desk) -> Transaction[Any]:
    entry = signed().under("messages.reclassify", "batch", "1")
    return decisions.enqueue_decisions([desk.new(key="again"), desk.new(key="again 2")], desk.clock(), entry)


async def enqueue_undo(desk: Desk) -> Transaction[Any]:
    return undos.enqueue_undo(desk.new(key="undo"), await completed(desk), signed(), desk.clock(), hourly_cap=1)


async def pause(desk: Desk) -> Transaction[Any]:
    return pauses.pause(pauses.ALL, "to look around", signed(), desk.clock())


async def resume(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await pause(desk))
    job = await desk.claimed()
    await desk.database.run(jobs.park(job.claim, "pause:all", "paused", desk.clock()))
    return pauses.resume(pauses.ALL, signed(), desk.clock())


async def protect(desk: Desk) -> Transaction[Any]:
    return protection.protect("sender", "Ann@Shop.example", "a friend", signed(), desk.clock())


async def unprotect(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await protect(desk))
    return protection.unprotect("sender", "ann@shop.example", signed(), desk.clock())


async def begin_shadow(desk: Desk) -> Transaction[Any]:
    return protection.begin_shadow("model", "", signed(), desk.clock())


async def end_shadow(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await begin_shadow(desk))
    return protection.end_shadow("model", "", signed(), desk.clock())


async def refuse_action(desk: Desk) -> Transaction[Any]:
    job, action = await begun(desk)
    return actions.refuse_action(job, action, "it is protected", desk.clock())


async def register_departures(desk: Desk) -> Transaction[Any]:
    return departures.register_writer(new_id(), "here", {"an account": 1}, None, desk.clock())


async def retire_departures(desk: Desk) -> Transaction[Any]:
    process = new_id()
    await desk.database.run(departures.register_writer(process, "here", {}, None, desk.clock()))
    return departures.retire_writer(process)


async def forget_silent(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await register_departures(desk))
    return departures.forget_silent_writers(1)


CASES: list[Case] = [
    refuse_action,
    register_departures,
    retire_departures,
    forget_silent,
    ask_for_action,
    ask_once,
    hand_over_action,
    end_awakened,
    release_capped,
    begin_undo,
    complete_undo,
    enqueue_undo,
    enqueue_decisions,
    enqueue_undos,
    pause,
    resume,
    protect,
    unprotect,
    begin_shadow,
    end_shadow,
]
