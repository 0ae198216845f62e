"""The product's pages over a filled database: `python -m bench.page_server TARGET`.

With sign-in, as `postroom serve` has it; without mailboxes, keeper and worker, so that nothing else uses the processor
or changes what is measured. Every answer says in a header how long the application took, by the clock and by the
processor time of the whole process. Prints its address and the secret of a link to sign in with, and ends on SIGTERM.
"""

import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import uvloop
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.compose.serve import pages_application
from postroom.compose.switchboard import open_services
from postroom.compose.tasks import settle_memory, share_with_threads
from postroom.interfaces.http.serve import serving
from postroom.operations.caller import Caller
from postroom.operations.people.people import add_person
from postroom.settings.reading import Settings
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature

from .order import Target
from .ours import opened

HEADER = "Server-Timing"
NAME = "bench"


class Timed:
    """Measures from the first line of a request until the answer is about to be sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, used = time.perf_counter(), time.process_time()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                took, spent = (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000
                MutableHeaders(scope=message)[HEADER] = f"app;dur={took:.3f}, cpu;dur={spent:.3f}"
            await send(message)

        await self._app(scope, receive, timed)


async def serve(target: Target) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"data_dir": Path(folder), "web": {"port": 0, "max_connections": 512}})
        async with (
            opened(target) as database,
            httpx2.AsyncClient() as http,
            open_services(settings, database, http, None) as services,
            pages_application(services, []) as application,
        ):
            application.add_middleware(Timed)
            by = Caller(database, Signature(new_id(), NAME, "admin"))
            made = await add_person(by, settings, f"{NAME}-{new_id().hex}", "admin")
            async with serving(application, host="127.0.0.1", port=0) as address:
                settle_memory()
                share_with_threads()
                stop = asyncio.Event()
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
                print(json.dumps({"address": address, "secret": made.link.partition("#")[2]}), flush=True)
                await stop.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Target(**json.loads(sys.argv[1]))))
