"""The product in one process, put together: doors, queues, mailboxes, jobs, and what is told of them.

Loaded by `serve`, `demo` and `worker` only, so it may import what it needs.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
from starlette.routing import Route

from postroom.accounts.credentials import AccessTokens
from postroom.act.action_requests import ActionRequests
from postroom.act.agents import Agents
from postroom.act.maintenance import maintenance_tasks, run_maintenance
from postroom.compose.approvals import ApprovalChannels, approval_routes, run_discord_bot
from postroom.compose.gate import MailboxGate
from postroom.compose.google import google_app, vault_of
from postroom.compose.jobs import job_handlers, policy_of, restore_watch, sender
from postroom.compose.mailboxes import Mailboxes, Watch, keep_sandbox_account, watch_accounts, watch_labels
from postroom.compose.tasks import settle_memory, share_with_threads
from postroom.connectors.mcp_switchboard import switchboard_within
from postroom.core.jobs.types import CATALOGUE
from postroom.core.metrics import CONNECTION_REFUSED
from postroom.core.roles import Principal, Role
from postroom.core.tally import Gauges, Tally
from postroom.dashboard.store_feed import StoreFeed, StoreSwitch
from postroom.decide.adviser import ModelAdviser
from postroom.decide.model import Model, configured_model, release_waiting
from postroom.gmail.oauth import GoogleOAuth
from postroom.gmail.transport import CheckedClient
from postroom.http_server.limits import limits_of
from postroom.http_server.listening import is_own_machine
from postroom.http_server.metrics import serving_metrics
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.store.accounts import AccountView, list_accounts
from postroom.store.engine.clock import clock_of, wall_clock
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE
from postroom.switchboard.buffer import Buffer
from postroom.switchboard.disk import DiskReserve
from postroom.switchboard.dispatcher import Dispatcher
from postroom.switchboard.intake import Intake
from postroom.switchboard.keeper import Keeper
from postroom.switchboard.services import Services
from postroom.switchboard.token_check import TokenCheck
from postroom.telemetry.exporter import Exporter, exporting
from postroom.web.application import create_dashboard
from postroom.web.hooks import GmailHook, GoogleKeys, PushTerms
from postroom.web.http import DOORS, McpEndpoint, running_mcp, switchboard_routes
from postroom.web.mcp_server import build_server
from postroom.web.ready import ready_endpoint
from postroom.web.serve import serving

Ready = Callable[[str], None]
HOOK = "/hooks/gmail"


async def run_product(settings: Settings, database: Database, stop: asyncio.Event, ready: Ready) -> None:
    """Everything in one process: the doors first, then what fills them."""
    await keep_sandbox_account(settings, database)
    reserve = _reserve(settings, database)
    gauges = Gauges()
    async with (
        CheckedClient(timeout=30) as http,
        MailboxGate.open(database) as gate,
        _services(settings, database, http, reserve) as services,
    ):
        keeper = _keeper(settings, services, gauges, reserve)
        await keeper.adopt_strays()
        mailboxes = Mailboxes(settings, database, http, services.credentials, gate)
        email = services.queues["email"]
        dispatcher = Dispatcher(database, CATALOGUE, services.buffer, email, clock=services.clock)
        async with (
            exporting(settings.telemetry, services.tally, gauges) as exporter,
            running_mcp(services, settings.web.allowed_hosts) as mcp,
            _serving(settings, services, mcp, exporter, http, reserve) as address,
            background(keeper.run(), stop),
            background(dispatcher.run(), stop),
            background(run_discord_bot(settings, database), stop),
            background(watch_accounts(settings, database, _watch(services, mailboxes)), stop),
            background(watch_labels(settings, database, mailboxes), stop),
        ):
            settle_memory()
            share_with_threads()
            ready(address)
            await _run_jobs(settings, database, mailboxes, stop, settings.worker.concurrency)


async def run_worker(settings: Settings, database: Database, stop: asyncio.Event, concurrency: int) -> None:
    """Only jobs: the worker, and its share in leading."""
    async with (
        exporting(settings.telemetry, Tally(), Gauges()) as exporter,
        serving_metrics(
            settings.telemetry.listen,
            exporter.metrics_text,
            settings.web.allowed_hosts,
            allow_exposed=settings.web.allow_unprotected_bind,
        ),
        CheckedClient(timeout=30) as http,
        MailboxGate.open(database) as gate,
        _credentials(settings, database, http) as credentials,
    ):
        await _run_jobs(settings, database, Mailboxes(settings, database, http, credentials, gate), stop, concurrency)


async def _run_jobs(
    settings: Settings, database: Database, mailboxes: Mailboxes, stop: asyncio.Event, concurrency: int
) -> None:
    """The worker and its share in leading, until `stop`; what runs then is given time to end."""
    jobs = settings.jobs
    options = WorkerOptions(
        concurrency=concurrency,
        prefetch=timedelta(milliseconds=settings.worker.prefetch_ms),
        lease=timedelta(seconds=jobs.lease_s),
        heartbeat=timedelta(seconds=jobs.heartbeat_s),
        drain=timedelta(seconds=jobs.drain_s),
        poll=timedelta(seconds=jobs.poll_s),
    )
    keep = {
        "completed": timedelta(days=jobs.keep_completed_days),
        "failed": timedelta(days=jobs.keep_failed_days),
        "canceled": timedelta(days=jobs.keep_canceled_days),
    }
    await release_waiting(database, wall_clock())
    model = configured_model(database, settings.model)
    adviser = None if model is None else _adviser(settings, database, model)
    approval_desk = ApprovalChannels(settings, database)
    handlers = job_handlers(settings, database, mailboxes, adviser, approval_desk.channels)
    clock = clock_of(database)
    worker = Worker(database, CATALOGUE, handlers, options, clock)
    leadership = Leadership(
        database,
        Scheduler(database, CATALOGUE, clock=clock),
        Rescuer(database, clock),
        Pruner(database, keep, clock),
        poll=options.poll,
        clock=clock,
        longest=_longest(settings),
    )
    chores = maintenance_tasks(settings.safety.hourly_cap)
    watch = restore_watch(settings, database, mailboxes)
    await watch.observe()
    sending = sender(settings, database, mailboxes, watch).run()
    async with (
        approval_desk,
        background(run_maintenance(database, chores, clock=clock), stop),
        background(sending, stop),
        background(watch.run(), stop),
        asyncio.TaskGroup() as group,
    ):
        group.create_task(worker.run())
        group.create_task(leadership.run())
        await stop.wait()
        worker.stop()
        leadership.stop()
    if model is not None:
        await model.close()


def _longest(settings: Settings) -> Longest:
    """How far ahead a lease of one of the configured queues may honestly end."""
    queues = queues_of(settings.queues, settings.routes)
    policies = [queues[name] for name in queues.names]
    texts = [each.same_text_within for each in policies if each.same_text_within is not None]
    return Longest(message_lease=max(each.lease for each in policies), same_text=max(texts, default=timedelta(0)))


def _adviser(settings: Settings, database: Database, model: Model) -> ModelAdviser:
    return ModelAdviser(database, model, settings.model.mode, frozenset({settings.gmail.snooze_label}))


def _reserve(settings: Settings, database: Database) -> DiskReserve | None:
    if database.dialect != "sqlite":
        return None
    return DiskReserve(settings.data_dir, settings.disk_reserve_mib, database=settings.data_dir / FILE)


@contextlib.asynccontextmanager
async def _services(
    settings: Settings, database: Database, http: httpx2.AsyncClient, reserve: DiskReserve | None
) -> AsyncGenerator[Services]:
    """What the doors lead to; what they do behind everyone's back comes to its end before the database is closed."""
    queues, tally = queues_of(settings.queues, settings.routes), Tally()
    async with _credentials(settings, database, http) as credentials:
        services = Services(
            intake=Intake(database, reserve, queues=queues, tally=tally, clock=clock_of(database)),
            buffer=Buffer(database, queues, tally=tally, clock=clock_of(database)),
            database=database,
            queues=queues,
            token_check=TokenCheck(database, wall_clock),
            tally=tally,
            clock=clock_of(database),
            credentials=credentials,
            agents=_agents(settings, database),
        )
        try:
            yield services
        finally:
            await services.requests.close()
            await services.buffer.close()
            await services.token_check.close()


