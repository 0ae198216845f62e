"""The mailboxes of the process that runs everything: one for the jobs of each account, and its connector.

Connectors start and stop as accounts are connected, paused and removed. Each reaches the switchboard through MCP, as
a remote one does.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import httpx2
import structlog

from postroom.compose.connector_failures import ConnectorFailures
from postroom.core.actions.permits import Permit
from postroom.core.errors import Fatal, NotFound, PostroomError
from postroom.core.mail.accounts import endpoint_of
from postroom.core.mail.carrier import Carrier, SentMailbox
from postroom.core.mail.gate import Gate
from postroom.core.mail.mailbox import Mailbox
from postroom.core.mail.providers import PROVIDERS
from postroom.core.tally import Tally
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.following.source import MailSource
from postroom.mailboxes.providers import AccountTokens, MailProvider, ProviderParts, provider_named
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import Settings
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs.job_builders import labels_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom.triage.handlers.label_watch import LabelWatch

log = structlog.get_logger()

LOOK_EVERY_S = 30.0

Watch = Callable[[accounts.AccountView], Coroutine[Any, Any, None]]


class Mailboxes:
    """The mailbox of each account, by the account's provider."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        http: httpx2.AsyncClient,
        credentials: AccountTokens | None,
        gate: Gate,
    ) -> None:
        self._database = database
        parts = ProviderParts(settings, AccountBook(database, lambda: vault_of(settings)), http, gate, credentials)
        self._providers = {name: provider_named(name).open(parts) for name in PROVIDERS}
        self._names: dict[UUID, str] = {}

    async def mailbox(self, account_id: UUID) -> Mailbox:
        return await (await self._provider(account_id)).mailbox(account_id)

    async def mailbox_under(self, permit: Permit) -> Mailbox:
        return await (await self._provider(permit.account_id)).mailbox_under(permit)

    async def source(self, account_id: UUID) -> MailSource:
        return await (await self._provider(account_id)).source(account_id)

    @contextlib.asynccontextmanager
    async def opened_source(self, _database: Database, account_id: UUID) -> AsyncGenerator[MailSource]:
        """Open the mailbox for reading; it stays open as long as this object does."""
        yield await self.source(account_id)

    async def sent_mail(self, account_id: UUID) -> SentMailbox:
        return await (await self._provider(account_id)).sent_mail(account_id)

    async def carrier(self, permit: Permit) -> Carrier:
        return await (await self._provider(permit.account_id)).carrier(permit)

    async def watch(self, account: accounts.AccountView, switchboard: McpSwitchboard, tally: Tally) -> None:
        await self._provider_named(account.provider).watch(account, switchboard, tally)

    async def in_use(self) -> list[accounts.AccountView]:
        """List the accounts to watch."""
        return [
            each
            for each in await self._database.run(accounts.list_accounts())
            if each.state == "active"
            and (provider := self._providers.get(each.provider)) is not None
            and provider.is_reachable(each)
        ]

    async def aclose(self) -> None:
        for each in self._providers.values():
            await each.aclose()

    async def ids_in_use(self) -> list[UUID]:
        return [each.id for each in await self.in_use()]

    async def _provider(self, account_id: UUID) -> MailProvider:
        """Return the account's provider, which never changes: the database is asked once."""
        if account_id not in self._names:
            try:
                self._names[account_id] = (await self._database.run(accounts.load_account(account_id))).provider
            except NotFound as error:
                raise Fatal(str(error)) from None
        return self._provider_named(self._names[account_id])

    def _provider_named(self, name: str) -> MailProvider:
        if name not in self._providers:
            raise Fatal(f"mailboxes of {name} are unknown; known are: {', '.join(self._providers)}")
        return self._providers[name]


async def keep_sandbox_account(settings: Settings, database: Database, acts_from: datetime | None = None) -> None:
    """Create the one account of the sandbox, which needs no consent, if the settings hold its token. As every account
    it begins to act when its owner says so, unless `acts_from` is given.
    """
    for name in PROVIDERS:
        if (email := provider_named(name).address_in_settings(settings)) is not None:
            account = keep_account(new_id(), name, endpoint_of(name, email), email, wall_clock(), acts_from)
            await database.run(account)


class _Start(NamedTuple):
    """The account as it was when its connector was started last, and when that was, in seconds of the loop."""

    account: accounts.AccountView
    at: float

    def may_be_repeated(self, account: accounts.AccountView, now: float) -> bool:
        """Whether a connector that has ended is started again: after a while, or at once if its account has changed. On
        SQLite every write of another process is a signal, so that a signal alone is no reason.
        """
        return account != self.account or now - self.at >= LOOK_EVERY_S


async def watch_accounts(database: Database, mailboxes: Mailboxes, watch: Watch) -> None:
    """Run a connector for each account in use, as they come and go. Restart one that fails, or whose servers change."""
    loop = asyncio.get_running_loop()
    changed = asyncio.Event()
    subscription = database.subscribe(accounts.CHANNEL, lambda _message: changed.set())
    running: dict[UUID, asyncio.Task[None]] = {}
    failures = ConnectorFailures()
    started: dict[UUID, _Start] = {}
    try:
        while True:
            changed.clear()
            try:
                wanted = {each.id: each for each in await mailboxes.in_use()}
                # Labels are read at once where a mailbox comes into use, and later on a schedule.
                if fresh := [labels_job(id) for id in wanted if id not in running]:
                    await database.run(enqueue_many(fresh, wall_clock()))
            except PostroomError as error:
                log.warning("mailboxes.interrupted", error=type(error).__name__)
                wanted = None
            if wanted is not None:
                kept = {
                    id for id in running.keys() & wanted.keys() if started[id].account.servers == wanted[id].servers
                }
                await _end([running.pop(id) for id in running.keys() - kept])
                for id, account in wanted.items():
                    if id in running and not (running[id].done() and started[id].may_be_repeated(account, loop.time())):
                        continue
                    started[id] = _Start(account, loop.time())
                    running[id] = asyncio.create_task(failures.run(id, watch(account)))
            await signalled(changed, LOOK_EVERY_S)
    finally:
        subscription.close()
        await _end(list(running.values()))


async def watch_labels(database: Database, mailboxes: Mailboxes) -> None:
    """Watch the labels of each account in use."""
    await LabelWatch(database, mailboxes.mailbox).run(mailboxes.ids_in_use)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
