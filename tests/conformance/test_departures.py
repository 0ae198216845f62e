"""Who may let requests out, and which: pauses, the account, the lease, the action, what is protected."""

import asyncio
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from conformance.desk import Desk, listen
from conformance.fault_cases_actions import CAP, begun
from conformance.fault_cases_approvals import pending
from conformance.fault_cases_registry import signed
from conformance.shop import until
from conformance.test_approvals import tamper
from postroom.core.actions.permits import DeliveryLease, Permit
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked, ProtectedMail
from postroom.core.jobs.job import Job
from postroom.store import accounts, actions, approvals, jobs, labels, mail, pauses, protection
from postroom.store import mailbox_writers as departures
from postroom.store.engine.ids import new_id
from support.gates import LASTING
from support.patience import PATIENCE_S


async def permit_of(desk: Desk) -> tuple[Permit, Job, actions.Action]:
    job, id = await begun(desk)
    action = await desk.database.run(actions.load_action(id))
    return Permit(action.account_id, LASTING, job.claim, None, id), job, action


async def checked(desk: Desk, *permits: Permit, **labels: frozenset[str] | None) -> departures.PermitCheck:
    return await desk.database.run(departures.check_permits(permits, labels, frozenset()))


async def test_what_nothing_forbids_may_leave(desk: Desk) -> None:
    permit, _, _ = await permit_of(desk)
    assert await checked(desk, permit) == departures.PermitCheck(0, {}, {}, frozenset(), protects_labels=False)


@pytest.mark.parametrize("of_account", [False, True])
async def test_a_pause_refuses_each_part_that_it_is_about(desk: Desk, of_account: bool) -> None:
    permit, _, _ = await permit_of(desk)
    scope = str(permit.account_id) if of_account else pauses.ALL
    await desk.database.run(pauses.pause(scope, "to look", signed(), desk.clock()))
    found = await checked(desk, permit)
    assert found.generation == 1
    assert isinstance(found.refused[0], Parked)
    assert found.refused[0].key == f"pause:{scope}"
    await desk.database.run(pauses.resume(scope, signed(), desk.clock()))
    assert await checked(desk, permit) == departures.PermitCheck(2, {}, {}, frozenset(), protects_labels=False)


async def test_a_claim_that_is_somebody_elses_refuses_that_part_alone(desk: Desk) -> None:
    permit, job, _ = await permit_of(desk)
    stale = replace(permit, claim=job.claim._replace(attempts=job.attempts + 1))
    gone = replace(permit, claim=None, delivery=DeliveryLease(new_id(), new_id()))
    found = await checked(desk, stale, permit, gone)
    assert {place: type(error) for place, error in found.refused.items()} == {0: LeaseLost, 2: LeaseLost}


async def test_a_job_that_is_to_be_canceled_sends_nothing_more(desk: Desk) -> None:
    permit, job, _ = await permit_of(desk)
    await desk.database.run(jobs.cancel_job(job.id, desk.clock()))
    assert isinstance((await checked(desk, permit)).refused[0], Canceled)


async def test_an_action_that_was_ended_meanwhile_sends_nothing_more(desk: Desk) -> None:
    permit, job, action = await permit_of(desk)
    await desk.database.run(actions.fail_action(job, action.id, "by hand", desk.clock()))
    assert isinstance((await checked(desk, permit)).refused[0], Canceled)
    assert (await checked(desk, replace(permit, action_id=None))).refused == {}


async def test_an_account_that_is_not_in_use_is_not_changed(desk: Desk) -> None:
    permit, _, _ = await permit_of(desk)
    await desk.database.run(accounts.pause_account(permit.account_id, signed(), desk.clock()))
    assert isinstance((await checked(desk, permit)).refused[0], Parked)
    unknown = replace(permit, account_id=new_id())
    assert isinstance((await checked(desk, unknown)).refused[0], Fatal)


