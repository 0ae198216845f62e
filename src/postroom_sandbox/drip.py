"""Delivers new mail continually, for the demo."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.raw_mail import SampleMail

EVERY_SECONDS = 4.0
FULL = 5_000
"""Messages, after which no more arrive: a demo that is left running must not fill its disk, or save for ever longer."""


async def drip(
    mailbox: Mailbox,
    mails: Iterator[SampleMail],
    every_seconds: float = EVERY_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    full: int = FULL,
) -> None:
    """Deliver the mails one by one with a pause before each, until they end, the mailbox is full or it is cancelled."""
    while len(mailbox) < full:
        await sleep(every_seconds)
        mail = next(mails, None)
        if mail is None:
            return
        mailbox.deliver(mail.raw, mail.labels)
