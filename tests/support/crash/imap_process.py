"""A process that follows a mailbox on an IMAP server, hands its mail in, and carries out actions, until it is killed.

    python -m support.crash.imap_process --folder FOLDER --port PORT --user NAME --switchboard URL --token TOKEN
        --email ADDRESS [--orders SOCKET] [--contacts FILE]

It announces `ready`. Actions come as lines `ID KIND` from the socket, and each is announced as `done ID` at its end.
As the product does, it keeps the pre-image of an action before it begins, and tells the mailbox when it repeats one.
"""

import argparse
import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from postroom.core.actions.action import label_change
from postroom.core.actions.label_changes import places_in
from postroom.core.errors import MailboxLater
from postroom.core.mail.accounts import endpoint_of
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.imap.account import ImapAccount, open_session
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.following.live import ImapConnector
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom.mailboxes.imap.session import ImapSession
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.wire import Endpoint
from postroom.sources.mcp_switchboard import switchboard_at
from postroom.system.wall_clock import wall_clock
from support.fork_server import run_as_child
from support.gates import BY_HAND, OpenGate
from support.imap_server import PASSWORD
from support.patience import PATIENCE_S
from support.processes import announce

POLL = timedelta(milliseconds=200)
AGAIN_S = 0.05
FILED = "Filed"
"""The folder that `file` puts messages into."""
CHANGES = {"archive": label_change("archive"), "star": label_change("star"), "trash": label_change("trash")}


async def main(arguments: argparse.Namespace) -> None:
    async def credentials() -> Credentials:
        return Credentials(arguments.user, PASSWORD)

    endpoint = Endpoint("127.0.0.1", arguments.port, "plain")

    async def opened() -> ImapSession:
        return await open_session(endpoint, credentials, None, PATIENCE_S)

    reading, acting = ImapAccount(opened), ImapAccount(opened)
    folder: Path = arguments.folder
    contacts = arguments.contacts.read_text().split() if arguments.contacts else []
    async with switchboard_at(arguments.switchboard, arguments.token) as switchboard:
        connector = ImapConnector(
            reading,
            switchboard,
            PlaceIndex(folder / "places.db"),
            email=arguments.email,
            endpoint_identity=endpoint_of("imap", arguments.email),
            clock=wall_clock,
            knowledge=Knowledge(
                [arguments.email], sent=SentIndex(folder / "sent.db"), contacts=lambda: frozenset(contacts)
            ),
            folder=folder,
            hints=IdleHints(opened, POLL.total_seconds(), after_trouble=POLL),
        )
        mailbox = ImapMailbox(acting, OpenGate(), always_folders=[FILED]).under(BY_HAND)
        announce("ready")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(connector.run(POLL))
            if arguments.orders:
                tasks.create_task(carry_out_orders(mailbox, arguments.orders, folder))


async def carry_out_orders(mailbox: ImapMailbox, orders: str, folder: Path) -> None:
    """Carry out each action until its end was seen."""
    reader, writer = await asyncio.open_unix_connection(orders)
    while line := await reader.readline():
        id, kind = line.decode().split()
        while True:
            try:
                await prepare(mailbox, id, kind, folder / hashlib.sha256(id.encode()).hexdigest())
                await act(mailbox, id, kind)
                break
            except MailboxLater:
                await asyncio.sleep(AGAIN_S)
        announce("done", id)
    writer.close()


async def prepare(mailbox: ImapMailbox, id: str, kind: str, image: Path) -> None:
    """Keep the pre-image, or tell the mailbox that an earlier attempt may have moved the message."""
    change = CHANGES.get(kind) or label_change("apply_label", await mailbox.label_id(FILED))
    if (kept := read_image(image)) is not None:
        labels = frozenset[str](kept["labels"])
        await mailbox.expect(id, kept["place"], labels, change.applied_to(labels))
        return
    if leaving := places_in(change.remove):
        await mailbox.expect(id, None, leaving)
    seen = {"labels": sorted(await mailbox.labels_of(id)), "place": await mailbox.place_of(id)}
    part = image.with_suffix(".part")
    part.write_text(json.dumps(seen))
    part.replace(image)


def read_image(file: Path) -> dict[str, Any] | None:
    return json.loads(file.read_bytes()) if file.exists() else None


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
    for name in ("--user", "--switchboard", "--token", "--email"):
        parser.add_argument(name, required=True)
    parser.add_argument("--orders")
    parser.add_argument("--contacts", type=Path)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
