"""A process that follows a mailbox at Gmail with a quota, in a time that it shares with the test, until it is killed.

    python -m support.crash.gmail_burst_process --folder FOLDER --time FILE --gmail URL --switchboard URL --token TOKEN
        --gmail-token TOKEN --email ADDRESS --contacts FILE

It announces `ready`.
"""

import argparse
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.following.spending import RememberedQuota
from postroom.mailboxes.gmail.quota import Ticket
from postroom.mailboxes.gmail.terms import Use
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_at
from support.fork_server import run_as_child
from support.patience import PATIENCE_S
from support.processes import announce
from support.shared_time import IdleTimeLoop, SharedTime, idle_time_loop

POLL = timedelta(seconds=30)
new_loop = IdleTimeLoop


class AwaitedQuota(RememberedQuota):
    """No time passes while Gmail answers."""

    @asynccontextmanager
    async def admitted(self, call: str, units: int, use: Use = "live") -> AsyncGenerator[Ticket]:
        async with super().admitted(call, units, use) as ticket:
            with idle_time_loop().awaiting_answer():
                yield ticket


class AwaitedSwitchboard(McpSwitchboard):
    """No time passes while the switchboard answers."""

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        with idle_time_loop().awaiting_answer():
            return await super()._call(tool, arguments)


async def main(arguments: argparse.Namespace) -> None:
    time = SharedTime(arguments.time)
    idle_time_loop().live_in(time)
    folder: Path = arguments.folder
    contacts = frozenset(arguments.contacts.read_text().split())
    quota = AwaitedQuota(folder / "quota", wall=time.seconds, clock=time.seconds)

    async def token() -> str:
        return arguments.gmail_token

    async with (
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http,
        switchboard_at(arguments.switchboard, arguments.token) as plain,
    ):
        connector = GmailConnector(
            GmailClient(http, arguments.gmail, token, quota=quota),
            AwaitedSwitchboard(plain._connect),  # pyright: ignore[reportPrivateUsage]
            Checkpoint(folder / "checkpoint.json"),
            email=arguments.email,
            endpoint_identity=f"gmail:user:{arguments.email}",
            clock=time.now,
            knowledge=Knowledge([arguments.email], sent=SentIndex(folder / "sent.db"), contacts=lambda: contacts),
            folder=folder,
        )
        announce("ready")
        await connector.run(POLL)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    for name in ("--folder", "--time", "--contacts"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--gmail", "--switchboard", "--token", "--gmail-token", "--email"):
        parser.add_argument(name, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse, new_loop=new_loop)
