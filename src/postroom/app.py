"""The composition root: the one place that knows all the parts and puts them together.

It is loaded for every `postroom --help`, so everything heavy is imported inside the functions that need it.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from postroom.core.mailbox import Mailbox
    from postroom.export.exporter import Exporter
    from postroom.gmail_source import Watching
    from postroom.redis_source import Reading
    from postroom.settings import Settings
    from postroom.store.database import Database
    from postroom.switchboard.disk import DiskReserve
    from postroom.switchboard.http import McpEndpoint
    from postroom.switchboard.services import Services

    MailboxOf = Callable[[UUID], Mailbox]

Ready = Callable[[str], None]


def main() -> None:
    """What the command `postroom` runs."""
    from postroom.cli import run

    run(PostroomApplication())


class PostroomApplication:
    """Postroom, as the command line drives it."""

    @contextlib.asynccontextmanager
    async def open_database(self, settings: Settings) -> AsyncGenerator[Database]:
        """The database as it is: nothing is migrated, for those that only look."""
        from postroom.store.opening import connect_database

        database = connect_database(settings.data_dir, _url(settings))
        try:
            yield database
        finally:
            await database.close()

    async def serve(self, settings: Settings, *, ready: Ready) -> None:
        """Pages, connector, dispatcher and worker in one process."""
        async with _stoppable() as stop, _open(settings) as database:
            await _run_product(settings, database, stop, ready)

    async def demo(self, settings: Settings, *, port: int | None, ready: Ready) -> None:
        """The whole product on a sandbox mailbox in which mail keeps arriving."""
        from postroom.demo import add_sample_rules, demo_mailbox, demo_settings

        async with _stoppable() as stop, demo_mailbox() as mailbox:
            prepared = demo_settings(settings, mailbox, port)
            async with _open(prepared) as database:
                await add_sample_rules(database)
                await _run_product(prepared, database, stop, ready)

    async def sandbox(
        self,
        settings: Settings,
        *,
        port: int,
        seed: int,
        mail: Path | None,
        user: str | None,
        units_per_minute: int,
        search_lag_s: float,
        ready: Ready,
        told: Callable[[str], None],
    ) -> None:
        """Only the Gmail emulator."""
        from postroom.demo import SandboxPlan, sandbox_mailbox

        token = await _token(settings)()
        plan = SandboxPlan(port, seed, mail, user, units_per_minute, search_lag_s)
        async with _stoppable() as stop, sandbox_mailbox(plan, token, told) as address:
            ready(address)
            await stop.wait()

    async def worker(self, settings: Settings, *, concurrency: int) -> None:
        """Only jobs: the worker, and its share in leading."""
        from postroom.core.tally import Gauges, Tally
        from postroom.export.exporter import exporting

        async with (
            _stoppable() as stop,
            exporting(settings.telemetry, Tally(), Gauges()),
            _open(settings) as database,
            _mailboxes(settings) as mailbox_of,
        ):
            await _run_jobs(settings, database, mailbox_of, stop, concurrency)

    async def connector_redis_stream(self, settings: Settings, **reading: Unpack[Reading]) -> None:
        """Only the connector of one Redis stream."""
        from postroom.redis_source import run_redis_source

        async with _stoppable() as stop:
            await run_redis_source(settings, stop, **reading)

    async def connector_gmail(self, settings: Settings, **watching: Unpack[Watching]) -> None:
        """Only the connector of one mailbox at Gmail."""
        from postroom.gmail_source import run_gmail_source

        async with _stoppable() as stop:
            await run_gmail_source(settings, stop, **watching)


@contextlib.asynccontextmanager
async def _open(settings: Settings) -> AsyncGenerator[Database]:
    """The database, checked and migrated."""
    from postroom.store.opening import open_database

    database = await open_database(settings.data_dir, _url(settings), allow_unsafe=settings.allow_unsafe_durability)
    try:
        yield database
    finally:
        await database.close()


def _url(settings: Settings) -> str | None:
    return settings.database_url.get_secret_value() if settings.database_url is not None else None


@contextlib.asynccontextmanager
async def _stoppable() -> AsyncGenerator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set, so that everything can end in good order."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, stop.set)
    try:
        yield stop
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


@contextlib.asynccontextmanager
async def _mailboxes(settings: Settings) -> AsyncGenerator[MailboxOf]:
    """The mailbox of each account; until accounts bring their own consent, there is one."""
    import httpx2

    from postroom.gmail.client import GmailClient
    from postroom.gmail.mailbox import GmailMailbox

    async with httpx2.AsyncClient(timeout=30) as http:
        client = GmailClient(http, settings.gmail.base_url, _token(settings))
        mailbox = GmailMailbox(client)
        yield lambda _account_id: mailbox


def _token(settings: Settings) -> Callable[[], Coroutine[Any, Any, str]]:
    async def token() -> str:
        if settings.gmail.token is None:
            raise SettingsError("gmail.token is not set; give the access token of the mailbox in POSTROOM_GMAIL_TOKEN")
        return settings.gmail.token.get_secret_value()

    return token


async def _run_jobs(
    settings: Settings, database: Database, mailbox_of: MailboxOf, stop: asyncio.Event, concurrency: int
) -> None:
    """The worker and its share in leading, until `stop`; what runs then is given time to end."""
    from postroom.act.orphans import end_orphans_forever
    from postroom.core.job_types import CATALOGUE
    from postroom.handlers.action_gmail import ActionGmail
    from postroom.handlers.classify import Classify
    from postroom.jobs.leadership import Leadership
    from postroom.jobs.prune import Pruner
    from postroom.jobs.rescue import Rescuer
    from postroom.jobs.schedule import Scheduler
    from postroom.jobs.worker import Worker, WorkerOptions

    jobs = settings.jobs
    options = WorkerOptions(
        concurrency=concurrency,
        prefetch=timedelta(milliseconds=settings.worker.prefetch_ms),
        lease=timedelta(seconds=jobs.lease_s),
        heartbeat=timedelta(seconds=jobs.heartbeat_s),
        drain=timedelta(seconds=jobs.drain_s),
        poll=timedelta(seconds=jobs.poll_s),
    )
    handlers = {"classify": Classify(database, CATALOGUE), "action.gmail": ActionGmail(database, mailbox_of)}
    keep = {
        "completed": timedelta(days=jobs.keep_completed_days),
        "failed": timedelta(days=jobs.keep_failed_days),
        "canceled": timedelta(days=jobs.keep_canceled_days),
    }
    worker = Worker(database, CATALOGUE, handlers, options)
    leadership = Leadership(
        database, Scheduler(database, CATALOGUE), Rescuer(database), Pruner(database, keep), poll=options.poll
    )
    async with _background(end_orphans_forever(database), stop), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        group.create_task(leadership.run())
        await stop.wait()
        worker.stop()
        leadership.stop()


async def _run_product(settings: Settings, database: Database, stop: asyncio.Event, ready: Ready) -> None:
    """Everything in one process: the doors first, then what fills them."""
    from postroom.core.job_types import CATALOGUE
    from postroom.core.tally import Gauges
    from postroom.export.exporter import exporting
    from postroom.settling import settle_memory
    from postroom.switchboard.dispatcher import Dispatcher
    from postroom.switchboard.http import running_mcp
    from postroom.switchboard.keeper import Keeper

    email = _account_email(settings)
    reserve = _reserve(settings, database)
    services, gauges = _services(settings, database, reserve), Gauges()
    inbox = settings.inbox
    keeper = Keeper(
        database,
        services.queues,
        services.buffer,
        gauges,
        keep=timedelta(days=inbox.keep_days),
        keep_rollups=timedelta(days=inbox.rollup_days),
    )
    await keeper.adopt_strays()
    dispatcher = Dispatcher(database, CATALOGUE, services.buffer, services.queues["email"])
    async with (
        _closing(services),
        exporting(settings.telemetry, services.tally, gauges) as exporter,
        running_mcp(services, settings.web.allowed_hosts) as mcp,
        _serving(settings, services, mcp, exporter, reserve, email) as address,
        _mailboxes(settings) as mailbox_of,
        _background(keeper.run(), stop),
        _background(dispatcher.run(), stop),
        _background(_watch_mailbox(settings, services, email), stop),
    ):
        settle_memory()
        ready(address)
        await _run_jobs(settings, database, mailbox_of, stop, settings.worker.concurrency)


@contextlib.asynccontextmanager
async def _closing(services: Services) -> AsyncGenerator[None]:
    """Lets what they do behind everyone's back come to its end."""
    try:
        yield
    finally:
        await services.requests.close()
        await services.buffer.close()
        await services.token_check.close()


