"""A worker process that takes messages all the way: decided, acted on, woken, undone; and dies where it is told to.

    python -m support.crash.action_process --data-dir FOLDER [--url URL] --gmail URL --token TOKEN --days 3
        --begun CASE --case CASE [--die "begin_action before commit#1" [--freeze]]

First it takes over what the dead held and finishes the case that was begun; steps count from its own case on. Its clock
is `days` ahead, so that the leases of those before it have run out. It announces `dies` or `freezes`, `passed` and
`done`.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from postroom.compose.gate import MailboxGate
from postroom.core.actions.safety import Policy
from postroom.core.jobs.job import JobView
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import ACTION_GMAIL, CATALOGUE, Catalogue, JobType
from postroom.jobs.rescue import Rescuer
from postroom.jobs.run import JobRun
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database
from postroom.store.jobs import jobs
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.executor import DEFAULT_SNOOZE_LABEL, Executor
from postroom.triage.act.undo import UndoService
from postroom.triage.act.undo_requests import undo_one
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.classify import Classify
from postroom.triage.handlers.undo_action import UndoAction
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail
from support.crash.action_cases import SNOOZED_FOR, Case
from support.crash.action_steps import KillableDatabase, KillableTransport, KillPlan, Step
from support.fork_server import run_as_child
from support.gates import owners_client
from support.mailboxes import given
from support.patience import PATIENCE_S
from support.processes import announce

CAP = 20
SOON = timedelta(hours=1)
# However slow the machine is, no process lives longer than its lease.
OPTIONS = WorkerOptions(
    concurrency=1, lease=timedelta(hours=3), heartbeat=timedelta(hours=1), poll=timedelta(seconds=5)
)


class ClockAhead:
    """A clock that goes right, and is ahead."""

    def __init__(self, by: timedelta) -> None:
        self._at_first = self._by = by

    def __call__(self) -> datetime:
        return wall_clock() + self._by

    def forward(self, by: timedelta) -> None:
        self._by += by

    def back(self) -> None:
        """To where it was at first: what a case sleeps through is not to count for the next."""
        self._by = self._at_first


async def _asked_for_labels(_run: JobRun) -> None:
    """A label that was just made is asked about; that has trials of its own."""


class Postroom:
    """The parts at work on one mailbox, and the way of one message through them."""

    def __init__(
        self,
        database: Database,
        news: asyncio.Event,
        mailbox: GmailMailbox,
        as_the_user: GmailMailbox,
        clock: ClockAhead,
        tries: int | None,
    ) -> None:
        self._database = database
        self._as_the_user = as_the_user
        self._clock = clock
        self._catalogue = catalogue_for(tries)
        self._news = news
        executor = Executor(database, self._catalogue, clock)
        handlers = {
            "classify": Classify(database, self._catalogue, clock),
            "action.gmail": ActionGmail(executor, given(mailbox.under), CAP),
            "undo.action": UndoAction(UndoService(database, self._catalogue, clock), given(mailbox.under)),
            "labels.sync.gmail": _asked_for_labels,
            "unsnooze.gmail": UnsnoozeGmail(database, given(mailbox.under), DEFAULT_SNOOZE_LABEL, clock),
        }
        self.worker = Worker(database, self._catalogue, handlers, OPTIONS, clock)
        self._scheduler = Scheduler(database, self._catalogue, (), clock)

    async def take_over(self) -> None:
        """All that the dead held. PostgreSQL may need a moment to see that they are dead."""
        await Rescuer(self._database, self._clock).tick()
        while await self._database.run(jobs.list_jobs(state="running")):
            await asyncio.sleep(0)
            await Rescuer(self._database, self._clock).tick()

    async def at_work(self) -> None:
        """The worker has its lease, and so is past what it does only once."""
        while self.worker._lease is None:
            self._news.clear()
            await self._news.wait()

    async def take_through(self, case: Case) -> None:
        """Whatever was done of it before: each of these may be done again."""
        await self._decide(case)
        done = await self._act(case)
        if case.kind.undone and done.state == "completed":
            # What was undone before its process died is not undone once more, however often it is asked for.
            signed = Signature(new_id(), "cli:ada", "admin")
            await undo_one(self._database, self._catalogue, done.id, signed, self._clock)
            await self._until_idle()
        if case.kind.wakes:
            await self._let_time_pass()
            if "INBOX" in await self._as_the_user.labels_of(case.gmail_id):
                await self._as_the_user.modify(case.gmail_id, remove=["INBOX"])
            await self._let_time_pass()

    async def _decide(self, case: Case) -> None:
        far = self._clock() + SOON
        for job in await self._all_jobs():
            if str(job.id) == case.classify_id and job.not_before is not None and job.not_before > far:
                await self._database.run(jobs.retry_job(job.id, self._clock()))
        await self._until_idle()

    async def _act(self, case: Case) -> actions.ActionView:
        if case.kind.asked and not await self._actions(case):
            requests = ActionRequests(self._database, self._catalogue, Policy(), self._clock)
            signed = Signature(new_id(), "cli:ada", "admin")
            await requests.ask(
                case.id,
                case.kind.action,
                case.parameters,
                source="user",
                asked_by="somebody",
                why="a request",
                signed=signed,
            )
            await self._until_idle()
        (done,) = [each for each in await self._actions(case) if each.actor != "undo"]
        return done

    async def _actions(self, case: Case) -> list[actions.ActionView]:
        return await self._database.run(actions.list_actions(10, message_id=case.id))

    async def _let_time_pass(self) -> None:
        self._clock.forward(SNOOZED_FOR + SOON)
        await self._scheduler.tick()
        await self._until_idle()

    async def _until_idle(self) -> None:
        """Nothing is left to do now; what waits for another try need not wait for it, and nothing is orphaned."""
        while True:
            self._news.clear()
            now = self._clock()
            due = [job for job in await self._all_jobs() if job.state in ("queued", "running")]
            due = [job for job in due if job.not_before is None or job.not_before <= now + SOON]
            if not due:
                await self._database.run(actions.end_orphans(now))
                return
            if all(job.not_before is not None and job.not_before > now for job in due):
                self._clock.forward(SOON)
                await self._scheduler.tick()
                continue
            await self._news.wait()

    async def _all_jobs(self) -> list[JobView]:
        return await self._database.run(jobs.list_jobs(limit=20))


def catalogue_for(tries: int | None) -> Catalogue:
    if tries is None:
        return CATALOGUE
    others = [each for each in CATALOGUE.values() if each is not ACTION_GMAIL]
    return Catalogue(*others, JobType(ACTION_GMAIL.name, retry=RetryPolicy(max_attempts=tries)))


async def main(arguments: argparse.Namespace) -> None:
    kill_plan = KillPlan(Step.parse(arguments.die) if arguments.die else None, freezes=arguments.freeze)
    opened = connect_database(arguments.data_dir, arguments.url)
    news = asyncio.Event()
    database = KillableDatabase(opened, kill_plan, news.set)
    clock = ClockAhead(timedelta(days=arguments.days))
    tries = arguments.case.kind.tries if arguments.case is not None else None

    async def token() -> str:
        return arguments.token

    async with (
        httpx2.AsyncClient(transport=KillableTransport(kill_plan, arguments.token), timeout=PATIENCE_S) as mortal,
        httpx2.AsyncClient(verify=False, trust_env=False, timeout=PATIENCE_S) as plain,
    ):
        gate = MailboxGate(opened, clock)
        mailbox = GmailMailbox(GmailClient(mortal, arguments.gmail, token, gate=gate))
        as_the_user = GmailMailbox(owners_client(plain, arguments.gmail, token))
        postroom = Postroom(database, news, mailbox, as_the_user, clock, tries)
        await postroom.take_over()
        working = asyncio.create_task(postroom.worker.run())
        if arguments.begun is not None:
            await postroom.take_through(arguments.begun)
        if arguments.case is not None:
            clock.back()
            await postroom.at_work()
            kill_plan.arm()
            await postroom.take_through(arguments.case)
        announce("passed", json.dumps(kill_plan.passed))
        postroom.worker.stop()
        await working
    await database.close()
    announce("done")


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--gmail", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--begun", type=Case.parse)
    parser.add_argument("--case", type=Case.parse)
    parser.add_argument("--die")
    parser.add_argument("--freeze", action="store_true")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
