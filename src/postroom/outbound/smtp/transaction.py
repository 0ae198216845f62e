"""One mail for some recipients, from MAIL to the reply after the final dot, and what becomes of each recipient."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from postroom.core.outbound.destinations import Address
from postroom.core.outbound.replies import Phase, Reply, found_out
from postroom.core.outbound.transport import Leaving, Notify, RecipientOutcome, decided
from postroom.outbound.smtp.channel import Channel
from postroom.outbound.smtp.errors import ConnectionLost
from postroom.outbound.smtp.lines import END
from postroom.outbound.smtp.options import Timeouts

# Bytes a second. A server that reads more slowly on the whole is given up, however steadily it reads.
SLOWEST = 1_000
DATA = b"DATA\r\n"


class EnvelopeRecipient(NamedTuple):
    position: int
    address: Address
    notify: tuple[Notify, ...]
    original: str | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A mail in the form in which it is sent. `wire` is its content with doubled dots and the final one."""

    sender: str
    wire: bytes
    size: int
    is_8bit: bool
    needs_utf8: bool
    declared_8bit: bool
    envelope_id: str | None = None
    return_full: bool = False


class Transaction:
    def __init__(
        self, channel: Channel, times: Timeouts, recipients: Sequence[EnvelopeRecipient], leaving: Leaving
    ) -> None:
        self._channel = channel
        self._times = times
        self._recipients = recipients
        self._leaving = leaving
        self._accepted: list[int] = []
        self.outcomes: list[RecipientOutcome] = []
        self.is_complete = False
        """Whether it ended with a reply to its content, so that the next one can begin."""
        self.is_whole = False
        """Whether all of the content was written."""

    async def pipelined(self, mail: bytes, rcpt: Sequence[bytes], wire: bytes) -> None:
        """All commands in one piece; then their replies, one by one (RFC 2920)."""
        try:
            self._channel.write(b"".join((mail, *rcpt, DATA)), "mail")
            sender = await self._reply("mail", self._times.mail)
            for each in self._recipients:
                self._record_reply(each, sender, await self._reply("rcpt", self._times.rcpt))
            data = await self._reply("data", self._times.data)
        except ConnectionLost as error:
            self._lose_connection(error)
            return
        if self._accepted:
            await self._go_on(data, wire)
        elif data.code == 354:
            # It expects a mail for nobody: RFC 2920 asks us to send an empty one.
            await self._finish(END)

    async def step_by_step(self, mail: bytes, rcpt: Sequence[bytes], wire: bytes) -> None:
        try:
            sender = await self._ask(mail, "mail", self._times.mail)
            for each, command in zip(self._recipients, rcpt, strict=True):
                taken = sender.severity == 2
                self._record_reply(
                    each, sender, await self._ask(command, "rcpt", self._times.rcpt) if taken else sender
                )
            if not self._accepted:
                return
            data = await self._ask(DATA, "data", self._times.data)
        except ConnectionLost as error:
            self._lose_connection(error)
            return
        await self._go_on(data, wire)

    async def _ask(self, command: bytes, phase: Phase, seconds: float) -> Reply:
        self._channel.write(command, phase)
        return await self._reply(phase, seconds)

    async def _reply(self, phase: Phase, seconds: float) -> Reply:
        return await self._channel.reply(phase, seconds)

    def _record_reply(self, recipient: EnvelopeRecipient, mail: Reply, rcpt: Reply) -> None:
        if mail.severity == 2 and rcpt.severity == 2:
            self._accepted.append(recipient.position)
        else:
            self.outcomes.append(decided(recipient.position, rcpt if mail.severity == 2 else mail))

    def _lose_connection(self, error: ConnectionLost) -> None:
        """The connection ended before anything left. What was decided stays so."""
        if not self.outcomes:
            raise error
        known = {each.position for each in self.outcomes}
        self.outcomes += [
            decided(each.position, error.reply) for each in self._recipients if each.position not in known
        ]

    async def _go_on(self, data: Reply, wire: bytes) -> None:
        if data.severity > 3:
            self._all_accepted(data)
            return
        if data.code != 354:
            self._out_of_turn()
            return
        try:
            await self._leaving(self._accepted)
        except Exception as error:
            self._channel.abort()
            why = found_out("4.3.2", f"it was held back: {type(error).__name__}", "local")
            self.outcomes += [RecipientOutcome(position, "held", why) for position in self._accepted]
            return
        if self._channel.is_quiet:
            await self._finish(wire)
        else:
            self._out_of_turn()

    def _out_of_turn(self) -> None:
        """Give up a server whose replies do not belong to our commands: one of them could pass for a receipt."""
        self._channel.abort()
        self._all_accepted(found_out("4.5.0", "its replies came out of turn", "data", self._channel.host))

    async def _finish(self, wire: bytes) -> None:
        """Send the content and hear what becomes of it. The final dot is what makes the outcome uncertain."""
        self.is_whole = False
        try:
            async with asyncio.timeout(self._times.block + len(wire) / SLOWEST):
                end = max(0, len(wire) - 32_768)
                await self._channel.write_all(wire[:end], "content", self._times.block)
                self._channel.write(wire[end:], "content")
                self.is_whole = True
        except TimeoutError:
            why = found_out("4.4.2", "it reads too slowly", "content", self._channel.host)
            self._channel.abort()
            self._all_accepted(why)
            return
        except ConnectionLost:
            pass
        try:
            reply = await self._reply("content", self._times.final)
        except ConnectionLost as error:
            self._all_accepted(error.reply, unknown=self.is_whole)
            return
        self.is_complete = True
        if reply.severity == 3 or (reply.severity == 2 and not self.is_whole):
            self.is_complete = False
            self._channel.abort()
            self._all_accepted(reply, unknown=True)
        else:
            self._all_accepted(reply)

    def _all_accepted(self, reply: Reply, unknown: bool = False) -> None:
        self.outcomes += [
            RecipientOutcome(position, "unknown", reply) if unknown else decided(position, reply)
            for position in self._accepted
        ]
