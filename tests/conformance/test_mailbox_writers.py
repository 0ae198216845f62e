"""Which requests may leave, and from which process: pauses, the account, the lease, the action, protection."""

import asyncio
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from postroom.core.actions.permits import DeliveryLease, Permit
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked, ProtectedMail
from postroom.core.jobs.job import Job
from postroom.store.accounts import accounts
from postroom.store.actions import actions, approvals, mailbox_writers, pauses, protection
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import labels, mail
from support.approvals import tamper
from support.gates import LASTING
from support.patience import PATIENCE_S
from support.store.fault_cases_actions import CAP, begun
from support.store.fault_cases_approvals import pending
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup, listen
from support.store.running_worker import until


async def permit_of(setup: JobSetup) -> tuple[Permit, Job, actions.Action]:
    job, id = await begun(setup)
    action = await setup.database.run(actions.load_action(id))
    return Permit(action.account_id, LASTING, job.claim, None, id), job, action


async def checked(setup: JobSetup, *permits: Permit, **labels: frozenset[str] | None) -> mailbox_writers.PermitCheck:
    return await setup.database.run(mailbox_writers.check_permits(permits, labels, frozenset()))


async def test_what_nothing_forbids_may_leave(setup: JobSetup) -> None:
    permit, _, _ = await permit_of(setup)
    assert await checked(setup, permit) == mailbox_writers.PermitCheck(0, {}, {}, frozenset(), protects_labels=False)


@pytest.mark.parametrize("of_account", [False, True])
async def test_a_pause_refuses_each_part_that_it_is_about(setup: JobSetup, of_account: bool) -> None:
    permit, _, _ = await permit_of(setup)
    scope = str(permit.account_id) if of_account else pauses.ALL
    await setup.database.run(pauses.pause(scope, "to look", signed(), setup.clock()))
    found = await checked(setup, permit)
    assert found.generation == 1
    assert isinstance(found.refused[0], Parked)
    assert found.refused[0].key == f"pause:{scope}"
    await setup.database.run(pauses.resume(scope, signed(), setup.clock()))
    assert await checked(setup, permit) == mailbox_writers.PermitCheck(2, {}, {}, frozenset(), protects_labels=False)


async def test_a_claim_that_is_somebody_elses_refuses_that_part_alone(setup: JobSetup) -> None:
    permit, job, _ = await permit_of(setup)
    stale = replace(permit, claim=job.claim._replace(attempts=job.attempts + 1))
    gone = replace(permit, claim=None, delivery=DeliveryLease(new_id(), new_id()))
    found = await checked(setup, stale, permit, gone)
    assert {place: type(error) for place, error in found.refused.items()} == {0: LeaseLost, 2: LeaseLost}


async def test_a_job_that_is_to_be_canceled_sends_nothing_more(setup: JobSetup) -> None:
    permit, job, _ = await permit_of(setup)
    await setup.database.run(jobs.cancel_job(job.id, setup.clock()))
    assert isinstance((await checked(setup, permit)).refused[0], Canceled)


async def test_an_action_that_was_ended_meanwhile_sends_nothing_more(setup: JobSetup) -> None:
    permit, job, action = await permit_of(setup)
    await setup.database.run(actions.fail_action(job, action.id, "by hand", setup.clock()))
    assert isinstance((await checked(setup, permit)).refused[0], Canceled)
    assert (await checked(setup, replace(permit, action_id=None))).refused == {}


async def test_an_account_that_is_not_in_use_is_not_changed(setup: JobSetup) -> None:
    permit, _, _ = await permit_of(setup)
    await setup.database.run(accounts.pause_account(permit.account_id, signed(), setup.clock()))
    assert isinstance((await checked(setup, permit)).refused[0], Parked)
    unknown = replace(permit, account_id=new_id())
    assert isinstance((await checked(setup, unknown)).refused[0], Fatal)


