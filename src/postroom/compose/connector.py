"""The common parts of every connector in its own process: its token, its introduction, its metrics, its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    from postroom.core.tally import Tally
    from postroom.settings.reading import Settings

DRAIN = timedelta(seconds=10)


def connector_token(settings: Settings, identity: str) -> str:
    """Return the connector's token for the switchboard. Raise SettingsError, which says how to get one."""
    if settings.connector.token is None:
        command = f"postroom token create --role connector --identity {identity}"
        raise SettingsError(f"connector.token is not set; put what `{command}` prints into POSTROOM_CONNECTOR_TOKEN")
    return settings.connector.token.get_secret_value()


@contextlib.asynccontextmanager
async def exporting_alone(settings: Settings) -> AsyncGenerator[Tally]:
    """Export this process's metrics during the block: over OTLP, and at `telemetry.listen` for Prometheus."""
    from postroom.core.tally import Gauges, Tally

    tally = Tally()
    if settings.telemetry.listen is None and settings.telemetry.otlp_endpoint is None:
        yield tally
        return
    from postroom.system.http_server.metrics import serving_metrics
    from postroom.telemetry.exporter import exporting

    async with (
        exporting(settings.telemetry, tally, Gauges()) as exporter,
        serving_metrics(
            settings.telemetry.listen,
            exporter.metrics_text,
            settings.web.allowed_hosts,
            allow_exposed=settings.web.allow_unprotected_bind,
        ),
    ):
        yield tally


def heartbeat_every(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.connector.heartbeat_s)


async def until_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Run the work until it ends, or until `stop`; work in progress then has DRAIN to finish."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working}, timeout=DRAIN.total_seconds())
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()
