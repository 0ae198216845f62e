"""A process that follows a mailbox on an IMAP server, hands its mail in, and carries out actions, until it is killed.

    python -m support.crash.imap_process --folder FOLDER --port PORT --user NAME --switchboard URL --token TOKEN
        --email ADDRESS --orders SOCKET

It announces `ready`. Actions come as lines `ID KIND` from the socket, and each is announced as `done ID` at its end.
"""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from postroom.connectors.imap.idle import IdleHints
from postroom.connectors.imap.live import ImapConnector
from postroom.connectors.imap.place_index import PlaceIndex
from postroom.connectors.mail.knowledge import Knowledge
from postroom.connectors.mail.sent_index import SentIndex
from postroom.connectors.mcp_switchboard import switchboard_at
from postroom.core.errors import MailboxLater
from postroom.core.mail.accounts import imap_endpoint
from postroom.imap.account import ImapAccount, open_session
from postroom.imap.mailbox import ImapMailbox
from postroom.imap.session import Session
from postroom.imap.sign_in import Credentials
from postroom.imap.wire import Endpoint
from postroom.store.engine.clock import wall_clock
from support.fork_server import run_as_child
from support.gates import BY_HAND, OpenGate
from support.imap_server import PASSWORD
from support.patience import PATIENCE_S
from support.processes import announce

POLL = timedelta(milliseconds=200)
AGAIN_S = 0.05
FILED = "Filed"
"""The folder that `file` puts messages into."""


async def main(arguments: argparse.Namespace) -> None:
    async def credentials() -> Credentials:
        return Credentials(arguments.user, PASSWORD)

    endpoint = Endpoint("127.0.0.1", arguments.port, "plain")

    async def opened() -> Session:
        return await open_session(endpoint, credentials, None, PATIENCE_S)

    reading, acting = ImapAccount(opened), ImapAccount(opened)
    folder: Path = arguments.folder
    async with switchboard_at(arguments.switchboard, arguments.token) as switchboard:
        connector = ImapConnector(
            reading,
            switchboard,
            PlaceIndex(folder / "places.db"),
            email=arguments.email,
            endpoint_identity=imap_endpoint(arguments.email),
            clock=wall_clock,
            knowledge=Knowledge([arguments.email], sent=SentIndex(folder / "sent.db")),
            folder=folder,
            hints=IdleHints(opened, POLL.total_seconds(), after_trouble=POLL),
        )
        mailbox = ImapMailbox(acting, OpenGate(), always_folders=[FILED]).under(BY_HAND)
        announce("ready")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(connector.run(POLL))
            tasks.create_task(carry_out_orders(mailbox, arguments.orders))


async def carry_out_orders(mailbox: ImapMailbox, orders: str) -> None:
    """Carry out each action until its end was seen."""
    reader, writer = await asyncio.open_unix_connection(orders)
    while line := await reader.readline():
        id, kind = line.decode().split()
        while True:
            try:
                await act(mailbox, id, kind)
                break
            except MailboxLater:
                await asyncio.sleep(AGAIN_S)
        announce("done", id)
    writer.close()


async def act(mailbox: ImapMailbox, id: str, kind: str) -> None:
    match kind:
        case "archive":
            await mailbox.modify(id, remove=["INBOX"])
        case "star":
            await mailbox.modify(id, add=["STARRED"])
        case "trash":
            await mailbox.trash(id)
        case "file":
            await mailbox.modify(id, add=[await mailbox.label_id(FILED)])
        case _:
            raise AssertionError(kind)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    for name in ("--user", "--switchboard", "--token", "--email", "--orders"):
        parser.add_argument(name, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
