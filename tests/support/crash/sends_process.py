"""A process that carries out actions and sends their mail, as the product does, in a hurry and until it is killed.

    python -m support.crash.sends_process --data-dir FOLDER [--url URL] --gmail URL --token TOKEN --lease 1.5

It announces `ready`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from postroom.compose.gate import MailboxGate
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.mailboxes.gmail.carrier import GmailCarrier
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.pace import Pace
from postroom.store.engine.opening import open_database
from postroom.system.checked_http import CheckedClient
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.executor import Executor
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.outbound_send import OutboundSend
from support.fork_server import run_as_child
from support.mailboxes import always, given
from support.patience import PATIENCE_S
from support.processes import announce

HASTE = RetryPolicy(max_attempts=1000, base=timedelta(milliseconds=20), cap=timedelta(milliseconds=200))
TYPES = Catalogue(JobType("action.gmail", retry=HASTE), JobType("outbound.send", retry=HASTE))
POLL = timedelta(milliseconds=100)
LEASE = timedelta(seconds=1)
PACE = Pace(
    first=timedelta(milliseconds=50),
    longest=timedelta(milliseconds=200),
    poll=timedelta(milliseconds=50),
    looks=(0.0, 0.05),
    at_once=8,
)
OPTIONS = WorkerOptions(concurrency=4, lease=LEASE, heartbeat=LEASE / 4, drain=LEASE, poll=POLL)
CAP = 1_000_000


async def main(arguments: argparse.Namespace) -> None:
    database = await open_database(arguments.data_dir, arguments.url)

    async def token() -> str:
        return arguments.token

    async with CheckedClient(trust_env=False, timeout=PATIENCE_S) as http, MailboxGate.open(database) as gate:
        client = GmailClient(http, arguments.gmail, token, gate=gate)
        mailbox = GmailMailbox(client)
        handlers = {
            "action.gmail": ActionGmail(Executor(database, TYPES, wall_clock), given(mailbox.under), CAP),
            "outbound.send": OutboundSend(database, always(mailbox), CAP, timedelta(days=7)),
        }
        worker = Worker(database, TYPES, handlers, OPTIONS)
        leadership = Leadership(
            database, Scheduler(database, TYPES), Rescuer(database), Pruner(database), lease=LEASE, poll=POLL
        )
        lease = timedelta(seconds=arguments.lease)
        pace = replace(PACE, lease=lease, renew=lease / 3)
        sender = OutboundDispatcher(database, given(lambda permit: GmailCarrier(client.under(permit))), pace)
        announce("ready")
        await asyncio.gather(worker.run(), leadership.run(), sender.run())


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--gmail", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--lease", type=float, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