async def test_whoever_meets_a_paused_account_is_told_how_it_is_used_again(desk: Desk) -> None:
    permit, _, _ = await permit_of(desk)
    await desk.database.run(accounts.pause_account(permit.account_id, signed(), desk.clock()))
    assert "run `postroom account resume me@example.com`" in str((await checked(desk, permit)).refused[0])


@pytest.mark.parametrize("change", [None, 'parameters_json = \'{"label": "other"}\'', "action_type = 'archive'"])
async def test_what_a_person_approved_leaves_only_as_it_was_approved(desk: Desk, change: str | None) -> None:
    id = await pending(desk, "trash")
    shown = await desk.database.run(approvals.show_approval(id))
    carrying_out = desk.new()
    approve = approvals.approve_action(id, shown.action_hash, carrying_out, signed(), desk.clock())
    await desk.database.run(approve)
    job = next(each for each in await desk.claim() if each.id == carrying_out.id)
    await desk.database.run(actions.begin_action(job, id, CAP, desk.clock()))
    if change is not None:
        await desk.database.run(tamper(change, id))
    refused = (await checked(desk, Permit(shown.account_id, LASTING, job.claim, None, id))).refused
    assert {place: type(error) for place, error in refused.items()} == ({} if change is None else {0: Fatal})


async def test_a_protected_sender_is_refused_whatever_the_labels(desk: Desk) -> None:
    permit, _, action = await permit_of(desk)
    sender = (await desk.database.run(mail.load_message(action.message_id))).facts.sender
    await desk.database.run(protection.protect("sender", sender, "", signed(), desk.clock()))
    assert isinstance((await checked(desk, permit)).refused[0], ProtectedMail)
    assert (await checked(desk, replace(permit, gives_back=True))).refused == {}


async def protected_label(desk: Desk, account_id: UUID) -> None:
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("INBOX", "INBOX", "system")]
    await desk.database.run(labels.sync_labels(account_id, seen, desk.clock()))
    await desk.database.run(protection.protect("label", "legal", "", signed(), desk.clock()))


async def test_labels_are_judged_as_they_were_just_read_and_not_as_they_are_stored(desk: Desk) -> None:
    permit, _, action = await permit_of(desk)
    await protected_label(desk, permit.account_id)
    message = action.provider_message_id
    assert (await checked(desk, permit)).wants_labels == {0: message}
    assert isinstance((await checked(desk, permit, **{message: frozenset({"Label_7"})})).refused[0], ProtectedMail)
    found = await checked(desk, permit, **{message: frozenset({"INBOX"})})
    assert (found.refused, found.wants_labels, found.protects_labels) == ({}, {}, True)
    assert (await checked(desk, permit, **{message: frozenset()})).refused == {}


async def test_a_label_that_was_renamed_since_still_protects(desk: Desk) -> None:
    permit, _, action = await permit_of(desk)
    await protected_label(desk, permit.account_id)
    renamed = [labels.SeenLabel("Label_7", "Contracts", "user"), labels.SeenLabel("INBOX", "INBOX", "system")]
    await desk.database.run(labels.sync_labels(permit.account_id, renamed, desk.clock()))
    held = {action.provider_message_id: frozenset({"Label_7"})}
    assert isinstance((await checked(desk, permit, **held)).refused[0], ProtectedMail)


async def test_a_label_that_nobody_knows_yet_is_looked_up_before_anything_leaves(desk: Desk) -> None:
    permit, _, action = await permit_of(desk)
    await protected_label(desk, permit.account_id)
    held = {action.provider_message_id: frozenset({"Label_8"})}
    assert (await checked(desk, permit, **held)).unknown_labels == {permit.account_id}
    listed = departures.check_permits([permit], held, frozenset({permit.account_id}))
    assert (await desk.database.run(listed)).refused == {}


