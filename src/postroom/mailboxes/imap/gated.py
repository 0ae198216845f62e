"""Commands that change a mailbox, through the gate: it is asked before each, and its clearance is checked right before
the bytes leave.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from postroom.core.actions.permits import Permit
from postroom.core.mail.gate import Clearance, ClearanceExpired, ClearanceRequest, Gate, Labels
from postroom.core.mail.mailbox import MailboxLabel
from postroom.mailboxes.imap.connection import Check
from postroom.mailboxes.imap.errors import NoPermit, TooBusy

T = TypeVar("T")

# How often the gate is asked for one command whose clearance expires, or for which something must be read first.
MOST_ASKS = 10


@dataclass(frozen=True, slots=True)
class GatedCommands:
    """The gate, the permit of a piece of work, and how to read what the gate needs to know."""

    gate: Gate | None
    permit: Permit | None
    labels_of: Callable[[Sequence[str]], Awaitable[Labels]]
    list_labels: Callable[[], Awaitable[Sequence[MailboxLabel]]]

    def check_permit(self, name: str) -> tuple[Gate, Permit]:
        """The gate and the permit. Raises NoPermit without them."""
        if self.gate is None or self.permit is None:
            raise NoPermit(name)
        return self.gate, self.permit

    async def run(self, name: str, send: Callable[[Check], Awaitable[T]]) -> T:
        """Send the command once the gate has cleared it. `send` opens the folder it needs: the gate may have had
        another one opened to read from.
        """
        asking = self._asking(name)
        for _ in range(MOST_ASKS):
            if (clearance := await _read_clearance(asking)) is None:
                continue
            try:
                with clearance.on_the_wire():
                    return await send(clearance.check)
            except ClearanceExpired:
                asking.forget()
        raise TooBusy(name)

    async def begin(self, name: str, sending: ExitStack) -> None:
        """Begin something that leaves by another way, such as a mail: it counts as on the wire until `sending` ends."""
        asking = self._asking(name)
        for _ in range(MOST_ASKS):
            if (clearance := await _read_clearance(asking)) is None:
                continue
            try:
                clearance.check()
            except ClearanceExpired:
                asking.forget()
            else:
                sending.enter_context(clearance.on_the_wire())
                return
        raise TooBusy(name)

    async def ask(self, name: str) -> None:
        """Ask the gate about a change that needs no command."""

        async def nothing(check: Check) -> None:
            check()

        await self.run(name, nothing)

    def _asking(self, name: str) -> ClearanceRequest:
        gate, permit = self.check_permit(name)
        return ClearanceRequest(gate, [permit], self.labels_of, self.list_labels)


async def _read_clearance(asking: ClearanceRequest) -> Clearance | None:
    """The clearance; None if the gate must be asked again. Raises what it refuses with."""
    clearance = await asking.clearance()
    for error in () if clearance is None else clearance.refused.values():
        raise error
    return clearance
