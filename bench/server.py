"""The servers of the intake claims: `python -m bench.server ours TARGET`, `python -m bench.server bare`.

Ours is the product's own front: its pages, doors, telemetry and keeper on one port, without a mailbox and a worker,
so that nothing is consumed while it is measured. The bare one is uvicorn and Starlette with the same settings; it
parses the JSON of a request and answers. Each prints its address and a token as one line, and ends on SIGTERM.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import orjson
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postroom.compose.pages import all_pages
from postroom.compose.tasks import settle_memory
from postroom.core.queue.queues import Queues
from postroom.core.roles import Role
from postroom.core.tally import Gauges, Tally
from postroom.intake.buffer import Buffer
from postroom.intake.disk import DiskReserve
from postroom.intake.intake import Intake
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.interfaces.http.serve import serving
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.switchboard import running_mcp, switchboard_routes
from postroom.interfaces.http.token_check import TokenCheck
from postroom.operations.backfill.keeper import Keeper
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import create_token, mint
from postroom.system.wall_clock import wall_clock
from postroom.telemetry.exporter import exporting

from .messages import IDENTITY
from .order import Target
from .ours import opened

LOOPBACK = "127.0.0.1"


async def serve_ours(target: Target) -> None:
    settings = Settings.model_validate({})
    hosts = settings.web.allowed_hosts
    async with opened(target) as database:
        services, gauges = _services(database, target, settings), Gauges()
        keeper = Keeper(
            database,
            services.queues,
            services.buffer,
            gauges,
            keep=timedelta(days=settings.inbox.keep_days),
            keep_rollups=timedelta(days=settings.inbox.rollup_days),
        )
        async with (
            exporting(settings.telemetry, services.tally, gauges) as exporter,
            running_mcp(services, hosts) as mcp,
            _beside(keeper),
        ):
            routes = [*switchboard_routes(services, mcp), Route("/metrics", exporter.metrics_endpoint)]
            site = Site(services.parts, "bench")
            pages = all_pages(site)
            application = create_application(site, pages, allowed_hosts=hosts, routes=routes)
            async with serving(application, host=LOOPBACK, port=0, before_stop=mcp.stop_waiting) as address:
                token = await connector_token(database)
                settle_memory()
                await _until_told(address, token)
        await services.token_check.close()


def _services(database: Database, target: Target, settings: Settings) -> Services:
    on_sqlite = target.database == "sqlite"
    reserve = DiskReserve(Path(target.address).parent, settings.disk_reserve_mib) if on_sqlite else None
    queues, tally = Queues(), Tally()
    return Services(
        settings=settings,
        intake=Intake(database, reserve, queues=queues, tally=tally),
        buffer=Buffer(database, queues, tally=tally),
        database=database,
        queues=queues,
        token_check=TokenCheck(database, wall_clock),
        tally=tally,
        clock=wall_clock,
    )


async def connector_token(database: Database) -> str:
    """A new token that may ingest the mail and the events of this benchmark."""
    await database.run(keep_account(new_id(), "gmail", IDENTITY, "bench@example.com", wall_clock()))
    minted = mint(Role.CONNECTOR, IDENTITY, channels=("email", "webhook"))
    await database.run(create_token(minted.token, Signature(new_id(), "bench", "admin"), wall_clock()))
    return minted.text


@contextlib.asynccontextmanager
async def _beside(keeper: Keeper) -> AsyncGenerator[None]:
    keeping = asyncio.create_task(keeper.run())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


async def serve_bare() -> None:
    async def parse(request: Request) -> Response:
        orjson.loads(await request.body())
        return JSONResponse({"status": "accepted"})

    app = Starlette(routes=[Route(path, parse, methods=["POST"]) for path in ("/mcp", "/v1/ingest")])
    config = uvicorn.Config(
        app, port=0, log_config=None, access_log=False, server_header=False, proxy_headers=False, lifespan="off"
    )
    server = _Bare(config)
    serving_bare = asyncio.create_task(server.serve())
    await server.ready.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    await _until_told(f"http://{LOOPBACK}:{port}", "")
    server.should_exit = True
    await serving_bare


class _Bare(uvicorn.Server):
    """Says when it is ready, and leaves signals to us."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self):
        yield

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        self.ready.set()


async def _until_told(address: str, token: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(json.dumps({"address": address, "token": token}), flush=True)
    await stop.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_ours(Target(**json.loads(sys.argv[2]))) if sys.argv[1] == "ours" else serve_bare())
