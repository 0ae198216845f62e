"""A process that delivers mail by SMTP, as the product does, in a hurry and until it is killed.

    python -m support.crash.smtp_process --data-dir FOLDER [--url URL] --port PORT --lease 3

It announces `ready`.
"""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import dns.asyncresolver

from postroom.core.actions.permits import Permit
from postroom.core.mail.carrier import Carrier
from postroom.core.outbound.pacing import PaceLimits
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.transport import Transport
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.destination_stores import StoredPauses
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.smtp_delivery import SmtpRoad
from postroom.outbound.smtp.dns import Dns
from postroom.outbound.smtp.options import SmartHost, SmtpOptions, TlsContexts
from postroom.outbound.smtp.transport import SmtpTransport
from postroom.store.engine.opening import open_database
from postroom.system.boot_clock import since_boot
from support.fork_server import run_as_child
from support.processes import announce

UNHURRIED = PaceLimits(first_rest_s=0, longest_rest_s=0)
SOON = RetrySchedule(first=timedelta(milliseconds=50), longest=timedelta(milliseconds=200))


async def main(arguments: argparse.Namespace) -> None:
    database = await open_database(arguments.data_dir, arguments.url)
    lease = timedelta(seconds=arguments.lease)
    smart_host = SmartHost("127.0.0.1", arguments.port, "opportunistic", None, None)
    options = SmtpOptions("out.sender.example", smart_host=smart_host, mta_sts=False, pace=UNHURRIED)
    names = Dns(dns.asyncresolver.Resolver(configure=False), since_boot, 5.0)
    contexts = TlsContexts.with_authorities()
    transport = SmtpTransport(options, contexts, names, Random(1), since_boot, pauses=StoredPauses(database))

    async def transport_of() -> Transport:
        return transport

    pace = Pace(lease=lease, renew=lease / 3, poll=timedelta(milliseconds=50), at_once=4)
    road = SmtpRoad(transport_of, "out.sender.example", schedule=SOON)
    announce("ready")
    await OutboundDispatcher(database, _no_mailbox, pace, smtp=road).run()


async def _no_mailbox(permit: Permit) -> Carrier:
    raise AssertionError(permit)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--lease", type=float, required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
