"""Mail that keeps coming: what makes a demo move."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from postroom_sandbox.letters import Letter
from postroom_sandbox.mailbox import Mailbox

EVERY_SECONDS = 4.0


async def drip(
    mailbox: Mailbox,
    letters: Iterator[Letter],
    every_seconds: float = EVERY_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Delivers the letters one by one with a pause before each, until they end or the task is cancelled."""
    while True:
        await sleep(every_seconds)
        letter = next(letters, None)
        if letter is None:
            return
        mailbox.deliver(letter.raw, letter.labels)
