"""A worker process that changes a mailbox under load, as the product does, with short leases.

    python -m support.crash.stopping_process --data-dir FOLDER [--url URL] --gmail URL --token TOKEN --label ID

Each job puts the process's own label and one for the number of its attempt on a message: so the mailbox itself can tell
who has sent a request, and for which claim. It announces `ready`.
"""

import argparse
import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from postroom.compose.gate import MailboxGate
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType
from postroom.core.mail.mailbox import job_error_of
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.run import JobRun
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import GmailError
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.terms import PRICES, Terms
from postroom.store.engine.opening import open_database
from postroom.system.checked_http import CheckedClient
from support.fork_server import run_as_child
from support.processes import announce

CHANGE = "change"
ATTEMPTS = 8
HASTE = RetryPolicy(max_attempts=10_000, base=timedelta(milliseconds=20), cap=timedelta(milliseconds=200))
TYPES = Catalogue(JobType(CHANGE, retry=HASTE))
LEASE = timedelta(seconds=1)
POLL = timedelta(milliseconds=50)
OPTIONS = WorkerOptions(concurrency=8, lease=LEASE, heartbeat=LEASE / 5, drain=LEASE, poll=POLL)
# Two requests at once for eight jobs: most of them wait in the limiter.
TERMS = Terms(1_000_000_000, 0, PRICES, most_at_once=2)


async def main(arguments: argparse.Namespace) -> None:
    database = await open_database(arguments.data_dir, arguments.url)

    async def token() -> str:
        return arguments.token

    async with (
        CheckedClient(trust_env=False, timeout=10) as http,
        MailboxGate.open(database) as gate,
    ):
        mailbox = GmailMailbox(GmailClient(http, arguments.gmail, token, quota=Quota(TERMS), gate=gate))

        async def change(run: JobRun) -> None:
            payload = run.job.payload
            permitted = mailbox.under(run.permit(UUID(payload["account_id"])))
            attempt = payload["attempts"][min(run.job.attempts, ATTEMPTS) - 1]
            try:
                await permitted.modify(payload["gmail_id"], add=[arguments.label, attempt])
            except GmailError as error:
                raise job_error_of(error) from error

        worker = Worker(database, TYPES, {CHANGE: change}, OPTIONS)
        leadership = Leadership(
            database, Scheduler(database, TYPES), Rescuer(database), Pruner(database), lease=LEASE, poll=POLL
        )
        announce("ready", os.getpid())
        await asyncio.gather(worker.run(), leadership.run())


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--gmail", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--label", required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
