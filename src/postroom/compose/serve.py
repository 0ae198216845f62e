"""Compose the whole product in one process: HTTP, queues, mailboxes, jobs, telemetry.

Loaded only by `serve`, `demo` and `worker`, so it may import what it needs.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any

import httpx2
import structlog
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from postroom.compose.application import Invite, Presses, Ready, never_pressed
from postroom.compose.approvals import approval_routes, run_discord_bot
from postroom.compose.gate import MailboxGate
from postroom.compose.mailboxes import Mailboxes, Watch, keep_sandbox_account, watch_accounts, watch_labels
from postroom.compose.pages import all_pages
from postroom.compose.sign_in import certificates_of, first_link, knows_visitor, opened_sign_in
from postroom.compose.submission import running_submission
from postroom.compose.switchboard import dispatcher_of, keeper_of, open_services, reserve_of, switchboard_for
from postroom.compose.tasks import allow_open_files, background, settle_memory, share_with_threads
from postroom.compose.worker import running_jobs
from postroom.core.days import zone_named
from postroom.core.errors import StoreError
from postroom.core.metrics import CONNECTION_REFUSED
from postroom.core.tally import Gauges
from postroom.intake.disk import DiskReserve
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.interfaces.http.door import Door
from postroom.interfaces.http.hooks import GmailHook, GoogleKeys, PushTerms
from postroom.interfaces.http.json_api import Api
from postroom.interfaces.http.ready import ready_endpoint
from postroom.interfaces.http.serve import serving
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.switchboard import DOORS, McpEndpoint, running_mcp, switchboard_routes
from postroom.operations.people.pages_address import pages_address
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import AccountView, list_accounts
from postroom.store.engine.database import Database
from postroom.system.checked_http import CheckedClient
from postroom.system.http_server.limits import limits_of
from postroom.system.http_server.listening import is_own_machine
from postroom.telemetry.exporter import Exporter, exporting

log = structlog.get_logger()

HOOK = "/hooks/gmail"


async def run_product(
    settings: Settings,
    database: Database,
    stop: asyncio.Event,
    ready: Ready,
    invite: Invite = lambda _link: None,
    presses: Presses = never_pressed,
) -> None:
    """Run everything in one process: the HTTP endpoints first, then what feeds them.

    `invite` is called after `ready`, with a one-time link, if sign-in is on and nobody is known yet. Both are called
    again, with a new link, whenever the user presses Enter.
    """
    allow_open_files()
    await keep_sandbox_account(settings, database)
    reserve = reserve_of(settings, database)
    gauges = Gauges()
    async with (
        CheckedClient(timeout=30) as http,
        MailboxGate.open(database) as gate,
        open_services(settings, database, http, reserve) as services,
    ):
        live = services.parts.live
        keeper = keeper_of(settings, services, gauges, reserve)

        async def renew(changed: Settings) -> None:
            keeper.zone = zone_named(changed.time_zone)

        await live.refresh(database)
        await live.keep_up(renew)
        await keeper.adopt_strays()
        async with (
            contextlib.aclosing(Mailboxes(settings, database, http, services.credentials, gate)) as mailboxes,
            exporting(settings.telemetry, services.tally, gauges) as exporter,
            running_mcp(services, settings.web.allowed_hosts) as mcp,
            _serving(settings, services, mcp, exporter, http, reserve, mailboxes) as address,
            _submission(settings, services),
            background(keeper.run(), stop),
            background(dispatcher_of(services).run(), stop),
            background(run_discord_bot(settings, database), stop),
            background(watch_accounts(database, mailboxes, _watch(services, mailboxes)), stop),
            background(watch_labels(database, mailboxes), stop),
            running_jobs(
                settings,
                database,
                mailboxes,
                stop,
                concurrency=settings.worker.concurrency,
                tally=services.tally,
                gauges=gauges,
                live=live,
            ),
            background(live.follow(database), stop),
        ):
            settle_memory()
            share_with_threads()
            async with background(_announce(settings, database, address, ready, invite, presses), stop):
                await stop.wait()


async def _announce(
    settings: Settings, database: Database, address: str, ready: Ready, invite: Invite, presses: Presses
) -> None:
    """Tell the user where the pages are, at once and whenever they ask, until canceled."""

    # A published port is reached at the machine's own name, not at the address within the container.
    shown = pages_address(settings, address) if settings.web.is_localhost_only else address

    async def tell() -> None:
        ready(shown)
        if (link := await first_link(settings, database, address)) is not None:
            invite(link)

    await tell()
    async with contextlib.aclosing(presses()) as pressed:
        async for _ in pressed:
            with contextlib.suppress(StoreError):
                await tell()
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _submission(settings: Settings, services: Services) -> AsyncGenerator[None]:
    """Accept mail over SMTP, if the settings say so."""
    if not settings.submission.enabled or services.submissions is None:
        yield
        return
    async with running_submission(settings.submission, services.submissions, services.tally) as addresses:
        log.info("submission.listening", addresses=addresses)
        yield


@contextlib.asynccontextmanager
async def _serving(
    settings: Settings,
    services: Services,
    mcp: McpEndpoint,
    exporter: Exporter,
    http: httpx2.AsyncClient,
    reserve: DiskReserve | None,
    mailboxes: Mailboxes,
) -> AsyncGenerator[str]:
    """Serve the pages and all other HTTP endpoints."""
    web, tally = settings.web, services.tally
    routes = [
        *switchboard_routes(services, mcp),
        Route("/metrics", exporter.metrics_endpoint),
        Route(
            "/readyz", ready_endpoint(services.database, reserve, shows_checks=knows_visitor if web.sign_in else None)
        ),
        *_hooks(settings, services, http),
        *approval_routes(settings, services.database),
    ]
    async with (
        pages_application(services, routes, mailboxes) as application,
        certificates_of(web) as tls,
        serving(
            application,
            host=web.host,
            port=web.port,
            before_stop=mcp.stop_waiting,
            limits=limits_of(web),
            allow_exposed=web.may_be_exposed,
            on_refused=lambda reason: tally.count(CONNECTION_REFUSED, reason),
            tls=tls,
        ) as address,
    ):
        yield address


@contextlib.asynccontextmanager
async def pages_application(
    services: Services, routes: Sequence[BaseRoute], mailboxes: Mailboxes | None = None
) -> AsyncGenerator[Starlette]:
    """Create the application: the pages with their sign-in, and these other routes.

    Pages read from `mailboxes` what is not stored.
    """
    settings, parts = services.settings, services.parts
    web = settings.web
    if mailboxes is not None:
        parts.mailbox_of, parts.open_source = mailboxes.mailbox, mailboxes.opened_source
    site = Site(parts, functools.partial(_shown_account, settings, services.database))
    api = Api(services, Door(services, web.allowed_hosts), signs_in=web.sign_in)
    try:
        async with opened_sign_in(settings, services, site) as sign_in:
            yield create_application(
                site,
                all_pages(site),
                allowed_hosts=web.allowed_hosts,
                own_doors=DOORS,
                routes=[*routes, *sign_in.routes, *api.routes()],
                proxies=web.trusted_proxies,
                only_tls=not web.is_localhost_only and not is_own_machine(web.host),
                gate=sign_in.gate,
            )
    finally:
        parts.estimate_runs.close()
        parts.first_looks.close()


def _hooks(settings: Settings, services: Services, http: httpx2.AsyncClient) -> list[Route]:
    gmail = settings.gmail
    if gmail.push_audience is None:
        return []
    terms = PushTerms(gmail.push_audience, gmail.push_account)
    hook = GmailHook(services.database, terms, GoogleKeys(http, gmail.push_keys_url))
    return [Route(HOOK, hook.take, methods=["POST"])]


async def _shown_account(settings: Settings, database: Database) -> str:
    """Return whose page it is: the address, or the number of accounts."""
    if settings.gmail.token is not None and settings.account.email is not None:
        return settings.account.email
    found = [each for each in await database.run(list_accounts()) if each.state != "removed"]
    if len(found) == 1:
        return found[0].email
    return f"{len(found)} accounts" if found else "no account connected yet"


def _watch(services: Services, mailboxes: Mailboxes) -> Watch:
    def watch(account: AccountView) -> Coroutine[Any, Any, None]:
        """Run the connector of one account."""
        switchboard = switchboard_for(services, account.endpoint_identity)
        return mailboxes.watch(account, switchboard, services.tally)

    return watch
