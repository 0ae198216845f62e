"""A process that watches a mailbox and hands its mail in, in fast time, until it is killed.

    python -m support.crash.gmail_process --folder FOLDER --gmail URL --switchboard URL --token TOKEN
        --gmail-token TOKEN --email ADDRESS --speed 100 --begun-at 12345.6

It announces `ready`.
"""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.following.spending import RememberedQuota
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_at
from support.fast_time import FastTime
from support.fork_server import run_as_child
from support.patience import PATIENCE_S
from support.processes import announce

POLL = timedelta(milliseconds=20)


async def main(arguments: argparse.Namespace) -> None:
    fast = FastTime(arguments.speed, arguments.begun_at)
    folder: Path = arguments.folder
    quota = RememberedQuota(folder / "quota", wall=fast.seconds, clock=fast.seconds, call_later=fast.call_later)

    async def token() -> str:
        return arguments.gmail_token

    async with (
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http,
        switchboard_at(arguments.switchboard, arguments.token) as switchboard,
    ):
        connector = GmailConnector(
            GmailClient(http, arguments.gmail, token, quota=quota),
            switchboard,
            Checkpoint(folder / "checkpoint.json"),
            email=arguments.email,
            endpoint_identity=f"gmail:user:{arguments.email}",
            clock=fast.now,
            knowledge=Knowledge([arguments.email], sent=SentIndex(folder / "sent.db")),
            folder=folder,
        )
        announce("ready")
        await connector.run(POLL)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("--gmail", "--switchboard", "--token", "--gmail-token", "--email"):
        parser.add_argument(name, required=True)
    parser.add_argument("--speed", type=float, required=True)
    parser.add_argument("--begun-at", type=float, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