def _agents(settings: Settings, database: Database) -> Agents:
    safety = settings.safety
    approval_time = timedelta(hours=safety.approval_hours)
    return Agents(ActionRequests(database, CATALOGUE, policy_of(safety), wall_clock, approval_time))


@contextlib.asynccontextmanager
async def _credentials(
    settings: Settings, database: Database, http: httpx2.AsyncClient
) -> AsyncGenerator[AccessTokens | None]:
    """Access tokens for connected accounts; None while no app at Google is set, and so none can be connected."""
    if settings.google.client_id is None:
        yield None
        return
    tokens = AccessTokens(database, vault_of(settings), GoogleOAuth(http, google_app(settings)), wall_clock)
    try:
        yield tokens
    finally:
        await tokens.close()


def _keeper(settings: Settings, services: Services, gauges: Gauges, reserve: DiskReserve | None) -> Keeper:
    return Keeper(
        services.database,
        services.queues,
        services.buffer,
        gauges,
        keep=timedelta(days=settings.inbox.keep_days),
        keep_rollups=timedelta(days=settings.inbox.rollup_days),
        log_bytes=lambda: None if reserve is None else reserve.log_bytes,
        clock=services.clock,
    )


@contextlib.asynccontextmanager
async def _serving(
    settings: Settings,
    services: Services,
    mcp: McpEndpoint,
    exporter: Exporter,
    http: httpx2.AsyncClient,
    reserve: DiskReserve | None,
) -> AsyncGenerator[str]:
    """The pages, and beside them everything else that is asked over HTTP."""
    routes = [
        *switchboard_routes(services, mcp),
        Route("/metrics", exporter.metrics_endpoint),
        Route("/readyz", ready_endpoint(services.database, reserve)),
        *_hooks(settings, services, http),
        *approval_routes(settings, services.database),
    ]
    dashboard = create_dashboard(
        _feed(settings, services.database),
        allowed_hosts=settings.web.allowed_hosts,
        account=await _shown_account(settings, services.database),
        started_at=datetime.now(UTC),
        own_doors=DOORS,
        routes=routes,
        switch=StoreSwitch(services.database),
        may_resume=_is_own_machine(settings),
    )
    web, tally = settings.web, services.tally
    async with serving(
        dashboard,
        host=web.host,
        port=web.port,
        before_stop=mcp.stop_waiting,
        limits=limits_of(web),
        allow_exposed=web.allow_unprotected_bind,
        on_refused=lambda reason: tally.count(CONNECTION_REFUSED, reason),
    ) as address:
        yield address


