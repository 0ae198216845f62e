"""People who keep pages open: `python -m bench.page_watchers ADDRESS COOKIE…`, in a process of their own.

Each holds the streams of some pages. Says `open` when every stream has sent its first board, and at the end, which
comes with the end of its input, how many boards each page has got.
"""

import asyncio
import json
import sys
from collections import Counter
from itertools import cycle

import httpx2
import uvloop

WATCHED = {
    "/": 40,
    "/mail": 25,
    "/mail?kind=mail": 10,
    "/approvals": 5,
    "/jobs": 5,
    "/queues": 5,
    "/connectors": 3,
    "/rules": 3,
    "/outbound": 2,
    "/audit": 2,
}
PATIENCE_S = 120.0


def stream_of(path: str) -> str:
    address, question, query = path.partition("?")
    return f"/events{address.rstrip('/')}{question}{query}"


async def watch(address: str, *cookies: str) -> None:
    boards: Counter[str] = Counter()
    opened: asyncio.Queue[str] = asyncio.Queue()

    async def one(http: httpx2.AsyncClient, path: str, cookie: str) -> None:
        is_first = True
        async with http.stream("GET", stream_of(path), headers={"Cookie": cookie}) as stream:
            if stream.status_code != 200:
                raise RuntimeError(f"{path} was answered with {stream.status_code}")
            rest = b""
            async for part in stream.aiter_raw():
                *frames, rest = (rest + part).split(b"\n\n")
                for frame in frames:
                    if frame.startswith(b"data:"):
                        boards[path] += 1
                        if is_first:
                            opened.put_nowait(path)
                            is_first = False

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(base_url=address, timeout=None, limits=limits) as http:
        paths = [path for path, many in WATCHED.items() for _ in range(many)]
        watching = [asyncio.create_task(one(http, *each)) for each in zip(paths, cycle(cookies), strict=False)]
        async with asyncio.timeout(PATIENCE_S):
            for _ in watching:
                await opened.get()
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        gone = [each for each in watching if each.done()]
        for each in watching:
            each.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        if gone:
            raise RuntimeError(f"{len(gone)} of {len(watching)} streams ended early")
    print(json.dumps(boards), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(watch(*sys.argv[1:]))