async def test_whoever_meets_a_paused_account_is_told_how_it_is_used_again(setup: JobSetup) -> None:
    permit, _, _ = await permit_of(setup)
    await setup.database.run(accounts.pause_account(permit.account_id, signed(), setup.clock()))
    assert "run `postroom account resume me@example.com`" in str((await checked(setup, permit)).refused[0])


@pytest.mark.parametrize("change", [None, 'parameters_json = \'{"label": "other"}\'', "action_type = 'archive'"])
async def test_what_a_person_approved_leaves_only_as_it_was_approved(setup: JobSetup, change: str | None) -> None:
    id = await pending(setup, "trash")
    shown = await setup.database.run(approvals.show_approval(id))
    carrying_out = setup.new()
    approve = approvals.approve_action(id, shown.action_hash, carrying_out, signed(), setup.clock())
    await setup.database.run(approve)
    job = next(each for each in await setup.claim() if each.id == carrying_out.id)
    await setup.database.run(actions.begin_action(job, id, CAP, setup.clock()))
    if change is not None:
        await setup.database.run(tamper(change, id))
    refused = (await checked(setup, Permit(shown.account_id, LASTING, job.claim, None, id))).refused
    assert {place: type(error) for place, error in refused.items()} == ({} if change is None else {0: Fatal})


async def test_a_protected_sender_is_refused_whatever_the_labels(setup: JobSetup) -> None:
    permit, _, action = await permit_of(setup)
    sender = (await setup.database.run(mail.load_message(action.message_id))).facts.sender
    await setup.database.run(protection.protect("sender", sender, "", signed(), setup.clock()))
    assert isinstance((await checked(setup, permit)).refused[0], ProtectedMail)
    assert (await checked(setup, replace(permit, gives_back=True))).refused == {}


async def protected_label(setup: JobSetup, account_id: UUID) -> None:
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("INBOX", "INBOX", "system")]
    await setup.database.run(labels.sync_labels(account_id, seen, setup.clock()))
    await setup.database.run(protection.protect("label", "legal", "", signed(), setup.clock()))


async def test_labels_are_judged_as_they_were_just_read_and_not_as_they_are_stored(setup: JobSetup) -> None:
    permit, _, action = await permit_of(setup)
    await protected_label(setup, permit.account_id)
    message = action.provider_message_id
    assert (await checked(setup, permit)).wants_labels == {0: message}
    assert isinstance((await checked(setup, permit, **{message: frozenset({"Label_7"})})).refused[0], ProtectedMail)
    found = await checked(setup, permit, **{message: frozenset({"INBOX"})})
    assert (found.refused, found.wants_labels, found.protects_labels) == ({}, {}, True)
    assert (await checked(setup, permit, **{message: frozenset()})).refused == {}


async def test_a_label_that_was_renamed_since_still_protects(setup: JobSetup) -> None:
    permit, _, action = await permit_of(setup)
    await protected_label(setup, permit.account_id)
    renamed = [labels.SeenLabel("Label_7", "Contracts", "user"), labels.SeenLabel("INBOX", "INBOX", "system")]
    await setup.database.run(labels.sync_labels(permit.account_id, renamed, setup.clock()))
    held = {action.provider_message_id: frozenset({"Label_7"})}
    assert isinstance((await checked(setup, permit, **held)).refused[0], ProtectedMail)


async def test_a_label_that_nobody_knows_yet_is_looked_up_before_anything_leaves(setup: JobSetup) -> None:
    permit, _, action = await permit_of(setup)
    await protected_label(setup, permit.account_id)
    held = {action.provider_message_id: frozenset({"Label_8"})}
    assert (await checked(setup, permit, **held)).unknown_labels == {permit.account_id}
    listed = mailbox_writers.check_permits([permit], held, frozenset({permit.account_id}))
    assert (await setup.database.run(listed)).refused == {}