async def test_the_names_of_a_users_labels_are_read_anew_and_gmails_own_need_none(desk: Desk) -> None:
    permit, _, action = await permit_of(desk)
    await desk.database.run(protection.protect("label", "starred", "", signed(), desk.clock()))
    known = [labels.SeenLabel("Label_8", "Travel", "user")]
    await desk.database.run(labels.sync_labels(permit.account_id, known, desk.clock()))
    found = await checked(desk, permit, **{action.provider_message_id: frozenset({"Label_8"})})
    assert found.unknown_labels == {permit.account_id}, "it may have been renamed since"
    found = await checked(desk, permit, **{action.provider_message_id: frozenset({"INBOX", "UNREAD"})})
    assert (found.refused, found.unknown_labels) == ({}, frozenset())


async def test_whoever_pauses_hears_of_each_process_that_has_read_it_or_has_gone(desk: Desk) -> None:
    heard = await listen(desk.database, departures.CHANNEL)
    process = new_id()
    await desk.database.run(departures.register_writer(process, "here", {}, None, desk.clock()))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "0"
    await desk.database.run(departures.retire_writer(process))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "retired"
    assert await desk.database.run(departures.registered_writers()) == []


async def test_who_is_registered_under_an_older_generation_is_known_to_whoever_pauses(desk: Desk) -> None:
    process, account = new_id(), new_id()
    register = departures.register_writer(process, "here", {str(account): 2}, None, desk.clock())
    assert await desk.database.run(register) == 0
    await desk.database.run(pauses.pause(pauses.ALL, "to look", signed(), desk.clock()))
    held = departures.register_writer(process, "here", {}, 0, desk.clock())
    assert await desk.database.run(held) == 1
    found = departures.MailboxWriter(process, 0, {str(account): 2})
    assert await desk.database.run(departures.registered_writers()) == [found], "it has not stopped yet"
    assert await desk.database.run(register) == 1
    assert await desk.database.run(departures.registered_writers()) == [found._replace(generation=1)]


async def test_to_register_and_to_pause_at_once_never_miss_each_other(desk: Desk) -> None:
    for _ in range(20):
        process = new_id()
        register = departures.register_writer(process, "here", {}, None, desk.clock())
        pause = pauses.pause(pauses.ALL, "to look", signed(), desk.clock())
        before = await desk.database.run(departures.pause_generation())
        read, _ = await asyncio.gather(desk.database.run(register), desk.database.run(pause))
        # Committed before the pause, it is there; after it, it has read the new generation.
        known = {each.process_id for each in await desk.database.run(departures.registered_writers())}
        assert process in known
        assert read in (before, before + 1)
        await desk.database.run(pauses.resume(pauses.ALL, signed(), desk.clock()))


async def test_a_pause_waits_for_whoever_has_read_the_old_generation_and_is_not_registered_yet(
    postgres_desk: Desk, emptied_postgres_url: str
) -> None:
    desk, process = postgres_desk, new_id()
    other = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    try:
        # The registration has read the generation, and cannot write before this transaction has ended.
        hindrance = other.transaction()
        await hindrance.start()
        await other.execute("INSERT INTO departures VALUES ($1, 'there', 0, '{}', now())", process)
        register = departures.register_writer(process, "here", {}, None, desk.clock())
        registering = asyncio.create_task(desk.database.run(register))
        await until(lambda: _waiting(other, 1))
        pause = pauses.pause(pauses.ALL, "to look", signed(), desk.clock())
        pausing = asyncio.create_task(desk.database.run(pause))
        await until(lambda: _is_done_or_waits(pausing, other))
        if not pausing.done():
            await hindrance.rollback()
        await pausing
        known = {each.process_id for each in await desk.database.run(departures.registered_writers())}
        assert known == {process}
        await registering
    finally:
        await other.close()


async def _waiting(other: asyncpg.Connection, least: int) -> bool:
    return await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") >= least


async def _is_done_or_waits(pausing: "asyncio.Task[pauses.Pause]", other: asyncpg.Connection) -> bool:
    return pausing.done() or await _waiting(other, 2)
