"""Composes the SMTP transport from the settings."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import SystemRandom
from types import TracebackType
from typing import Literal, Self

import httpx2

from postroom.core.hosts import bare_name
from postroom.core.outbound.destinations import DestinationPauses, SigningKeys, StsPolicies
from postroom.core.outbound.pacing import PaceLimits
from postroom.core.outbound.retries import RetrySchedule
from postroom.operations.installation.vault import vault_of
from postroom.outbound.queue.destination_stores import StoredKeys, StoredPauses, StoredPolicies
from postroom.outbound.queue.smtp_delivery import SmtpRoad
from postroom.outbound.smtp.dkim import Signer
from postroom.outbound.smtp.dns import Dns, resolver_of
from postroom.outbound.smtp.mta_sts import HttpsPolicies, StsCache
from postroom.outbound.smtp.options import Reuse, SmartHost, SmtpOptions, Timeouts, TlsContexts
from postroom.outbound.smtp.transport import SmtpTransport
from postroom.settings.delivery import DeliverySettings
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.system.boot_clock import since_boot
from postroom.system.wall_clock import Clock, wall_clock

SIGNING_THREADS = 2


class SmtpOnDemand:
    """The SMTP transport of a process, started when the first mail needs it."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._starting = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()
        self._transport: SmtpTransport | None = None

    def road(self) -> SmtpRoad:
        delivery, days = self._settings.delivery, self._settings.outbound.expire_days
        schedule = RetrySchedule(give_up=timedelta(days=days))
        by_smart_host = delivery.smart_host is not None
        return SmtpRoad(
            self.transport,
            hostname_of(delivery),
            delivery.unknown,
            schedule,
            strikes=self._settings.outbound.strike_rule,
            by_smart_host=by_smart_host,
        )

    async def transport(self) -> SmtpTransport:
        async with self._starting:
            if self._transport is None:
                policies, pauses = StoredPolicies(self._database), StoredPauses(self._database)
                keys = StoredKeys(self._database, vault_of(self._settings), since_boot)
                opening = smtp_transport(self._settings.delivery, policies, keys, pauses)
                self._transport = await self._stack.enter_async_context(opening)
        return self._transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def smtp_transport(
    delivery: DeliverySettings,
    policies: StsPolicies,
    keys: SigningKeys,
    pauses: DestinationPauses | None = None,
    clock: Clock = wall_clock,
) -> AsyncGenerator[SmtpTransport]:
    options = smtp_options(delivery)
    contexts = TlsContexts.with_authorities(delivery.tls_ca_file)
    names = Dns(resolver_of(delivery.name_servers), since_boot, options.timeouts.dns)
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(verify=contexts.checked, trust_env=False))
        threads = stack.enter_context(ThreadPoolExecutor(SIGNING_THREADS, "postroom-dkim"))
        sts = StsCache(names, policies, HttpsPolicies(http, names, options), since_boot, clock)
        transport = SmtpTransport(
            options,
            contexts,
            names,
            SystemRandom(),
            since_boot,
            sts=sts if options.mta_sts else None,
            signer=Signer(keys, clock, threads),
            pauses=pauses,
        )
        stack.push_async_callback(transport.close)
        yield transport


def smtp_options(delivery: DeliverySettings) -> SmtpOptions:
    families: dict[str, tuple[Literal[4, 6], ...]] = {"both": (6, 4), "ipv4": (4,), "ipv6": (6,)}
    return SmtpOptions(
        hostname=hostname_of(delivery),
        own_names=frozenset(name.lower() for name in delivery.own_names),
        port=delivery.port,
        smart_host=_smart_host(delivery),
        require_tls=delivery.tls == "required",
        allow_private=delivery.allow_private_networks,
        families=families[delivery.address_families],
        mta_sts=delivery.mta_sts,
        timeouts=Timeouts(
            connect=delivery.connect_s,
            greeting=delivery.greeting_s,
            ehlo=delivery.greeting_s,
            mail=delivery.command_s,
            rcpt=delivery.command_s,
            data=delivery.data_s,
            block=delivery.block_s,
            final=delivery.final_s,
        ),
        reuse=Reuse(messages=delivery.keep_messages, idle_s=delivery.keep_idle_s),
        pace=PaceLimits(delivery.connections_first, delivery.connections_most, delivery.slow_s),
    )


def hostname_of(delivery: DeliverySettings) -> str:
    return delivery.hostname or socket.getfqdn()


def _smart_host(delivery: DeliverySettings) -> SmartHost | None:
    if delivery.smart_host is None:
        return None
    password = delivery.smart_host_password
    return SmartHost(
        bare_name(delivery.smart_host),
        delivery.smart_host_port,
        delivery.smart_host_tls,
        delivery.smart_host_username,
        password.get_secret_value() if password is not None else None,
    )
