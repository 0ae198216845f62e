"""A small Postroom on a clock that jumps: mail in and out, snoozes, retries, backfill and approvals, and all workers.

Two clocks: `boot_s` is real time, which never jumps; the wall clock, by which everything is stored, does. Each thing
knows in real time when somebody should have had it, and how late that may be: one lease, and the time until a leader
looks.
"""

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from uuid import UUID

from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import EMAIL, Queues
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.jobs.leadership import LEASE as TERM
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import KEEP, Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.outbound.queue.pace import Pace
from postroom.store.actions import approvals
from postroom.store.backfill import backfill
from postroom.store.backfill.backfill_work import LEASE as BACKFILL_LEASE
from postroom.store.engine.ids import new_id
from postroom.store.intake.inbox import LeaseRef
from postroom.store.jobs.job_builders import unsnooze_job
from postroom.store.mail.mail import keep_account
from postroom.store.outbound import outbound, outbound_recipients
from support.store import inbox_setup
from support.store.fault_cases_approvals import LIFE, pending
from support.store.fault_cases_backfill import ENDPOINT, created, handing_out
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import added
from support.store.fault_cases_submissions import submission, submitted
from support.store.job_setup import LEASE as WORKER_LEASE
from support.store.job_setup import JobSetup

HOUR_S, DAY_S = 3600.0, 86_400.0
JUMPS = (-DAY_S, -HOUR_S, HOUR_S, DAY_S)
STEP_S = 10.0
MOST_DOWN_S = 5.0
MAIL_LEASE = Pace().lease
# A leader takes over after a term, and looks again at what was stored while it corrected, a minute later.
NOTICED_S = TERM.total_seconds() + 60.0 + 2 * STEP_S


@dataclass
class Due:
    """Something that somebody should have got at `at_s`; `late_s` is how much later at most. A dead owner holds it for
    `lease_s`, which begins again when the clock is set back: the owner might be alive.
    """

    at_s: float
    late_s: float = NOTICED_S
    lease_s: float | None = None


