"""The setup for kills during an action: one mailbox, one database, and one process after the other."""

import contextlib
import json
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from random import Random

from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.message import read_mail
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.draft import RuleDraft
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake import inbox
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running
from support import storing
from support.crash.action_cases import KINDS, Case, sender_of
from support.crash.action_evidence import Found, MailboxRecorder, rows_by_message
from support.crash.action_steps import Step
from support.crash.evidence import Place
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup

PROCESS = "support.crash.action_process"
# What the first request would load, loaded once for all processes.
LOADED = ("httpcore2", "anyio._backends._asyncio")
OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "sandbox-token"
# The label of snoozed mail is made once for all.
FIRST_SNOOZE = "POST /labels "
KILLED = -9


@dataclass
class CrashSetup:
    """All that the processes work on, and where each case had its accident."""

    place: Place
    gmail: str
    mailbox: Mailbox
    recorder: MailboxRecorder
    _database: Database
    _fork_server: ForkServer
    _accidents: dict[Case, str] = field(default_factory=dict[Case, str])
    _begun: Case | None = None
    _processes: int = 0
    deaths: int = 0

    async def undisturbed(self, name: str) -> list[Step]:
        """A case that nothing happens to; returns the steps on its way, as every other of its kind goes it."""
        passed = await self._live(await self._new_case(name), None)
        if KINDS[name].wakes:
            passed = {what: times for what, times in passed.items() if not what.startswith(FIRST_SNOOZE)}
        return [Step(what, hit) for what, times in passed.items() for hit in range(1, times + 1)]

    async def strike(self, name: str, step: Step) -> None:
        """A case whose process dies at the step, or loses a reply there; the next process finishes it."""
        case = await self._new_case(name)
        await self._live(case, step)
        if name == "snooze, woken" and self.recorder.changes[case.gmail_id][-2:-1] == ["+INBOX"]:
            # The user archives what has come back, before anyone else knows that it has.
            self.mailbox.modify(case.gmail_id, remove=["INBOX"])

    async def freeze(self, name: str, step: Step) -> None:
        """A case whose process freezes at the step, until another has finished it; then it wakes, and goes on."""
        case = await self._new_case(name)
        frozen = await self._started(case, "--die", str(step), "--freeze")
        await frozen.hear("freezes")
        self._begun = case
        await self._live(None, None)
        frozen.signal(signal.SIGCONT)
        assert await frozen.ended() == 0, f"woken after {step}: {frozen.complaints()}"
        self._accidents[case] = f"frozen at {step}"

    async def finish(self) -> None:
        await self._live(None, None)

    async def check(self) -> Counter[str]:
        """What became of each case; returns how many actions ended how."""
        rows = await rows_by_message(self.place)
        ends: Counter[str] = Counter()
        usual = dict[str, Counter[str]]()
        for case in self._accidents:  # the first of each kind was undisturbed
            usual.setdefault(case.name, self.recorder.calls[case.gmail_id])
        for case, where in self._accidents.items():
            seen, calls = self.recorder.changes[case.gmail_id], self.recorder.calls[case.gmail_id]
            found = Found(case, where, seen, calls, rows[case.message_id])
            ends[found.check(usual[case.name])] += 1
            self._check_known(found)
        names = [label.name for label in self.mailbox.labels.all()]
        assert len(names) == len(set(names))
        assert self.mailbox.labels._next - 1 == sum(name.startswith(("Case/", "Postroom/")) for name in names)
        await self.place.check_integrity()
        return ends

    def _check_known(self, found: Found) -> None:
        """What we know of the message is what it is; the user's own last change we have not been told of."""
        (known,) = found.rows["messages"]
        if found.case.gmail_id not in self.mailbox:
            assert known["deleted"] is not None, found.told("is gone, and nobody knows")
        elif found.case.kind.tries is None:
            expected = self.mailbox.get(found.case.gmail_id).labels
            seen = frozenset(known["labels"]) - ({"INBOX"} if found.case.kind.wakes else frozenset())
            assert seen == expected, found.told("is known otherwise")

    async def _live(self, case: Case | None, step: Step | None) -> dict[str, int]:
        child = await self._started(case, *(() if step is None else ("--die", str(step))))
        code = await child.ended()
        if case is not None:
            self._accidents[case] = "undisturbed" if step is None else f"struck at {step}"
        self._begun = case if code == KILLED else None
        if code == KILLED:
            assert child.announced("dies"), child.complaints()
            self.deaths += 1
            return {}
        assert code == 0, f"{self._accidents.get(case) if case else 'at the end'}: {child.complaints()}"
        return json.loads(child.announced("passed")[0].details)

    async def _started(self, case: Case | None, *dying: str) -> Child:
        self._processes += 1
        begun = () if self._begun is None else ("--begun", self._begun.as_text())
        own = () if case is None else ("--case", case.as_text())
        words = ("--gmail", self.gmail, "--token", TOKEN, "--days", str(self._processes))
        return await self._fork_server.start(PROCESS, *self.place.arguments(), *words, *begun, *own, *dying)

    async def _new_case(self, name: str) -> Case:
        """A message that has come, and whose deciding waits for its process."""
        number, kind, now = len(self._accidents), KINDS[name], wall_clock()
        letter = f"From: {sender_of(number)}\r\nTo: {OWNER}\r\nSubject: {name}\r\n\r\nHello.\r\n"
        delivered = self.mailbox.deliver(letter.encode(), kind.labels)
        account = await self._database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, now))
        await Intake(self._database, None, wall_clock).ingest(_envelope(delivered.id, number))
        ((leased,), _) = await self._database.run(inbox.lease(EMAIL, 1, new_id(), now, new_id()))
        message_id = new_id()
        payload = {"account_id": str(account.id), "message_id": str(message_id)}
        waiting = now.replace(year=now.year + 1000)
        classify = new_job(CATALOGUE, "classify", payload, key=f"classify:{message_id}", not_before=waiting)
        content = read_mail(leased.envelope)
        await self._database.run(
            storing.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, now)
        )
        case = Case(number, name, str(message_id), delivered.id, str(classify.id))
        if not kind.asked:
            rule = (new_id(), RuleDraft(f"case {number}", {"sender_email": case.sender}, kind.action, case.parameters))
            await self._database.run(add_rules([rule], now))
        return case


def _envelope(event_id: str, number: int) -> dict[str, object]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
        "event": {"external_event_id": event_id, "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": sender_of(number)},
        "payload": {"raw": {}, "normalized_text": "hello"},
    }


@contextlib.asynccontextmanager
async def crash_setup(place: Place, processes: ProcessGroup, rng: Random) -> AsyncGenerator[CrashSetup]:
    mailbox = Mailbox(OWNER, rng)
    recorder = MailboxRecorder(mailbox)
    database = await open_database(place.folder, place.url)
    try:
        async with (
            running(recorder.beside(Emulator(mailbox, TOKEN).app())) as gmail,
            fork_server(place.folder, processes, PROCESS, *LOADED) as children,
        ):
            yield CrashSetup(place, gmail, mailbox, recorder, database, children)
    finally:
        await database.close()
