"""The programs and customers of the demo: events of agents and services, and outgoing mail of several tenants.

Like any other program they speak HTTP with a token each; `post` sends one request and returns the status.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

from postroom_sandbox.smtp_server import Answers, Raw, SmtpServer

Post = Callable[[str, str, Mapping[str, Any]], Awaitable[int]]
EVENTS_EVERY_S = 6.0
MAIL_EVERY_S = 2.0
ANSWERS: Answers = {
    "RCPT TO:<gone@": "550 5.1.1 No such mailbox here",
    "RCPT TO:<full@": "452 4.2.2 The mailbox is full, try again later",
    "RCPT TO:<former-": "550 5.1.1 No such mailbox here",
    # Real servers take a while too; without it no mail would ever wait.
    ".": Raw(b"250 2.0.0 Ok: queued\r\n", every_s=0.03),
}


class EventKind(NamedTuple):
    channel: str
    provider: str
    kind: str
    sender: str
    text: str


EVENTS = (
    EventKind("webhook", "webhook", "deploy.failed", "deploy-watch", "Build {n} failed on main: two tests are red"),
    EventKind("webhook", "webhook", "deploy.succeeded", "deploy-watch", "Build {n} is live"),
    EventKind("webhook", "webhook", "heartbeat", "backup-nas", "Backup {n} finished, 212 GB free"),
    EventKind("webhook", "webhook", "test.passed", "deploy-watch", "Suite {n} passed"),
    EventKind("webhook", "webhook", "invoice.paid", "book-keeper", "Invoice {n} was paid"),
)
ENDPOINT = "webhook:town"


class Customer(NamedTuple):
    """A tenant's one sender, and how often its mail is chosen."""

    username: str
    plan: str
    weight: int
    subject: str


CUSTOMERS = (
    Customer("news@harbour-theatre.example", "free", 8, "The programme of week {n}"),
    Customer("orders@kettle-and-crumb.example", "standard", 3, "Your order {n} is on its way"),
    Customer("desk@stadtwerke.example", "team", 1, "Your meter reading {n}"),
)
FLOODER = Customer("offers@bargain-bay.example", "free", 0, "Offer {n}, only today")
FLOOD = 200
FORMER = 4
"""One in so many of the flood goes to an address that no longer exists."""
AT_ONCE = 4
READERS = ("anna", "bela", "cleo", "dario", "elif", "farid", "gone", "full")
DESTINATIONS = ("posthorn.example", "mailhof.example", "inbox.example")


def mail_exchange() -> SmtpServer:
    """The server to which all outgoing mail of the demo goes. It refuses two of the readers, as real ones do."""
    return SmtpServer(ANSWERS, name="mx.town.example")


async def send_events(post: Post, token: str, rng: Random, every_s: float = EVENTS_EVERY_S) -> None:
    """Hand in an event every few seconds, until the task is cancelled."""
    while True:
        await asyncio.sleep(every_s)
        await post("/v1/ingest", token, _event(rng))


def _event(rng: Random) -> dict[str, Any]:
    chosen, number = rng.choice(EVENTS), rng.randrange(1_000, 9_999)
    now = datetime.now(UTC)
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": chosen.channel, "provider": chosen.provider, "endpoint_identity": ENDPOINT},
        "event": {
            "external_event_id": f"town-{now.timestamp()}-{number}",
            "kind": chosen.kind,
            "observed_at": now.isoformat(),
        },
        "sender": {"identity": chosen.sender},
        "payload": {"raw": {"number": number}, "normalized_text": chosen.text.format(n=number)},
    }


async def submit_mail(post: Post, tokens: Mapping[str, str], rng: Random, every_s: float = MAIL_EVERY_S) -> None:
    """Submit a mail of one of the customers every few seconds, until the task is cancelled."""
    weights = [each.weight for each in CUSTOMERS]
    while True:
        await asyncio.sleep(every_s)
        customer = rng.choices(CUSTOMERS, weights)[0]
        await post("/v1/messages", tokens[customer.username], _mail(customer, rng))


async def flood(post: Post, token: str, rng: Random) -> None:
    """Submit hundreds of mails as fast as they are accepted, many of them to people who are gone."""
    readers = (f"former-{n}" if n % FORMER == 0 else f"reader-{n}" for n in range(FLOOD))
    mails = (_mail(FLOODER, rng, reader) for reader in readers)

    async def submit() -> None:
        for mail in mails:
            await post("/v1/messages", token, mail)

    await asyncio.gather(*(submit() for _ in range(AT_ONCE)))


def _mail(customer: Customer, rng: Random, reader: str | None = None) -> dict[str, Any]:
    number = rng.randrange(1_000, 9_999)
    return {
        "from": customer.username,
        "to": [f"{reader or rng.choice(READERS)}@{rng.choice(DESTINATIONS)}"],
        "subject": customer.subject.format(n=number),
        "text": "Good day!\n\nThis mail went from one program to another on your own machine.\n",
    }
