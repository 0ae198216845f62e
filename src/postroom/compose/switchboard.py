"""Compose the switchboard of a process: its services, its keeper, and how connectors reach it."""

import contextlib
import socket
from collections.abc import AsyncGenerator
from datetime import timedelta

import httpx2

from postroom.compose.credentials import open_credentials
from postroom.core.days import zone_named
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Principal, Role
from postroom.core.tally import Gauges, Tally
from postroom.intake.buffer import Buffer
from postroom.intake.disk import DiskReserve
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.token_check import TokenCheck
from postroom.operations.backfill.keeper import Keeper
from postroom.outbound.submission.submissions import SubmissionLimits, SubmissionOptions, Submissions
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_within
from postroom.store.engine.clock import clock_of
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents

MIB = 1024 * 1024

# When no signal came: mail is announced, and writes of other processes are noticed.
IDLE_POLL = timedelta(minutes=1)


@contextlib.asynccontextmanager
async def open_services(
    settings: Settings, database: Database, http: httpx2.AsyncClient, reserve: DiskReserve | None
) -> AsyncGenerator[Services]:
    """Open the services behind the HTTP and MCP endpoints; they are closed before the database is."""
    queues, tally = queues_of(settings.queues, settings.routes), Tally()
    agents = Agents(_requests(settings, database))

    async def renew(changed: Settings) -> None:
        agents.requests = _requests(changed, database)

    async with open_credentials(settings, database, http) as credentials:
        services = Services(
            settings=settings,
            intake=Intake(database, reserve, queues=queues, tally=tally, clock=clock_of(database)),
            buffer=Buffer(database, queues, tally=tally, clock=clock_of(database)),
            database=database,
            queues=queues,
            token_check=TokenCheck(database, clock_of(database)),
            tally=tally,
            clock=clock_of(database),
            credentials=credentials,
            agents=agents,
            submissions=submissions_of(settings, database, reserve, tally),
        )
        await services.parts.live.keep_up(renew)
        try:
            yield services
        finally:
            await services.parts.requests.close()
            await services.buffer.close()
            await services.token_check.close()


def submissions_of(settings: Settings, database: Database, reserve: DiskReserve | None, tally: Tally) -> Submissions:
    """Return the acceptance of mail from senders, the same over SMTP, HTTP and MCP."""
    given = settings.submission
    limits = SubmissionLimits(given.max_size_mib * MIB, given.max_recipients, given.max_per_minute)
    host = given.hostname or settings.delivery.hostname or socket.getfqdn()
    options = SubmissionOptions(host, limits, settings.outbound.limits, settings.outbound.rollout)
    check_room = _no_check if reserve is None else reserve.check
    return Submissions(database, options, check_room=check_room, tally=tally, clock=clock_of(database))


def _no_check() -> None:
    """PostgreSQL itself says when its disk is full."""


def _requests(settings: Settings, database: Database) -> ActionRequests:
    approval_time = timedelta(hours=settings.safety.approval_hours)
    return ActionRequests(database, CATALOGUE, policy_of(settings), clock_of(database), approval_time)


def reserve_of(settings: Settings, database: Database) -> DiskReserve | None:
    if database.dialect != "sqlite":
        return None
    return DiskReserve(settings.data_dir, settings.disk_reserve_mib, database=settings.data_dir / FILE)


def keeper_of(settings: Settings, services: Services, gauges: Gauges, reserve: DiskReserve | None) -> Keeper:
    return Keeper(
        services.database,
        services.queues,
        services.buffer,
        gauges,
        keep=timedelta(days=settings.inbox.keep_days),
        keep_rollups=timedelta(days=settings.inbox.rollup_days),
        log_bytes=lambda: None if reserve is None else reserve.log_bytes,
        clock=services.clock,
        backfills=services.parts.backfill_work,
        zone=zone_named(settings.time_zone),
    )


def dispatcher_of(services: Services) -> Dispatcher:
    """Return what passes mail on to the jobs."""
    email = services.queues["email"]
    return Dispatcher(services.database, CATALOGUE, services.buffer, email, poll=IDLE_POLL, clock=services.clock)


def switchboard_for(services: Services, identity: str) -> McpSwitchboard:
    """Return the switchboard as the connector of this endpoint reaches it: through MCP, as a remote one does."""
    return switchboard_within(build_server(services, Principal(Role.CONNECTOR, identity)))
