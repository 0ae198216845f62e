"""One connection to an IMAP server: greeting, TLS, and one command at a time, each within a time limit and a size.

A command that is canceled, or takes too long, leaves the connection in an unknown state: it is closed.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from sys import intern
from typing import Self

from postroom.mailboxes.imap.commands import Command, Part, command, wire_pieces
from postroom.mailboxes.imap.errors import (
    AnswerTooLarge,
    BadAnswer,
    Busy,
    ImapError,
    NotSecure,
    ServerFailed,
    Unreachable,
    refusal,
)
from postroom.mailboxes.imap.responses import Continuation, Data, Response, Status, Value
from postroom.mailboxes.imap.wire import Endpoint, Wire, open_wire

COMMAND_S = 120.0
CONNECT_S = 30.0
LARGEST_ANSWER = 16 * 2**20
# What a response weighs at least: a flood of small ones must not fill the memory either.
LEAST_WEIGHT = 200
UNLIMITED = 2**62

Check = Callable[[], None]


@dataclass
class Answer:
    """The answer to a command: its end, and the untagged responses before it."""

    status: Status
    data: list[Data] = field(default_factory=list[Data])
    statuses: list[Status] = field(default_factory=list[Status])

    def of(self, *kinds: str) -> list[Data]:
        return [each for each in self.data if each.kind in kinds]

    def code(self, name: str) -> tuple[Value, ...] | None:
        """The arguments of this response code, wherever it stands; None without it."""
        for each in (self.status, *reversed(self.statuses)):
            if each.code == name:
                return each.arguments
        return None


@dataclass
class _Pending:
    tag: str
    most: int
    done: asyncio.Future[Status]
    wanted: asyncio.Future[bytes]
    noticed: asyncio.Event = field(default_factory=asyncio.Event)
    sink: Callable[[Data], bool] | None = None
    data: list[Data] = field(default_factory=list[Data])
    statuses: list[Status] = field(default_factory=list[Status])
    weight: int = 0


class Connection:
    """Open it with `connect`. Only one task uses it at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.capabilities: frozenset[str] = frozenset()
        self.is_preauthenticated = False
        self._wire: Wire | None = None
        self._greeting: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._pending: _Pending | None = None
        self._lost: ImapError | None = None
        self._bye: Status | None = None
        self._tags = 0
        self._unheard = False

    @classmethod
    async def connect(cls, endpoint: Endpoint, context: ssl.SSLContext | None, limit_s: float = CONNECT_S) -> Self:
        """Connect, secure the connection as the endpoint says, and learn what the server can do."""
        made = cls(endpoint)
        try:
            async with asyncio.timeout(limit_s):
                await made._begin(context)
        except TimeoutError:
            made.close()
            raise Unreachable(endpoint.host, f"it was not ready within {limit_s:g} s") from None
        except BaseException:
            made.close()
            raise
        return made

    async def _begin(self, context: ssl.SSLContext | None) -> None:
        self._wire = await open_wire(self.endpoint, self._on_response, self._on_lost, context)
        greeting = await self._greeting
        if self.endpoint.security == "starttls":
            await self._start_tls(greeting, context)
        elif greeting.kind == "PREAUTH":
            self.is_preauthenticated = True
        if not self.capabilities:
            await self.run(command("CAPABILITY"))

    async def _start_tls(self, greeting: Status, context: ssl.SSLContext | None) -> None:
        host = self.endpoint.host
        if greeting.kind == "PREAUTH":
            raise NotSecure(host, "it is signed in before TLS, which nobody can secure")
        if not self.capabilities:
            await self.run(command("CAPABILITY"))
        if "STARTTLS" not in self.capabilities:
            raise NotSecure(host, "it does not offer STARTTLS")
        if context is None or self._wire is None:
            raise NotSecure(host, "there are no certificates to check it with")
        self._wire.expect_end_of_plain()
        await self.run(command("STARTTLS"))
        # Whatever was said before TLS may be somebody else's.
        self.capabilities = frozenset()
        await self._wire.secure(context)

    @property
    def is_open(self) -> bool:
        return self._lost is None and self._wire is not None

    @property
    def literal_plus(self) -> int:
        """The largest literal that may be sent without waiting."""
        if "LITERAL+" in self.capabilities:
            return UNLIMITED
        return 4096 if "LITERAL-" in self.capabilities else 0

    def offers(self, *extensions: str) -> bool:
        return self.capabilities.issuperset(extensions)

    def close(self) -> None:
        """Close without saying goodbye."""
        if self._wire is not None:
            self._wire.lose(Unreachable(self.endpoint.host, "the connection was closed by us"))

    async def run(
        self,
        wanted: Command,
        *,
        check: Check | None = None,
        sink: Callable[[Data], bool] | None = None,
        reply: Callable[[bytes], bytes] | None = None,
        most: int = LARGEST_ANSWER,
        limit_s: float = COMMAND_S,
    ) -> Answer:
        """Send a command and return its answer. Raises the error of a refusal.

        `check` is called right before each write. `sink` takes untagged responses as they come, those for which it
        returns True; the others are in the answer. `reply` answers continuations.
        """
        answer = await self.ask(wanted, check=check, sink=sink, reply=reply, most=most, limit_s=limit_s)
        if answer.status.kind != "OK":
            raise refusal(wanted.name, answer.status.kind, answer.status.code)
        return answer

    async def ask(
        self,
        wanted: Command,
        *,
        check: Check | None = None,
        sink: Callable[[Data], bool] | None = None,
        reply: Callable[[bytes], bytes] | None = None,
        most: int = LARGEST_ANSWER,
        limit_s: float = COMMAND_S,
    ) -> Answer:
        """Like `run`, but a refusal is an answer too."""
        pending = self._start(most, sink)
        try:
            async with asyncio.timeout(limit_s):
                await self._send(pending, wanted.parts, check)
                while reply is not None and not pending.done.done():
                    if (prompt := await self._prompt(pending)) is not None:
                        await self._write(reply(prompt) + b"\r\n", check)
                return Answer(await pending.done, pending.data, pending.statuses)
        except TimeoutError:
            error = Unreachable(self.endpoint.host, f"{wanted.name} was not answered within {limit_s:g} s")
            self._lose(error)
            raise error from None
        except ImapError:
            raise
        except BaseException:
            # Canceled, or stopped by the check. If nothing has left, the connection is as it was.
            if self._has_written:
                self._lose(Unreachable(self.endpoint.host, f"{wanted.name} was interrupted"))
            raise
        finally:
            self._pending = None

    def take_unheard(self) -> bool:
        """Whether the server has told of a change while no command was running, since this was last asked."""
        unheard, self._unheard = self._unheard, False
        return unheard

    async def idle(self, limit_s: float, until: asyncio.Event | None = None) -> list[Data]:
        """Wait until the server tells of a change, `until` is set, or this much time is over; return what it told."""
        pending = self._start(LARGEST_ANSWER, None)
        try:
            async with asyncio.timeout(COMMAND_S):
                await self._send(pending, (b"IDLE",), None)
                if await self._prompt(pending) is None:
                    raise refusal("IDLE", pending.done.result().kind, pending.done.result().code)
            await self._wait_for_notice(pending, limit_s, until)
            async with asyncio.timeout(COMMAND_S):
                if not pending.done.done():
                    await self._write(b"DONE\r\n", None)
                await pending.done
            return pending.data
        except TimeoutError:
            error = Unreachable(self.endpoint.host, "IDLE was not answered")
            self._lose(error)
            raise error from None
        except ImapError:
            raise
        except BaseException:
            self._lose(Unreachable(self.endpoint.host, "IDLE was interrupted"))
            raise
        finally:
            self._pending = None

    async def _wait_for_notice(self, pending: _Pending, limit_s: float, until: asyncio.Event | None) -> None:
        waits: set[asyncio.Task[object] | asyncio.Future[Status]] = {
            pending.done,
            asyncio.ensure_future(pending.noticed.wait()),
        }
        if until is not None:
            waits.add(asyncio.ensure_future(until.wait()))
        try:
            await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits - {pending.done}:
                each.cancel()
        if pending.done.done() and pending.done.exception() is not None:
            await pending.done

    def _start(self, most: int, sink: Callable[[Data], bool] | None) -> _Pending:
        if self._lost is not None:
            raise self._as_new(self._lost)
        if self._pending is not None:
            raise RuntimeError("two tasks use one connection")
        loop = asyncio.get_running_loop()
        self._tags += 1
        self._has_written = False
        self._pending = _Pending(f"P{self._tags}", most, loop.create_future(), loop.create_future(), sink=sink)
        return self._pending

    async def _send(self, pending: _Pending, parts: tuple[Part, ...], check: Check | None) -> None:
        first, *others = wire_pieces(parts, pending.tag, self.literal_plus)
        await self._write(first, check)
        for each in others:
            if await self._prompt(pending) is None:
                return
            await self._write(each, check)

    async def _prompt(self, pending: _Pending) -> bytes | None:
        """Wait for a continuation; None if the command has ended instead."""
        await asyncio.wait({pending.done, pending.wanted}, return_when=asyncio.FIRST_COMPLETED)
        if not pending.wanted.done():
            await pending.done
            return None
        prompt = pending.wanted.result()
        pending.wanted = asyncio.get_running_loop().create_future()
        return prompt

    async def _write(self, content: bytes, check: Check | None) -> None:
        if self._wire is None:
            raise Unreachable(self.endpoint.host, "there is no connection")

        def checked() -> None:
            if check is not None:
                check()
            self._has_written = True

        await self._wire.write(content, checked)

    _has_written = False

    # what comes

    def _on_response(self, response: Response) -> None:
        match response:
            case Status(tag=None):
                self._on_untagged_status(response)
            case Status():
                self._on_end(response)
            case Data():
                self._on_data(response)
            case Continuation():
                pending = self._pending
                if pending is None or pending.wanted.done():
                    raise BadAnswer("it waits for something that nobody announced")
                pending.wanted.set_result(response.text)

    def _on_untagged_status(self, status: Status) -> None:
        if not self._greeting.done():
            if status.kind not in ("OK", "PREAUTH", "BYE"):
                raise BadAnswer("the greeting is none")
            self._learn(status)
            if status.kind == "BYE":
                self._bye = status
                raise self._bye_error()
            self._greeting.set_result(status)
        elif status.kind == "BYE":
            self._bye = status
        elif (pending := self._pending) is not None:
            self._weigh(pending, len(status.text))
            pending.statuses.append(status)
            self._learn(status)

    def _on_end(self, status: Status) -> None:
        pending = self._pending
        if pending is None or status.tag != pending.tag or pending.done.done():
            raise BadAnswer("it ends a command that was not sent")
        self._learn(status)
        pending.done.set_result(status)

    def _on_data(self, data: Data) -> None:
        if not self._greeting.done():
            raise BadAnswer("it does not begin with a greeting")
        if data.kind == "CAPABILITY":
            self.capabilities = _capabilities(data.values)
        pending = self._pending
        if pending is None:
            self._unheard = True
            return
        pending.noticed.set()
        if pending.sink is not None and pending.sink(data):
            return
        self._weigh(pending, data.size)
        pending.data.append(data)

    def _weigh(self, pending: _Pending, size: int) -> None:
        pending.weight += max(size, LEAST_WEIGHT)
        if pending.weight > pending.most:
            raise AnswerTooLarge(f"an answer has more than {pending.most:,} bytes")

    def _learn(self, status: Status) -> None:
        if status.code == "CAPABILITY":
            self.capabilities = _capabilities(status.arguments)

    def _on_lost(self, error: ImapError) -> None:
        self._lost = error = self._bye_error() if self._bye is not None and isinstance(error, Unreachable) else error
        if not self._greeting.done():
            self._greeting.set_exception(self._as_new(error))
            # Nobody may wait for it.
            self._greeting.exception()
        if self._pending is not None and not self._pending.done.done():
            self._pending.done.set_exception(self._as_new(error))
            self._pending.done.exception()

    def _lose(self, error: ImapError) -> None:
        if self._wire is not None:
            self._wire.lose(error)

    def _bye_error(self) -> ImapError:
        """The error for a server that has said BYE."""
        code = None if self._bye is None else self._bye.code
        if code in ("LIMIT", "INUSE", "OVERQUOTA"):
            return Busy("connection", code)
        if code in ("UNAVAILABLE", "SERVERBUG", "CONTACTADMIN", "ALERT"):
            return ServerFailed("connection", code)
        return Unreachable(self.endpoint.host, "it ended the connection (BYE)")

    def _as_new(self, error: ImapError) -> ImapError:
        """The same error to raise once more: one object raised twice would collect tracebacks."""
        made = error.__class__.__new__(error.__class__, *error.args)
        made.__dict__.update(error.__dict__)
        return made


def _capabilities(values: tuple[Value, ...]) -> frozenset[str]:
    # Every connection to a kind of server has the same.
    return frozenset(intern(each.upper()) for each in values if isinstance(each, str))
