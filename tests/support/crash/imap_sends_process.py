"""A process that sends mail from an IMAP mailbox, as the product does, and dies at a step of its way.

    python -m support.crash.imap_sends_process --data-dir FOLDER --imap PORT --user USER --smtp PORT --mail ID
        --minutes 4 [--files] [--die "IMAP UID STORE before#2"]

Steps are those of the store, and for each command of IMAP and each part of the conversation over SMTP two: `before` it
is sent, and `answered`, when the answer is here and nobody has looked at it. It announces `dies`, or `passed` with the
steps once the mail is settled. Its clock is so many minutes ahead: leases of those before it have run out.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from postroom.compose.gate import MailboxGate
from postroom.core.actions.permits import Permit
from postroom.core.lifecycle import DELIVERY
from postroom.core.outbound.replies import Phase, ReplyLines
from postroom.mailboxes.imap.account import ImapAccount, open_session
from postroom.mailboxes.imap.commands import Command
from postroom.mailboxes.imap.connection import Answer, Connection
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom.mailboxes.imap.sending import ImapCarrier
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.submission import Submission
from postroom.mailboxes.imap.wire import Endpoint
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.pace import Pace
from postroom.outbound.smtp.channel import Channel
from postroom.store.engine.opening import open_database
from postroom.store.outbound import outbound
from postroom.system.wall_clock import wall_clock
from support.crash.action_steps import KillableDatabase, KillPlan, Step
from support.fork_server import run_as_child
from support.imap_server import PASSWORD
from support.mailboxes import given
from support.processes import announce

SETTLED = DELIVERY.terminal | {"unknown"}
OWNER = "mara@lindqvist.example"
PACE = Pace(first=timedelta(), longest=timedelta(), poll=timedelta(milliseconds=20), looks=(0.0,))


def watch_the_wires(kill_plan: KillPlan) -> None:
    """Each command and each reply may be the last."""
    ask, write, reply_lines = Connection.ask, Channel.write, Channel.reply_lines

    async def asked(connection: Connection, wanted: Command, **more: Any) -> Answer:
        kill_plan.kill_at(f"IMAP {wanted.name} before")
        answer = await ask(connection, wanted, **more)
        kill_plan.kill_at(f"IMAP {wanted.name} answered")
        return answer

    def written(channel: Channel, data: bytes, phase: Phase) -> None:
        kill_plan.kill_at(f"SMTP {phase} before")
        write(channel, data, phase)

    async def replied(channel: Channel, phase: Phase, seconds: float) -> ReplyLines:
        lines = await reply_lines(channel, phase, seconds)
        kill_plan.kill_at(f"SMTP {phase} answered")
        return lines

    for owner, name, watched in ((Connection, "ask", asked), (Channel, "write", written)):
        setattr(owner, name, watched)
    setattr(Channel, "reply_lines", replied)  # noqa: B010


async def main(arguments: argparse.Namespace) -> None:
    kill_plan = KillPlan(None if arguments.die is None else Step.parse(arguments.die))
    watch_the_wires(kill_plan)
    news = asyncio.Event()
    opened = await open_database(arguments.data_dir)
    database = KillableDatabase(opened, kill_plan, news.set)
    ahead = timedelta(minutes=arguments.minutes)

    async def mailbox_password() -> Credentials:
        return Credentials(arguments.user, PASSWORD)

    server = Endpoint("127.0.0.1", arguments.imap, "plain")
    account = ImapAccount(partial(open_session, server, mailbox_password, None))
    way_out = Endpoint("127.0.0.1", arguments.smtp, "plain")
    submission = Submission(way_out, mailbox_password, files_copies=arguments.files)
    async with MailboxGate.open(opened) as gate:
        mailbox = ImapMailbox(account, gate)

        def carrier(permit: Permit) -> ImapCarrier:
            return ImapCarrier(mailbox.under(permit), submission, OWNER)

        sender = OutboundDispatcher(database, given(carrier), PACE, lambda: wall_clock() + ahead)
        kill_plan.arm()
        running = asyncio.create_task(sender.run())
        while (await opened.run(outbound.load_mail(arguments.mail))).state not in SETTLED:
            news.clear()
            await news.wait()
        # The spare drafts are removed after the end is recorded.
        running.cancel()
        await asyncio.wait({running})
    account.close()
    await opened.close()
    announce("passed", json.dumps(kill_plan.passed))


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    for number in ("--imap", "--smtp", "--minutes"):
        parser.add_argument(number, type=int, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--mail", type=UUID, required=True)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--die")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
