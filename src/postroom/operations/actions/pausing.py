"""Pausing, and other ways to forbid requests that change a mailbox or send mail.

Each returns only when no forbidden request can start any more, in any process.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from postroom.core.actions.permits import GRANT_S
from postroom.core.counted import counted
from postroom.operations.caller import Caller
from postroom.store.actions import mailbox_writers, pauses
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.listeners import signalled
from postroom.system.boot_clock import BootClock, since_boot

T = TypeVar("T")

# The clocks of two machines may differ a little.
MARGIN_S = 0.5
LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Stopped:
    """A pause in effect. `on_wire` requests and mails had left before it and may still take effect; `silent` processes
    did not answer (killed or frozen) and can send nothing more, but what they had sent is unknown."""

    pause: pauses.Pause
    on_wire: int
    silent: int


def in_flight(on_wire: int, silent: int) -> str:
    """Say what was in flight, in a sentence."""
    parts: list[str] = []
    if on_wire:
        parts.append(f"{counted(on_wire, 'request')} had left before and may still take effect")
    if silent:
        parts.append(
            f"{counted(silent, 'process', 'es')} did not answer and can send nothing more; "
            "whether a request of theirs had left before is unknown"
        )
    return "; ".join(parts) or "no request was in flight"


async def stop(by: Caller, scope: str, reason: str, boot: BootClock = since_boot) -> Stopped:
    """Pause, and wait until every process that may let requests out has read it, or its permission has expired."""
    mails = scope == pauses.ALL
    pause, recalled = await _forbid(
        by.database, pauses.pause(scope, reason, by.signature, by.clock()), boot, mails=mails
    )
    return Stopped(pause, recalled.on_wire(scope) + recalled.leaving, recalled.silent)


async def forbid_and_wait(database: Database, transaction: Transaction[T], boot: BootClock = since_boot) -> T:
    """Run a verb that forbids something (`pauses.recalling`), and wait as `stop` does."""
    result, _ = await _forbid(database, transaction, boot)
    return result


class _Recalled(NamedTuple):
    """The processes that have answered, the number of those that did not, and that of mails leaving by SMTP."""

    answered: Sequence[mailbox_writers.MailboxWriter]
    silent: int
    leaving: int

    def on_wire(self, scope: str) -> int:
        counts = (each.on_wire.items() for each in self.answered)
        return sum(count for each in counts for account, count in each if scope in (pauses.ALL, account))


async def _forbid(
    database: Database, transaction: Transaction[T], boot: BootClock, *, mails: bool = False
) -> tuple[T, _Recalled]:
    """Wait also for `mails` that leave by SMTP: one that was let go just before begins within the time of a grant."""
    heard = asyncio.Event()
    subscription = database.subscribe(mailbox_writers.CHANNEL, lambda _message: heard.set())
    try:
        result = await database.run(transaction)
        last = boot() + GRANT_S + MARGIN_S
        generation = await database.run(mailbox_writers.pause_generation())
        while True:
            heard.clear()
            is_over = boot() >= last
            registered = await database.run(mailbox_writers.registered_writers())
            leaving = await database.run(mailbox_writers.leaving_mails()) if mails else 0
            if is_over or (not leaving and all(each.generation >= generation for each in registered)):
                break
            await signalled(heard, LOOK_EVERY_S)
    finally:
        subscription.close()
    answered = [each for each in registered if each.generation >= generation]
    if len(answered) < len(registered):
        await database.run(mailbox_writers.forget_silent_writers(generation))
    return result, _Recalled(answered, len(registered) - len(answered), leaving)