def _reserve(settings: Settings, database: Database) -> DiskReserve | None:
    from postroom.switchboard.disk import DiskReserve

    return DiskReserve(settings.data_dir, settings.disk_reserve_mib) if database.dialect == "sqlite" else None


def _services(settings: Settings, database: Database, reserve: DiskReserve | None) -> Services:
    from postroom.core.tally import Tally
    from postroom.queue_settings import queues_of
    from postroom.store.clock import wall_clock
    from postroom.switchboard.buffer import Buffer
    from postroom.switchboard.intake import Intake
    from postroom.switchboard.services import Services
    from postroom.switchboard.token_check import TokenCheck

    queues, tally = queues_of(settings.queues, settings.routes), Tally()
    return Services(
        intake=Intake(database, reserve, queues=queues, tally=tally),
        buffer=Buffer(database, queues, tally=tally),
        database=database,
        queues=queues,
        token_check=TokenCheck(database, wall_clock),
        tally=tally,
        clock=wall_clock,
    )


def _serving(
    settings: Settings,
    services: Services,
    mcp: McpEndpoint,
    exporter: Exporter,
    reserve: DiskReserve | None,
    email: str,
) -> contextlib.AbstractAsyncContextManager[str]:
    """The pages, and beside them everything else that is asked over HTTP."""
    from starlette.routing import Route

    from postroom.dashboard.serve import serving
    from postroom.dashboard.store_feed import StoreFeed
    from postroom.dashboard.web import create_dashboard
    from postroom.switchboard.http import DOORS, switchboard_routes
    from postroom.switchboard.ready import ready_endpoint

    dashboard = create_dashboard(
        StoreFeed(services.database),
        allowed_hosts=settings.web.allowed_hosts,
        account=email,
        started_at=datetime.now(UTC),
        own_doors=DOORS,
        routes=[
            *switchboard_routes(services, mcp),
            Route("/metrics", exporter.metrics_endpoint),
            Route("/readyz", ready_endpoint(services.database, reserve)),
        ],
    )
    return serving(dashboard, host=settings.web.host, port=settings.web.port, before_stop=mcp.stop_waiting)


