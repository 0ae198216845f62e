"""For each writing verb of actions, undos, pauses and protection: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from postroom.core.actions.action import label_change
from postroom.core.actions.undo import irreversible_hint, undo_hint
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.store.actions import action_requests, actions, decisions, mailbox_writers, pauses, protection, undos
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from support.store.fault_cases_inbox import ENDPOINT
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_mail import LABELS, decided_action
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

CAP = 20


async def begun(setup: JobSetup) -> tuple[Job, UUID]:
    """An action under way, and the job that carries it out."""
    action = new_id()
    await setup.database.run(await decided_action(setup, action))
    job = await setup.claim_one()
    await setup.database.run(actions.begin_action(job, action, CAP, setup.clock()))
    return job, action


async def completed(setup: JobSetup) -> UUID:
    job, action = await begun(setup)
    hint = undo_hint("archive", LABELS, label_change("archive").effective(LABELS))
    await setup.database.run(actions.complete_action(job, action, actions.DoneChange(frozenset(), hint), setup.clock()))
    return action


async def ask_for_action(setup: JobSetup) -> Transaction[Any]:
    await completed(setup)
    (view,) = await setup.database.run(actions.list_actions(10))
    decision = decisions.Decision(new_id(), view.account_id, view.message_id, "none", "star", {}, 1.0, "a request")
    follow_up = setup.new(key="star")
    action = decisions.NewAction(new_id(), "user", "queued", "hash", follow_up.id, asked_by="me")
    return decisions.ask_for_action(decision, action, follow_up, setup.clock(), signed())


async def ask_once(setup: JobSetup) -> Transaction[Any]:
    await completed(setup)
    (view,) = await setup.database.run(actions.list_actions(10))
    decision = decisions.Decision(new_id(), view.account_id, view.message_id, "none", "star", {}, 1.0, "a request")
    follow_up = setup.new(key="star once")
    action = decisions.NewAction(new_id(), "agent", "queued", "hash", follow_up.id, asked_by="an agent")
    waiting = decisions.NewAction(new_id(), "agent", "approved_pending", "hash", None, asked_by="an agent")
    beyond = action_requests.Recorded(decision, waiting, setup.new(key="tell people"))
    cap = action_requests.AgentCap(0, beyond)
    return action_requests.ask_once(
        action_requests.Recorded(decision, action, follow_up), 1, signed(), setup.clock(), cap
    )


async def hand_over_action(setup: JobSetup) -> Transaction[Any]:
    job, action = await begun(setup)
    return actions.hand_over_action(job, action, setup.new(key="sending"), setup.clock())


async def end_woken(setup: JobSetup) -> Transaction[Any]:
    await completed(setup)
    (view,) = await setup.database.run(actions.list_actions(10))
    return actions.end_woken(await setup.claimed(), view.message_id, LABELS, setup.clock())


async def release_capped(setup: JobSetup) -> Transaction[Any]:
    await completed(setup)
    account = await setup.database.run(mail.account_of(ENDPOINT))
    job = await setup.claimed()
    await setup.database.run(jobs.park(job.claim, f"cap:{account.id}", "too many", setup.clock()))
    return actions.release_capped(CAP, setup.clock())


async def begin_undo(setup: JobSetup) -> Transaction[Any]:
    original = await completed(setup)
    account = await setup.database.run(mail.account_of(ENDPOINT))
    return undos.begin_undo(await setup.claimed(), original, account.id, new_id(), setup.clock())


async def complete_undo(setup: JobSetup) -> Transaction[Any]:
    original = await completed(setup)
    account = await setup.database.run(mail.account_of(ENDPOINT))
    job, undo = await setup.claimed(), new_id()
    await setup.database.run(undos.begin_undo(job, original, account.id, undo, setup.clock()))
    hint, wake = irreversible_hint("apply_label"), setup.new(key="wake")
    await setup.database.run(jobs.enqueue_many([wake], setup.clock()))
    following = undos.UndoChain(CATALOGUE, account.id, (new_id(),))
    return undos.complete_undo(job, undo, LABELS, hint, following, setup.clock(), wake.id, "moved")


async def continue_undos(setup: JobSetup) -> Transaction[Any]:
    original = await completed(setup)
    return undos.continue_undos(original, undos.UndoChain(CATALOGUE, new_id(), (new_id(),)), setup.clock())


async def enqueue_undos(setup: JobSetup) -> Transaction[Any]:
    entry = signed().under("actions.undo", "selection", "all")
    chains = [undos.UndoChain(CATALOGUE, new_id(), (new_id(), new_id())) for _ in range(2)]
    return undos.enqueue_undos(chains, setup.clock(), entry)


async def enqueue_decisions(setup: JobSetup) -> Transaction[Any]:
    entry = signed().under("messages.reclassify", "batch", "1")
    return decisions.enqueue_decisions([setup.new(key="again"), setup.new(key="again 2")], setup.clock(), entry)


async def request_undo(setup: JobSetup) -> Transaction[Any]:
    chain = undos.UndoChain(CATALOGUE, new_id(), (await completed(setup),))
    return undos.request_undo(chain, signed(), setup.clock(), hourly_cap=1)


async def pause(setup: JobSetup) -> Transaction[Any]:
    return pauses.pause(pauses.ALL, "to look around", signed(), setup.clock())


async def resume(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await pause(setup))
    job = await setup.claimed()
    await setup.database.run(jobs.park(job.claim, "pause:all", "paused", setup.clock()))
    return pauses.resume(pauses.ALL, signed(), setup.clock())


async def protect(setup: JobSetup) -> Transaction[Any]:
    return protection.protect("sender", "Ann@Shop.example", "a friend", signed(), setup.clock())


async def unprotect(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await protect(setup))
    return protection.unprotect("sender", "ann@shop.example", signed(), setup.clock())


async def begin_shadow(setup: JobSetup) -> Transaction[Any]:
    return protection.begin_shadow("model", "", signed(), setup.clock())


async def end_shadow(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await begin_shadow(setup))
    return protection.end_shadow("model", "", signed(), setup.clock())


async def refuse_action(setup: JobSetup) -> Transaction[Any]:
    job, action = await begun(setup)
    return actions.refuse_action(job, action, "it is protected", setup.clock())


async def register_writer(setup: JobSetup) -> Transaction[Any]:
    return mailbox_writers.register_writer(new_id(), "here", {"an account": 1}, None, setup.clock())


async def retire_writer(setup: JobSetup) -> Transaction[Any]:
    process = new_id()
    await setup.database.run(mailbox_writers.register_writer(process, "here", {}, None, setup.clock()))
    return mailbox_writers.retire_writer(process)


async def forget_silent_writers(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await register_writer(setup))
    return mailbox_writers.forget_silent_writers(1)


CASES: list[Case] = [
    refuse_action,
    register_writer,
    retire_writer,
    forget_silent_writers,
    ask_for_action,
    ask_once,
    hand_over_action,
    end_woken,
    release_capped,
    begin_undo,
    complete_undo,
    continue_undos,
    request_undo,
    enqueue_decisions,
    enqueue_undos,
    pause,
    resume,
    protect,
    unprotect,
    begin_shadow,
    end_shadow,
]
