"""Mail sent while answers are lost and processes killed: nothing twice, nothing lost, and what nobody can tell is told.

Every send is seen by the mailbox itself, at the moment at which it happens. Now and then the user deletes the copy of
what was just sent: where the answer is lost too, nobody can tell, and that mail has to end as `unknown`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.jobs.types import CLASSIFY, Catalogue
from postroom.core.lifecycle import DELIVERY
from postroom.core.mail.carrier import MARK
from postroom.core.mail.message import read_mail, to_raw
from postroom.core.queue.envelope import parse_envelope
from postroom.core.queue.queues import EMAIL
from postroom.intake.intake import Intake
from postroom.outbound.queue.pace import Pace
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.engine.opening import open_database
from postroom.store.intake import inbox
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.mail.mail import Account
from postroom.store.outbound import outbound
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox, Message
from postroom_sandbox.server import running_emulator
from support import storing
from support.crash.evidence import Place
from support.crash.sends_process import TYPES
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup
from support.scale import scale
from support.store.fault_cases_registry import signed

CHILD = "support.crash.sends_process"
OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "token-of-the-sandbox"
LOST = 0.2
DELETED = 0.05
REPLIES = 10  # one in so many is an answer
LATEST_KILL_S = 0.1
PATIENCE_S = 900.0
SETTLED = DELIVERY.terminal | {"unknown"}


@dataclass
class Ledger:
    """Every mail that has left the mailbox, by its mark, and whose copy the user then deleted."""

    mailbox: Mailbox
    rng: Random
    left: Counter[str] = field(default_factory=Counter[str])
    recipients: dict[str, str] = field(default_factory=dict[str, str])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    deleted: set[str] = field(default_factory=set[str])
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, change: Change) -> None:
        if change.kind != "messageAdded" or "SENT" not in change.labels:
            return
        message = self.mailbox.get(change.message_id)
        mark = message.mail.header(MARK)
        self.left[mark] += 1
        self.recipients[mark] = message.mail.header("To")
        self.ids[mark] = message.id
        if self.rng.random() < DELETED:
            self.deleted.add(mark)
            self.mailbox.delete(message.id)
        self.news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.left.total() < count:
                self.news.clear()
                await self.news.wait()


@dataclass
class SendingSetup:
    place: Place
    database: Database
    emulator: Emulator
    gmail: str
    ledger: Ledger
    fork_server: ForkServer
    account: Account

    async def start(self) -> Child:
        # To look through all that was sent takes its time, the more the more it is.
        words = ("--gmail", self.gmail, "--token", TOKEN, "--lease", str(scale(3, 20) / 2))
        child = await self.fork_server.start(CHILD, *self.place.arguments(), *words)
        await child.hear("ready")
        return child

    async def ask(self, count: int) -> dict[UUID, str]:
        """Ask for so many actions; return whom the mail of each action is to reach."""
        requests = ActionRequests(self.database, TYPES, Policy(), wall_clock)
        wanted: dict[UUID, str] = {}
        message_id: UUID | None = None
        for number in range(count):
            to = f"r{number}@example.com"
            if number % REPLIES == 0 or message_id is None:
                message_id = await self._received(number, to)
                action, parameters = "auto_reply", {"text": f"Away {number}."}
            else:
                action, parameters = "forward", {"to": to, "note": f"Number {number}."}
            asked = await requests.ask(
                message_id, action, parameters, source="user", asked_by="test", why="a test", signed=signed()
            )
            wanted[asked.action_id] = to
        return wanted

    async def _received(self, number: int, sender: str) -> UUID:
        headers = (("From", sender), ("To", OWNER), ("Subject", f"Hello {number}"), ("Message-ID", f"<{number}@x>"))
        raw = "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\nHello.\r\n"
        there = self.emulator.mailbox.deliver(raw.encode())
        await Intake(self.database, None, wall_clock).ingest(_envelope(there, headers))
        ((leased,), _) = await self.database.run(inbox.lease(EMAIL, 1, new_id(), wall_clock(), new_id()))
        classify, ids = new_job(Catalogue(CLASSIFY), "classify", {}), (new_id(), new_id())
        content = read_mail(parse_envelope(leased.envelope))
        await self.database.run(
            storing.store_message(leased, self.account, ids, content, lambda _id: classify, wall_clock())
        )
        await self.database.run(jobs.cancel_job(classify.id, wall_clock()))
        return ids[1]

    async def all_settled(self, count: int) -> list[outbound.MailView]:
        changed = asyncio.Event()
        subscription = self.database.subscribe(outbound.CHANNEL, lambda _message: changed.set())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    changed.clear()
                    found = await self.database.run(outbound.list_mail(10_000))
                    if len(found) == count and all(each.state in SETTLED for each in found):
                        return found
                    await signalled(changed, 0.1)
        finally:
            subscription.close()


def _envelope(message: Message, headers: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    raw = to_raw(
        thread_id=message.thread_id, headers=headers, labels=message.labels, snippet="", sent_at=message.received_at
    )
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
        "event": {
            "external_event_id": message.id,
            "external_thread_id": message.thread_id,
            "observed_at": message.received_at.isoformat(),
        },
        "sender": {"identity": dict(headers)["From"]},
        "payload": {"raw": raw, "normalized_text": "Hello."},
    }


@asynccontextmanager
async def sending_setup(place: Place, processes: ProcessGroup, rng: Random) -> AsyncGenerator[SendingSetup]:
    mailbox = Mailbox(OWNER, rng)
    emulator = Emulator(mailbox, TOKEN, seed=rng.randrange(2**32))
    ledger = Ledger(mailbox, Random(rng.randrange(2**32)))
    mailbox.observers.append(ledger.note)
    database = await open_database(place.folder, place.url)
    try:
        account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
        async with running_emulator(emulator) as gmail, fork_server(place.folder, processes, CHILD) as children:
            yield SendingSetup(place, database, emulator, gmail, ledger, children, account)
    finally:
        await database.close()


async def test_mail_sent_by_killed_processes_to_a_mailbox_that_loses_answers_goes_out_once(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    sends, kills = scale(50, 500), scale(3, 20)
    async with sending_setup(place, children, rng) as setup:
        wanted = await setup.ask(sends)
        setup.emulator.faults.order(Fault(kind="drop_reply", path="/gmail/", share=LOST))
        process = await setup.start()
        for number in range(kills):
            await setup.ledger.until(int(sends * 0.9 * (number + rng.random()) / kills))
            await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
            await process.kill()
            process = await setup.start()
        found = await setup.all_settled(sends)
        await process.kill()
        done = {each.id: each for each in await setup.database.run(actions.list_actions(10_000))}
        shown = {each.id for each in await setup.database.run(outbound.list_mail(10_000, "unknown"))}
    lost = setup.emulator.faults.struck.count("drop_reply")
    states = Counter(each.state for each in found)
    drafts = len(list(setup.emulator.mailbox.search(label_ids=["DRAFT"])))
    print(f"{sends} sends, {kills} kills, {lost} answers lost: {dict(states)}, {drafts} stray drafts")
    assert lost > 0
    for each in found:
        assert each.action_id is not None
        check(setup.ledger, each, done[each.action_id], wanted[each.action_id])
        assert (each.id in shown) == (each.state == "unknown")
    assert set(setup.ledger.left) <= {str(each.id) for each in found}
    # What is left over is taken away after the mail has ended; the last kill interrupts that.
    assert drafts <= kills + Pace().at_once


def check(ledger: Ledger, delivery: outbound.MailView, action: actions.ActionView, to: str) -> None:
    mark = str(delivery.id)
    assert ledger.left[mark] == 1, f"it was sent {ledger.left[mark]} times; it is {delivery.state}"
    assert ledger.recipients[mark] == to
    match delivery.state:
        case "sent":
            assert delivery.sent_message_id == ledger.ids[mark]
            assert action.state == "completed"
            assert action.undo_hint is not None
            assert action.undo_hint["sent_message_id"] == ledger.ids[mark]
        case "unknown":
            assert mark in ledger.deleted, "its copy is in the mailbox, and was not found"
            assert action.state == "executing"
            assert "postroom outbound resolve" in (action.error or "")
        case state:
            raise AssertionError(f"a mail that was sent is {state}: {delivery.error}")