class JumpingWorld:
    """Everything that happens is chosen by `rng`; `finish` ends only when all is done."""

    def __init__(self, setup: JobSetup, rng: Random) -> None:
        self.setup = setup
        self.rng = rng
        self.boot_s = 1_000_000.0
        self.due: dict[str, Due] = {}
        self.asked: dict[UUID, float] = {}
        self.log: list[str] = []
        self.done = 0
        self._queues = Queues()
        self._intake = Intake(setup.database, None, setup.clock, queues=self._queues)
        self._buffer = Buffer(setup.database, self._queues, setup.clock)
        self._leader = self._new_leader()
        self._sender_id = 0
        self._backfill: UUID | None = None
        self._dies = True
        self._number = 0
        self._jumped_ahead = False

    async def begin(self) -> None:
        self._sender_id = (await added(self.setup, f"{new_id().hex}@example.com")).id
        email, now = ENDPOINT.rpartition(":")[2], self.setup.clock()
        await self.setup.database.run(keep_account(new_id(), "gmail", ENDPOINT, email, now))
        await self._ask()
        await self._start_leader()

    async def step(self) -> None:
        """Let some seconds pass, do one thing, and let everybody work."""
        self._pass_time(self.rng.uniform(0.5, STEP_S))
        acts = (self._mail_in, self._mail_out, self._snooze, self._job, self._ask, self._answer, self._backfilling)
        choice = self.rng.random()
        if choice < 0.2:
            self.jump(self.rng.choice(JUMPS))
        elif choice < 0.27:
            await self.restart()
        else:
            await self.rng.choice(acts)()
        await self.work()

    async def finish(self) -> None:
        """No more jumps, and nobody dies any more: everything gets done in time."""
        self._dies = False
        while self.due:
            self._pass_time(STEP_S)
            await self.work()
        for id in list(self.asked):
            await self._answer_one(id)
        await self._end_backfill()
        await self._buffer.close()

    def jump(self, seconds: float) -> None:
        self._note(f"jump {seconds:+.0f} s")
        self._jumped_ahead |= seconds > 0
        self.setup.clock.forward(seconds)
        for due in self.due.values():
            if due.lease_s is not None:
                due.at_s = max(due.at_s, self.boot_s + due.lease_s)

    async def restart(self) -> None:
        """Everybody is killed, the clock may be set meanwhile, and somebody starts again."""
        self._note("kill -9")
        self._pass_time(self.rng.uniform(0, MOST_DOWN_S))
        if self.rng.random() < 0.5:
            self.jump(self.rng.choice(JUMPS))
            for due in self.due.values():  # nobody can tell for how long nothing ran
                due.late_s += MOST_DOWN_S + STEP_S
        await self._start_leader()

    async def work(self) -> None:
        await self._lead()
        await self._consume()
        await self._send()
        await self._run_jobs()
        await self._hand_out()
        await self._check_approvals()
        for name, due in self.due.items():
            late = self.boot_s - due.at_s
            assert late <= due.late_s, f"{name} is {late:.0f} s late; at most {due.late_s:.0f}\n" + "\n".join(self.log)

    async def _start_leader(self) -> None:
        self._leader = self._new_leader()
        await self._leader.compare_with_last_leader()
        self._leader.begin()

    async def _lead(self) -> None:
        if await self._leader.tick() is None:
            self._leader.begin()

    def _new_leader(self) -> Leadership:
        database, clock = self.setup.database, self.setup.clock
        parts = Scheduler(database, CATALOGUE, (), clock), Rescuer(database, clock), Pruner(database, KEEP, clock)
        return Leadership(database, *parts, clock=clock, boot=lambda: self.boot_s)

    async def _mail_in(self) -> None:
        name = self._expect("message")
        await self._intake.ingest(inbox_setup.mail(name))

    async def _consume(self) -> None:
        await self._buffer.sweep()
        for each in await self._buffer.lease(EMAIL, 10):
            name = each.envelope.event.external_event_id.removeprefix("mail-")
            if self._is_killed(name, EMAIL.lease):
                continue
            assert await self._buffer.ack([LeaseRef(each.id, each.token)]) == [None]
            self._finish(name)

    async def _mail_out(self) -> None:
        new = submission(self._sender_id)
        self._expect(f"mail {new.id}")
        await submitted(self.setup, new)

    async def _send(self) -> None:
        run, now = self.setup.database.run, self.setup.clock()
        for each in await run(outbound.lease_mail(new_id(), 10, now, now + MAIL_LEASE)):
            name = f"mail {each.id}"
            if not each.attempts or not await self._is_for_somebody(each):
                await run(outbound_recipients.release_mail(each.hold, now))
            elif not self._is_killed(name, MAIL_LEASE):
                if self._dies and self.rng.random() < 0.3:
                    await run(outbound.defer(each.hold, None, now + timedelta(seconds=60), "451 later", now))
                    self._expect_again(name, 60)
                else:
                    await run(outbound.deliver(each.hold, "sent", now))
                    self._finish(name)

    async def _is_for_somebody(self, mail: outbound.LeasedMail) -> bool:
        (outgoing,) = await self.setup.database.run(outbound_recipients.load_outgoing([mail.hold], self.setup.clock()))
        return outgoing is not None and bool(outgoing.recipients)

    async def _snooze(self) -> None:
        amount = timedelta(minutes=self.rng.uniform(0.5, 50))
        whose = new_id(), new_id(), new_id()
        job = unsnooze_job(CATALOGUE, *whose, "Label_1", self.setup.clock() + amount, 0, by_amount=True)
        await self.setup.accept(job)
        self.due[str(job.id)] = Due(self.boot_s + amount.total_seconds())
        self._note(f"snooze {job.id} for {amount.total_seconds():.0f} s")

    async def _job(self) -> None:
        job = await self.setup.enqueue(max_attempts=1000)
        self.due[str(job.id)] = Due(self.boot_s)

    async def _run_jobs(self) -> None:
        for job in await self.setup.claim(token=await self.setup.open_lease()):
            name = str(job.id)
            if self._is_killed(name, WORKER_LEASE):
                continue
            if self._dies and name in self.due and self.rng.random() < 0.2:
                await self.setup.retry_later(job, seconds=30)
                self._expect_again(name, 30)
            elif await self.setup.finish(job):
                self._finish(name)

    async def _ask(self) -> None:
        id = await pending(self.setup)
        self.asked[id] = self.boot_s
        self._note(f"ask {id}")

    async def _answer(self) -> None:
        if self.asked:
            await self._answer_one(self.rng.choice(list(self.asked)))

    async def _answer_one(self, id: UUID) -> None:
        """A yes counts, unless its time is over by a clock that may have jumped ahead."""
        del self.asked[id]
        self.due.pop(f"deadline of {id}", None)
        job, shown = self.setup.new(max_attempts=1000), await self.setup.database.run(approvals.show_approval(id))
        answer = await self.setup.database.run(
            approvals.approve_action(id, shown.action_hash, job, signed(), self.setup.clock())
        )
        assert answer.state == "queued" or self._jumped_ahead, self.log
        if answer.state == "queued":
            self.due[str(job.id)] = Due(self.boot_s)

    async def _check_approvals(self) -> None:
        """None can be answered for longer than it was meant to be."""
        for id, since_s in self.asked.items():
            shown = await self.setup.database.run(approvals.show_approval(id))
            assert shown.expires_at is not None
            left = (shown.expires_at - self.setup.clock()).total_seconds()
            most = LIFE.total_seconds() - (self.boot_s - since_s)
            self._watch_approval(id, late=left > most + NOTICED_S)

    def _watch_approval(self, id: UUID, *, late: bool) -> None:
        name = f"deadline of {id}"
        if not late:
            self.due.pop(name, None)
        elif name not in self.due:
            self._note(f"{id} can be answered for too long")
            self.due[name] = Due(self.boot_s)

    async def _backfilling(self) -> None:
        if self._backfill is None:
            self._backfill = await created(self.setup)
            self._expect_again("backfill", 0)

    async def _hand_out(self) -> None:
        if self._backfill is None:
            return
        held = await self.setup.database.run(handing_out(self.setup))
        if held is not None and not self._is_killed("backfill", BACKFILL_LEASE):
            await self._end_backfill()
            self._finish("backfill")

    async def _end_backfill(self) -> None:
        if self._backfill is not None:
            id, self._backfill = self._backfill, None
            await self.setup.database.run(backfill.cancel_backfill(id, self.setup.clock(), signed()))

    def _is_killed(self, name: str, lease: timedelta) -> bool:
        """Whether its holder dies now: somebody else gets it after one lease."""
        if self._dies and name in self.due and self.rng.random() < 0.15:
            self._expect_again(name, lease.total_seconds(), lease.total_seconds())
            return True
        return False

    def _expect(self, kind: str) -> str:
        self._number += 1
        name = kind if kind.startswith("mail ") else f"{kind} {self._number} {new_id().hex}"
        self._expect_again(name, 0)
        return name

    def _expect_again(self, name: str, after_s: float, lease_s: float | None = None) -> None:
        self.due[name] = Due(self.boot_s + after_s, lease_s=lease_s)
        self._note(f"{name} in {after_s:.0f} s")

    def _finish(self, name: str) -> None:
        self._note(f"done {name}")
        if self.due.pop(name, None) is not None:
            self.done += 1

    def _note(self, what: str) -> None:
        self.log.append(f"{self.boot_s:.0f} {self.setup.clock():%d %H:%M:%S} {what}")

    def _pass_time(self, seconds: float) -> None:
        self.boot_s += seconds
        self.setup.clock.forward(seconds)
