"""What stops a request at the moment when it leaves, with the real store, client and emulator."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.compose.gate import MailboxGate
from postroom.core.actions.permits import GRANT_S, HeldLease, Permit
from postroom.core.actions.safety import Policy
from postroom.core.errors import LeaseLost, NotSent, Parked
from postroom.core.jobs.retry import DEFAULT
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.gate import Clearance, ClearanceExpired
from postroom.core.mail.mailbox import BUSY_PAUSE, Placed, job_error_of
from postroom.jobs.failure import ending_of
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import NoPermit, RateLimited
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.gmail.quota import Quota
from postroom.operations.actions.pausing import forbid_and_wait, stop
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.actions import actions, decisions, pauses, protection
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import labels, mail
from postroom.store.people.audit import Signature
from postroom.system.boot_clock import since_boot
from postroom.system.checked_http import CheckedClient
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, Product, raw_mail, running_product


def signed() -> Signature:
    return Signature(new_id(), "test", "admin")


@dataclass
class GateSetup:
    """A mailbox with one message, a client whose quota the test holds, and what a piece of work rests on."""

    database: Database
    mailbox: Mailbox
    quota: Quota
    client: GmailClient
    gmail: GmailMailbox
    permit: Permit
    message_id: str
    gate: MailboxGate
    through: Callable[[MailboxGate], GmailClient]
    """A client of the same mailbox through another gate."""

    async def waiting(self) -> "asyncio.Task[Placed]":
        """A change that waits for the end of a rate limit."""
        change = asyncio.create_task(self.gmail.under(self.permit).modify(self.message_id, remove=["INBOX"]))
        while not self.quota.waiting:  # noqa: ASYNC110 - the limiter tells nobody who waits
            await asyncio.sleep(0)
        return change

    @property
    def is_in_inbox(self) -> bool:
        return "INBOX" in self.mailbox.get(self.message_id).labels


@pytest.fixture
async def setup(database: Database) -> AsyncGenerator[GateSetup]:
    mailbox = Mailbox(OWNER, Random(1))
    message = mailbox.deliver(raw_mail("Hello"))
    account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))

    async def token() -> str:
        return TOKEN

    async with (
        running_emulator(Emulator(mailbox, TOKEN)) as address,
        CheckedClient(trust_env=False, timeout=PATIENCE_S) as http,
        MailboxGate.open(database) as gate,
    ):
        quota = Quota()
        client = GmailClient(http, address, token, quota=quota, gate=gate)
        permit = Permit(account.id, HeldLease(since_boot() + 3_600))
        parts = (quota, client, GmailMailbox(client), permit, message.id, gate)
        yield GateSetup(database, mailbox, *parts, lambda other: GmailClient(http, address, token, gate=other))


async def held(setup: GateSetup) -> None:
    """Gmail has said that it is too much: whoever calls waits."""
    async with setup.quota.admitted("messages.get", 1) as ticket:
        setup.quota.limited(ticket, RateLimited("messages.get", "rateLimitExceeded", timedelta(seconds=1)))


async def test_a_change_that_waited_for_a_rate_limit_while_somebody_paused_does_not_leave(setup: GateSetup) -> None:
    await held(setup)
    change = await setup.waiting()
    stopped = await stop(Caller(setup.database, signed()), pauses.ALL, "to look")
    assert (stopped.on_wire, stopped.silent) == (0, 0)
    with pytest.raises(Parked, match="to look"):
        await change
    assert setup.is_in_inbox


async def test_a_change_whose_lease_ran_out_while_it_waited_does_not_leave(setup: GateSetup) -> None:
    await held(setup)
    change = await setup.waiting()
    setup.permit.lease.deadline = since_boot()
    with pytest.raises(LeaseLost):
        await change
    assert setup.is_in_inbox


async def test_a_change_of_an_account_that_was_paused_while_it_waited_does_not_leave(setup: GateSetup) -> None:
    await held(setup)
    change = await setup.waiting()
    await setup.database.run(accounts.pause_account(setup.permit.account_id, signed(), wall_clock()))
    with pytest.raises(Parked):
        await change
    assert setup.is_in_inbox


async def test_whatever_forbids_has_answered_when_nothing_that_it_forbids_can_start(setup: GateSetup) -> None:
    """A request that was cleared just before is not written afterwards."""
    id = setup.permit.account_id
    verbs: list[Transaction[Any]] = [
        protection.protect("sender", "ann@example.org", "", signed(), wall_clock()),
        accounts.pause_account(id, signed(), wall_clock()),
        accounts.remove_account(id, signed(), wall_clock()),
    ]
    for verb in verbs:
        clearance = await _valid_clearance(setup)
        await forbid_and_wait(setup.database, verb)
        with pytest.raises(ClearanceExpired):
            clearance.check()


async def test_a_machine_too_busy_for_its_own_gate_blames_nobody_and_uses_no_attempt(setup: GateSetup) -> None:
    """By the time a clearance arrives it is over, each time anew."""

    def starved() -> float:
        nonlocal passed
        passed += GRANT_S
        return passed

    passed = since_boot()
    client = setup.through(MailboxGate(setup.database, boot=starved))
    forever = Permit(setup.permit.account_id, HeldLease(float("inf")))
    with pytest.raises(NotSent, match="this machine is too busy") as waits:
        await GmailMailbox(client).under(forever).modify(setup.message_id, remove=["INBOX"])
    assert "network" not in str(waits.value)
    assert setup.is_in_inbox
    await setup.database.run(jobs.enqueue_many([new_job(CATALOGUE, "unsnooze.gmail", {})], wall_clock()))
    now, token = wall_clock(), new_id()
    await setup.database.run(jobs.open_lease(token, "test", now, now + timedelta(minutes=1)))
    (job,) = await setup.database.run(jobs.claim(token, 1, now))
    ending = ending_of(job, job_error_of(waits.value), DEFAULT, Random(1), now)
    assert await setup.database.run(ending.transaction)
    shown = await setup.database.run(jobs.show_job(job.id))
    assert shown is not None
    assert (shown.state, shown.attempts, shown.not_before) == ("queued", 0, now + BUSY_PAUSE)


async def _valid_clearance(setup: GateSetup) -> Clearance:
    """One that may still be used when it arrives; on a busy machine it may have expired by then."""
    while True:
        clearance = await setup.gate.clear([setup.permit], {}, frozenset())
        with contextlib.suppress(ClearanceExpired):
            clearance.check()
            return clearance


async def test_parts_that_share_a_request_are_judged_one_by_one(setup: GateSetup) -> None:
    late = Permit(setup.permit.account_id, HeldLease(since_boot()))
    others = [setup.mailbox.deliver(raw_mail(f"Number {number}")).id for number in range(4)]
    await held(setup)
    first = await setup.waiting()
    permits = [setup.permit, late, setup.permit, late]
    changes = [
        asyncio.create_task(setup.gmail.under(permit).modify(id, remove=["INBOX"]))
        for id, permit in zip(others, permits, strict=True)
    ]
    ends = await asyncio.gather(first, *changes, return_exceptions=True)
    assert [isinstance(each, LeaseLost) for each in ends] == [False, False, True, False, True]
    assert ["INBOX" in setup.mailbox.get(id).labels for id in others] == [False, True, False, True]


async def test_a_change_without_a_permit_is_not_possible(setup: GateSetup) -> None:
    with pytest.raises(NoPermit):
        await setup.gmail.modify(setup.message_id, remove=["INBOX"])
    with pytest.raises(NoPermit):
        await setup.client.create_label("New")
    assert setup.is_in_inbox


async def test_a_pause_of_one_account_leaves_others_alone(setup: GateSetup) -> None:
    await stop(Caller(setup.database, signed()), str(new_id()), "another one")
    await setup.gmail.under(setup.permit).modify(setup.message_id, remove=["INBOX"])
    assert not setup.is_in_inbox


# Protected labels, judged as they are in the mailbox at that moment.


async def ended(product: Product, id: UUID) -> actions.ActionView:
    changed = asyncio.Event()
    subscription = product.database.subscribe(decisions.CHANNEL, lambda _message: changed.set())
    try:
        async with asyncio.timeout(product.patience_s):
            while True:
                changed.clear()
                for view in await product.database.run(actions.list_actions(100)):
                    if view.id == id and view.state in ("completed", "failed", "canceled"):
                        return view
                await signalled(changed, 0.2)
    finally:
        subscription.close()


async def only_message(database: Database) -> mail.StoredMessage:
    (job,) = await database.run(jobs.list_jobs(state=None, type="classify", limit=10))
    return await database.run(mail.load_message(UUID(json.loads(job.payload_json)["message_id"])))


async def test_a_label_that_was_just_renamed_to_a_protected_name_counts(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path) as product:
        message = product.mailbox.deliver(raw_mail("Hello"))
        taxes, other = (product.mailbox.labels.create(name, {}).id for name in ("Taxes", "Other"))
        product.mailbox.modify(message.id, add=[other])
        await product.live.sync()
        await product.settled(1)
        view = await only_message(sqlite)
        seen = [labels.SeenLabel(each.id, each.name, each.type) for each in product.mailbox.labels.all()]
        await sqlite.run(labels.sync_labels(view.account_id, seen, wall_clock()))
        await sqlite.run(protection.protect("label", "Taxes", "", signed(), wall_clock()))
        for id, name in ((taxes, "Old taxes"), (other, "Taxes")):
            product.mailbox.labels.update(id, name, {})
        requests = ActionRequests(sqlite, CATALOGUE, Policy(), wall_clock)
        asked = await requests.ask(view.id, "trash", {}, source="user", asked_by="test", why="a test", signed=signed())
        assert (await ended(product, asked.action_id)).state == "canceled"
        assert "TRASH" not in product.mailbox.get(message.id).labels


@pytest.mark.parametrize("action", ["archive", "trash", "delete", "snooze", "apply_label"])
@pytest.mark.parametrize("is_known", [True, False])
async def test_a_protected_label_that_was_just_put_on_by_hand_counts(
    database: Database, tmp_path: Path, action: str, is_known: bool
) -> None:
    async with running_product(database, tmp_path) as product:
        message = product.mailbox.deliver(raw_mail("Hello"))
        legal = product.mailbox.labels.create("Legal", {}).id
        await product.live.sync()
        await product.settled(1)
        view = await only_message(database)
        seen = [labels.SeenLabel(each.id, each.name, each.type) for each in product.mailbox.labels.all()]
        await database.run(labels.sync_labels(view.account_id, seen, wall_clock()))
        await database.run(protection.protect("label", "Legal", "", signed(), wall_clock()))
        if not is_known:
            # Deleted and made again: it has an id that nobody here has ever seen.
            product.mailbox.delete_label(legal)
            legal = product.mailbox.labels.create("Legal", {}).id
        product.mailbox.modify(message.id, add=[legal])
        before = product.mailbox.get(message.id).labels
        parameters = {"snooze": {"amount": 1, "units": "days"}, "apply_label": {"label": "New"}}.get(action, {})
        requests = ActionRequests(database, CATALOGUE, Policy(), wall_clock)
        asked = await requests.ask(
            view.id, action, parameters, source="user", asked_by="test", why="a test", signed=signed()
        )
        end = await ended(product, asked.action_id)
        assert end.state == "canceled"
        assert "'legal' is protected" in (end.error or "")
        assert product.mailbox.get(message.id).labels == before
        assert product.mailbox.labels.named("New") is None