async def test_the_names_of_a_users_labels_are_read_again_and_gmails_own_need_none(setup: JobSetup) -> None:
    permit, _, action = await permit_of(setup)
    await setup.database.run(protection.protect("label", "starred", "", signed(), setup.clock()))
    known = [labels.SeenLabel("Label_8", "Travel", "user")]
    await setup.database.run(labels.sync_labels(permit.account_id, known, setup.clock()))
    found = await checked(setup, permit, **{action.provider_message_id: frozenset({"Label_8"})})
    assert found.unknown_labels == {permit.account_id}, "it may have been renamed since"
    found = await checked(setup, permit, **{action.provider_message_id: frozenset({"INBOX", "UNREAD"})})
    assert (found.refused, found.unknown_labels) == ({}, frozenset())


async def test_whoever_pauses_hears_of_each_process_that_has_read_it_or_has_gone(setup: JobSetup) -> None:
    heard = await listen(setup.database, mailbox_writers.CHANNEL)
    process = new_id()
    await setup.database.run(mailbox_writers.register_writer(process, "here", {}, None, setup.clock()))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "0"
    await setup.database.run(mailbox_writers.retire_writer(process))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "retired"
    assert await setup.database.run(mailbox_writers.registered_writers()) == []


async def test_who_is_registered_under_an_older_generation_is_known_to_whoever_pauses(setup: JobSetup) -> None:
    process, account = new_id(), new_id()
    register = mailbox_writers.register_writer(process, "here", {str(account): 2}, None, setup.clock())
    assert await setup.database.run(register) == 0
    await setup.database.run(pauses.pause(pauses.ALL, "to look", signed(), setup.clock()))
    held = mailbox_writers.register_writer(process, "here", {}, 0, setup.clock())
    assert await setup.database.run(held) == 1
    found = mailbox_writers.MailboxWriter(process, 0, {str(account): 2})
    assert await setup.database.run(mailbox_writers.registered_writers()) == [found], "it has not stopped yet"
    assert await setup.database.run(register) == 1
    assert await setup.database.run(mailbox_writers.registered_writers()) == [found._replace(generation=1)]


async def test_to_register_and_to_pause_at_once_never_miss_each_other(setup: JobSetup) -> None:
    for _ in range(20):
        process = new_id()
        register = mailbox_writers.register_writer(process, "here", {}, None, setup.clock())
        pause = pauses.pause(pauses.ALL, "to look", signed(), setup.clock())
        before = await setup.database.run(mailbox_writers.pause_generation())
        read, _ = await asyncio.gather(setup.database.run(register), setup.database.run(pause))
        # Committed before the pause, it is there; after it, it has read the new generation.
        known = {each.process_id for each in await setup.database.run(mailbox_writers.registered_writers())}
        assert process in known
        assert read in (before, before + 1)
        await setup.database.run(pauses.resume(pauses.ALL, signed(), setup.clock()))


async def test_a_pause_waits_for_whoever_has_read_the_old_generation_and_is_not_registered_yet(
    postgres_setup: JobSetup, emptied_postgres_url: str
) -> None:
    setup, process = postgres_setup, new_id()
    other = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    try:
        # The registration has read the generation, and cannot write before this transaction has ended.
        hindrance = other.transaction()
        await hindrance.start()
        await other.execute("INSERT INTO departures VALUES ($1, 'there', 0, '{}', now())", process)
        register = mailbox_writers.register_writer(process, "here", {}, None, setup.clock())
        registering = asyncio.create_task(setup.database.run(register))
        await until(lambda: _waiting(other, 1))
        pause = pauses.pause(pauses.ALL, "to look", signed(), setup.clock())
        pausing = asyncio.create_task(setup.database.run(pause))
        await until(lambda: _is_done_or_waits(pausing, other))
        if not pausing.done():
            await hindrance.rollback()
        await pausing
        known = {each.process_id for each in await setup.database.run(mailbox_writers.registered_writers())}
        assert known == {process}
        await registering
    finally:
        await other.close()


async def _waiting(other: asyncpg.Connection, least: int) -> bool:
    return await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") >= least


async def _is_done_or_waits(pausing: "asyncio.Task[pauses.Pause]", other: asyncpg.Connection) -> bool:
    return pausing.done() or await _waiting(other, 2)
