"""Pausing, and whatever else forbids requests: it has answered when none that it forbids can start any more, in any
process. Requests are those that change a mailbox or send mail."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from postroom.store import mailbox_writers, pauses
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.listeners import signalled
from postroom.system.boot_clock import BootClock, since_boot

T = TypeVar("T")

# How long a process may let requests out without asking again. By the clocks of two machines this may differ a little.
GRANT_S = 2.0
MARGIN_S = 0.5
LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Stopped:
    """A pause that holds. `on_wire` requests had left before it and may still take effect; `silent` processes did not
    answer (they were killed, or stand still) and can send nothing any more, but what they had sent is not known."""

    pause: pauses.Pause
    on_wire: int
    silent: int

    def told(self) -> str:
        """What was under way, in a sentence; nothing when nothing was."""
        parts: list[str] = []
        if self.on_wire:
            parts.append(f"{_counted(self.on_wire, 'request')} had left before and may still take effect")
        if self.silent:
            parts.append(
                f"{_counted(self.silent, 'process', 'es')} did not answer and can send nothing more; "
                "whether a request of theirs had left before is not known"
            )
        return "; ".join(parts) or "no request was on its way"


def _counted(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"


async def stop(
    database: Database,
    scope: str,
    reason: str,
    signed: Signature,
    clock: Clock = wall_clock,
    boot: BootClock = since_boot,
) -> Stopped:
    """Pauses, and waits until every process that may let requests out has read it, or its grant has run out."""
    pause, recalled = await _forbidden(database, pauses.pause(scope, reason, signed, clock()), boot)
    return Stopped(pause, recalled.on_wire(scope), recalled.silent)


async def forbid(database: Database, transaction: Transaction[T], boot: BootClock = since_boot) -> T:
    """Runs a verb that forbids something (`pauses.recalling`), and waits as `stop` does."""
    result, _ = await _forbidden(database, transaction, boot)
    return result


class _Recalled(NamedTuple):
    """The processes that have answered, and how many did not."""

    answered: Sequence[mailbox_writers.MailboxWriter]
    silent: int

    def on_wire(self, scope: str) -> int:
        counts = (each.on_wire.items() for each in self.answered)
        return sum(count for each in counts for account, count in each if scope in (pauses.ALL, account))


async def _forbidden(database: Database, transaction: Transaction[T], boot: BootClock) -> tuple[T, _Recalled]:
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
            if is_over or all(each.generation >= generation for each in registered):
                break
            await signalled(heard, LOOK_EVERY_S)
    finally:
        subscription.close()
    answered = [each for each in registered if each.generation >= generation]
    if len(answered) < len(registered):
        await database.run(mailbox_writers.forget_silent_writers(generation))
    return result, _Recalled(answered, len(registered) - len(answered))