async def _watch_mailbox(settings: Settings, services: Services, email: str) -> None:
    """The Gmail connector in this process: it reaches the switchboard through MCP, as it would from afar."""
    import httpx2

    from postroom import __version__
    from postroom.connectors.checkpoint import Checkpoint
    from postroom.connectors.gmail.live import GmailLive
    from postroom.connectors.mcp_switchboard import switchboard_within
    from postroom.connectors.runtime import Connector, Heart, Vitals, beating
    from postroom.core.roles import Principal, Role
    from postroom.gmail.client import GmailClient
    from postroom.store.clock import wall_clock
    from postroom.store.ids import new_id
    from postroom.store.mail import keep_account
    from postroom.switchboard.mcp_server import build_server

    endpoint = f"gmail:user:{email}"
    await services.database.run(keep_account(new_id(), "gmail", endpoint, email, wall_clock()))
    switchboard = switchboard_within(build_server(services, Principal(Role.CONNECTOR, endpoint)))
    vitals = Vitals(wall_clock)
    heart = Heart(
        switchboard, Connector("gmail", endpoint, platform.node() or "postroom", __version__), vitals, wall_clock
    )
    async with httpx2.AsyncClient(timeout=30) as http:
        live = GmailLive(
            GmailClient(http, settings.gmail.base_url, _token(settings)),
            switchboard,
            Checkpoint(settings.data_dir / "connectors" / f"gmail-{email}.json"),
            email=email,
            endpoint_identity=endpoint,
            clock=wall_clock,
            tally=services.tally,
            vitals=vitals,
        )
        await heart.introduce()
        async with beating(heart):
            await live.run(timedelta(seconds=settings.gmail.poll_s))


@contextlib.asynccontextmanager
async def _background(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> AsyncGenerator[None]:
    """Runs beside the block. If it ends by an error, everything is stopped and the error is raised."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _task: stop.set())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _account_email(settings: Settings) -> str:
    if settings.account.email is None:
        raise SettingsError("account.email is not set; give the mailbox's address in POSTROOM_ACCOUNT_EMAIL")
    return settings.account.email
