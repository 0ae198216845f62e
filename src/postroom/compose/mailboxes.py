"""The mailboxes of the process that holds everything: a client for the jobs of each account, and a connector beside.

An account comes with its consent, or, for the sandbox, with a token in the settings. Connectors start and end as
accounts are connected, paused and removed; each reaches the switchboard through MCP, as it would from afar.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from postroom.compose.google import quota_terms
from postroom.core.errors import PostroomError, Retryable, SettingsError
from postroom.core.mail.accounts import gmail_endpoint
from postroom.gmail.client import GmailClient
from postroom.gmail.mailbox import GmailMailbox
from postroom.gmail.quota import Quota
from postroom.gmail.tokens import PlainTokens, TokenProvider
from postroom.handlers.label_watch import LabelWatch
from postroom.store import accounts
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.job_builders import labels_job
from postroom.store.jobs import enqueue_many
from postroom.store.mail import keep_account

if TYPE_CHECKING:
    import httpx2

    from postroom.accounts.credentials import AccessTokens
    from postroom.core.actions.permits import Permit
    from postroom.core.mail.mailbox import Mailbox
    from postroom.gmail.gate import Gate
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database

log = structlog.get_logger()

LOOK_EVERY_S = 30.0
LABELS_EVERY_S = 3600.0
SETTINGS_MAY_COME = timedelta(minutes=15)

Watch = Callable[[accounts.AccountView, Quota], Coroutine[Any, Any, None]]


class Mailboxes:
    """A client for each account, under one quota with its connector."""

    def __init__(
        self, settings: Settings, http: httpx2.AsyncClient, credentials: AccessTokens | None, gate: Gate
    ) -> None:
        self._settings = settings
        self._http = http
        self._credentials = credentials
        self._gate = gate
        self._terms = quota_terms(settings)
        self._quotas: dict[UUID, Quota] = {}
        self._mailboxes: dict[UUID, GmailMailbox] = {}

    def quota_of(self, account_id: UUID) -> Quota:
        return self._quotas.setdefault(account_id, Quota(self._terms))

    def client_of(self, account_id: UUID) -> GmailClient:
        """A client that only reads, until `under` gives it a permit."""
        base_url, quota = self._settings.gmail.base_url, self.quota_of(account_id)
        return GmailClient(self._http, base_url, self._tokens(account_id), quota=quota, gate=self._gate)

    def mailbox_of(self, permit: Permit) -> Mailbox:
        """The mailbox of the permit's account, for changes that rest on it.

        One for all jobs of the account, so that their calls can share requests.
        """
        account_id = permit.account_id
        if account_id not in self._mailboxes:
            self._mailboxes[account_id] = GmailMailbox(self.client_of(account_id))
        return self._mailboxes[account_id].under(permit)

    def _tokens(self, account_id: UUID) -> TokenProvider:
        given = self._settings.gmail.token
        if given is not None:
            return PlainTokens(_always(given.get_secret_value()))
        if self._credentials is None:
            raise Retryable("google.client_id and google.client_secret are not set", SETTINGS_MAY_COME)
        return self._credentials.for_jobs(account_id)


def _always(value: str) -> Callable[[], Coroutine[Any, Any, str]]:
    async def token() -> str:
        return value

    return token


async def keep_sandbox_account(settings: Settings, database: Database) -> None:
    """With a token in the settings there is one account, which needs no consent."""
    if settings.gmail.token is None:
        return
    if settings.account.email is None:
        raise SettingsError("account.email is not set; give the mailbox's address in POSTROOM_ACCOUNT_EMAIL")
    email = settings.account.email
    await database.run(keep_account(new_id(), "gmail", gmail_endpoint(email), email, wall_clock()))


async def watch_accounts(settings: Settings, database: Database, mailboxes: Mailboxes, watch: Watch) -> None:
    """A connector for each account that is in use, as they come and go. One that fails is started again."""
    changed = asyncio.Event()
    subscription = database.subscribe(accounts.CHANNEL, lambda _message: changed.set())
    running: dict[UUID, asyncio.Task[None]] = {}
    labels_asked: dict[UUID, float] = {}
    try:
        while True:
            changed.clear()
            try:
                wanted = {each.id: each for each in await _in_use(settings, database)}
                await _ask_for_labels(database, labels_asked, list(wanted))
            except PostroomError as error:
                log.warning("mailboxes.interrupted", error=type(error).__name__)
                wanted = None
            if wanted is not None:
                await _end([running.pop(id) for id in running.keys() - wanted.keys()])
                for id, account in wanted.items():
                    if id not in running or running[id].done():
                        running[id] = asyncio.create_task(_logged(watch(account, mailboxes.quota_of(id))))
            await signalled(changed, LOOK_EVERY_S)
    finally:
        subscription.close()
        await _end(list(running.values()))


async def watch_labels(settings: Settings, database: Database, mailboxes: Mailboxes) -> None:
    """Looks at the labels of each account that is in use, again and again."""

    async def accounts_in_use() -> list[UUID]:
        return [each.id for each in await _in_use(settings, database)]

    await LabelWatch(database, mailboxes.client_of).run(accounts_in_use)


async def _in_use(settings: Settings, database: Database) -> list[accounts.AccountView]:
    """The accounts to watch: of the sandbox only its own, which has no consent."""
    token = settings.gmail.token is not None
    return [
        each
        for each in await database.run(accounts.list_accounts())
        if each.state == "active" and (each.email == settings.account.email if token else each.consent is not None)
    ]


async def _ask_for_labels(database: Database, asked: dict[UUID, float], ids: list[UUID]) -> None:
    """At the start and once an hour the labels of each are looked at."""
    for id in ids:
        if time.monotonic() - asked.get(id, float("-inf")) >= LABELS_EVERY_S:
            await database.run(enqueue_many([labels_job(id)], wall_clock()))
            asked[id] = time.monotonic()


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception as error:
        log.error("mailbox.connector_failed", error=type(error).__name__)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
