"""The client of the intake claims, in a process of its own: HTTP/1.1 over keep-alive sockets, and nothing else.

Its requests are made before the clock starts and its answers are only searched, so that on a machine with few cores
it takes little of what the server needs. An answer counts when every message in it was accepted and is new.
"""

import asyncio
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import orjson

from .messages import event, mail
from .order import Order, Outcome, Verb, VerbFunction, produce

WARM_UP = 20  # calls before the clock starts, under other ids
ARRIVING_CONNECTIONS = 64
ACCEPTED = b'"duplicate":false'
ERA = "2026-07-28"
_META = {"io.modelcontextprotocol/protocolVersion": ERA, "io.modelcontextprotocol/clientCapabilities": {}}


@dataclass(frozen=True, slots=True)
class _Request:
    """A call as bytes, and how many messages are in it."""

    bytes: bytes
    messages: int


class _Line:
    """One connection: a request, its answer, the next request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def ask(self, request: bytes) -> bytes:
        self.writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"the server answered {head.splitlines()[0]!r}: {body[:500]!r}")
        return body


async def _connected(address: str, count: int) -> list[_Line]:
    parts = urlsplit(address)
    return [_Line(*await asyncio.open_connection(parts.hostname, parts.port)) for _ in range(count)]


def _hang_up(lines: Sequence[_Line]) -> None:
    for line in lines:
        line.writer.close()


def _requests(order: Order) -> list[_Request]:
    """All of them, set aside from garbage collection: a pause of the client would be counted as the server's."""
    requests = [_request(order, number) for number in range(WARM_UP + order.count // order.batch)]
    gc.collect()
    gc.freeze()
    return requests


def _request(order: Order, number: int) -> _Request:
    host = urlsplit(order.address).netloc
    headers = f"Host: {host}\r\nContent-Type: application/json\r\nAuthorization: Bearer {order.token}\r\n"
    if order.door == "http":
        return _Request(_post("/v1/ingest", headers, orjson.dumps(event(number))), 1)
    messages = [mail(number * order.batch + place) for place in range(order.batch)]
    given = {"items": messages} if order.door == "ingest.batch" else {"envelope": messages[0]}
    params = {"name": order.door, "arguments": given, "_meta": _META}
    body = orjson.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    era = f"MCP-Protocol-Version: {ERA}\r\nMcp-Method: tools/call\r\nMcp-Name: {order.door}\r\n"
    return _Request(_post("/mcp", f"{headers}Accept: application/json, text/event-stream\r\n{era}", body), order.batch)


def _post(path: str, headers: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _accepted(order: Order, request: _Request, answer: bytes) -> int:
    """Without a token it is the bare server that was asked, which accepts nothing and says so to everyone."""
    accepted = answer.count(ACCEPTED) if order.token else request.messages
    if accepted != request.messages:
        raise RuntimeError(f"{accepted} of {request.messages} were accepted as new: {answer[:500]!r}")
    return accepted


async def ingest(order: Order) -> Outcome:
    """`producers` connections share `count` messages; each asks again as soon as it is answered."""
    requests = _requests(order)
    free = lines = await _connected(order.address, order.producers)
    handled = 0

    async def ask(request: _Request) -> None:
        nonlocal handled
        line = free.pop()
        answer = await line.ask(request.bytes)
        free.append(line)
        handled += _accepted(order, request, answer)

    for request in requests[:WARM_UP]:
        await ask(request)
    measured, handled = requests[WARM_UP:], 0
    seconds, latencies = await produce(
        lambda number: ask(measured[number]), producers=order.producers, total=len(measured)
    )
    _hang_up(lines)
    return Outcome(seconds=seconds, handled=handled, latencies=latencies)


async def arrive(order: Order) -> Outcome:
    """`count` messages arrive at `rate` messages a second, at random moments, whether or not the last was answered.

    The latency of a call is counted from the moment it was due, so that a server that stalls is not spared.
    """
    rng = Random(order.count)  # the same arrivals in every round
    requests = _requests(order)
    lines = await _connected(order.address, ARRIVING_CONNECTIONS)
    free: asyncio.Queue[_Line] = asyncio.Queue()
    for line in lines:
        free.put_nowait(line)
    latencies: list[float] = []
    handled = 0

    async def ask(request: _Request, due: float) -> None:
        nonlocal handled
        line = await free.get()
        answer = await line.ask(request.bytes)
        latencies.append(time.perf_counter() - due)
        free.put_nowait(line)
        handled += _accepted(order, request, answer)

    for request in requests[:WARM_UP]:
        await ask(request, time.perf_counter())
    latencies.clear()
    handled = 0
    started = due = time.perf_counter()
    async with asyncio.TaskGroup() as calls:
        for request in requests[WARM_UP:]:
            due += rng.expovariate(order.rate / order.batch)
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            calls.create_task(ask(request, due))
    seconds = time.perf_counter() - started
    _hang_up(lines)
    return Outcome(seconds=seconds, handled=handled, latencies=latencies)


VERBS: dict[Verb, VerbFunction] = {"hand_in": ingest, "arrive": arrive}