def _feed(settings: Settings, database: Database) -> StoreFeed:
    model = settings.model.name if settings.model.provider != "none" else None
    return StoreFeed(database, model=model, may_resume=_is_own_machine(settings))


def _is_own_machine(settings: Settings) -> bool:
    """Whether the page is served to this machine alone."""
    return is_own_machine(settings.web.host)


def _hooks(settings: Settings, services: Services, http: httpx2.AsyncClient) -> list[Route]:
    gmail = settings.gmail
    if gmail.push_audience is None:
        return []
    terms = PushTerms(gmail.push_audience, gmail.push_account)
    hook = GmailHook(services.database, terms, GoogleKeys(http, gmail.push_keys_url))
    return [Route(HOOK, hook.take, methods=["POST"])]


async def _shown_account(settings: Settings, database: Database) -> str:
    """Whose page it is: the address, or how many there are."""
    if settings.gmail.token is not None and settings.account.email is not None:
        return settings.account.email
    found = [each for each in await database.run(list_accounts()) if each.state != "removed"]
    if len(found) == 1:
        return found[0].email
    return f"{len(found)} accounts" if found else "no account connected yet"


def _watch(services: Services, mailboxes: Mailboxes) -> Watch:
    def watch(account: AccountView) -> Coroutine[Any, Any, None]:
        """The connector of one account: it reaches the switchboard through MCP, as it would from afar."""
        switchboard = switchboard_within(build_server(services, Principal(Role.CONNECTOR, account.endpoint_identity)))
        return mailboxes.watch(account, switchboard, services.tally)

    return watch


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> AsyncGenerator[None]:
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
