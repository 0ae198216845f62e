"""A connector process that ingests live mail and works on a backfill, until it is killed.

    python -m support.crash.backfill_process --folder FOLDER --gmail URL --switchboard URL --token TOKEN
        --gmail-token TOKEN --email ADDRESS

It announces `ready`, `read` with the number of messages whenever it has read some, and `reported` with the status of
the job.
"""

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.worker import SHORTEST_POLL_S, BackfillWorker
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import GmailError
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.resources import Message
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_at
from postroom.sources.switchboard_client import BackfillProgress, BackfillStatus
from postroom.system.wall_clock import wall_clock
from support.fork_server import run_as_child
from support.patience import PATIENCE_S
from support.processes import announce

POLL = timedelta(milliseconds=200)
INTERVAL = 7


class AnnouncingClient(GmailClient):
    async def message_batches(self, message_ids: Sequence[str]) -> AsyncGenerator[Mapping[int, Message | GmailError]]:
        async for batch in super().message_batches(message_ids):
            announce("read", len(batch))
            yield batch


class AnnouncingReports:
    """The switchboard's backfill tools."""

    def __init__(self, switchboard: McpSwitchboard) -> None:
        self._switchboard = switchboard
        self.poll_backfill = switchboard.poll_backfill

    async def report_backfill(self, progress: BackfillProgress) -> BackfillStatus:
        answer = await self._switchboard.report_backfill(progress)
        announce("reported", answer.status)
        return answer


async def main(arguments: argparse.Namespace) -> None:
    folder: Path = arguments.folder

    async def token() -> str:
        return arguments.gmail_token

    async with (
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http,
        switchboard_at(arguments.switchboard, arguments.token) as switchboard,
    ):
        endpoint = f"gmail:user:{arguments.email}"
        connector = GmailConnector(
            AnnouncingClient(http, arguments.gmail, token),
            switchboard,
            Checkpoint(folder / "checkpoint.json"),
            email=arguments.email,
            endpoint_identity=endpoint,
            clock=wall_clock,
            knowledge=Knowledge([arguments.email], sent=SentIndex(folder / "sent.db")),
            folder=folder,
        )
        reports = AnnouncingReports(switchboard)
        begin = connector.backfill(reports, INTERVAL, time.monotonic).begin
        lease = KeptLease(folder / "backfill-lease.json")
        worker = BackfillWorker(reports, "gmail", endpoint, begin, clock=time.monotonic, lease=lease)
        announce("ready")
        await asyncio.gather(connector.run(POLL), worker.run(SHORTEST_POLL_S))


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("--gmail", "--switchboard", "--token", "--gmail-token", "--email"):
        parser.add_argument(name, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
