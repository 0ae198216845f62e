"""What the guard of the HTTP listeners costs: requests a second through uvicorn's own protocols and through ours.

Run it with `python -m bench.guard`. The rounds of all subjects alternate, so that they share the load of the machine.
"""

import asyncio
import statistics
import time
from collections.abc import Callable

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from postroom.system.http_server.guard import ConnectionGuard
from postroom.system.http_server.limits import ConnectionLimits
from postroom.system.http_server.protocol import GuardedConfig, GuardedProtocol

CLIENTS = 16
REQUESTS = 200
ROUNDS = 7
ASK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def plain(protocol: str) -> uvicorn.Config:
    return uvicorn.Config(app, http=protocol, ws="none", log_config=None, access_log=False, lifespan="off")  # type: ignore[arg-type]


SUBJECTS: dict[str, Callable[[], uvicorn.Config]] = {
    "uvicorn, httptools": lambda: plain("httptools"),
    "uvicorn, h11": lambda: plain("h11"),
    "guarded": lambda: GuardedConfig(app, ConnectionGuard(ConnectionLimits()), GuardedProtocol),
}


async def client(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(REQUESTS):
        writer.write(ASK)
        await reader.readuntil(b"ok")
    writer.close()


async def rate(config: uvicorn.Config) -> float:
    """Requests a second of one round, on a server of its own."""
    config.load()
    loop = asyncio.get_running_loop()
    state = ServerState()
    server = await loop.create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),  # type: ignore[call-arg]
        "127.0.0.1",
        0,
    )
    port = server.sockets[0].getsockname()[1]
    began = time.process_time()
    await asyncio.gather(*(client(port) for _ in range(CLIENTS)))
    took = time.process_time() - began
    server.close()
    return CLIENTS * REQUESTS / took


async def main() -> None:
    found: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(ROUNDS):
        for name, config in SUBJECTS.items():
            found[name].append(await rate(config()))
    for name, rates in found.items():
        print(f"{name:<20} {statistics.median(rates):8,.0f} requests a second of processor time, client included")


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
