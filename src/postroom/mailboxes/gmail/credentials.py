"""Access tokens for mailboxes, valid for an hour; the refresh token behind them never leaves this module.

A token is replaced five minutes before it expires, once for all waiting callers; while that fails temporarily, the old
one is used. Its age is measured by the monotonic clock; the wall clock can only make it older, for a machine that
slept. Several processes may do this for the same account: Google gives each its own token.

If Google no longer accepts a consent, the account becomes `needs_consent`, with the reason. Its jobs are then parked
under the account's key, without using up attempts, until the user consents again (`store/accounts/accounts.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never
from uuid import UUID

import structlog

from postroom.core.errors import AccountUnusable, Fatal, Parked, Retryable, StoreError
from postroom.core.mail.account_repair import connect_command, repair_for, resume_command
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.mailboxes.gmail.errors import ConsentLost, GmailTokenUnavailable
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.oauth import ConsentLife, GoogleAppRefused, GoogleOAuth
from postroom.mailboxes.gmail.scopes import Consented
from postroom.mailboxes.oauth.tokens import Grant
from postroom.mailboxes.providers import AccountToken

if TYPE_CHECKING:
    from postroom.mailboxes.accounts.book import AccountBook
    from postroom.mailboxes.providers import AccountTokens
    from postroom.store.accounts.accounts import AccountView, AccountWithSecret

EARLY_S = 300.0
LOOK_AGAIN_S = 5.0
MOST_RENEWED = 3

log = structlog.get_logger()


@dataclass(slots=True)
class _Current:
    """An account's current token, and when it was requested, by both clocks."""

    account: AccountView
    value: str = field(repr=False)
    life_s: float
    asked_mono: float
    asked_at: datetime
    looked_mono: float


class AccessTokens:
    """The access tokens of all accounts that this process has used."""

    def __init__(
        self,
        book: AccountBook,
        oauth: GoogleOAuth,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._book = book
        self._oauth = oauth
        self._clock = book.clock
        self._monotonic = monotonic
        self._current: dict[UUID, _Current] = {}
        self._fetching: dict[UUID, asyncio.Task[_Current]] = {}

    async def of(self, account_id: UUID) -> AccountToken:
        """A token for the account. Raises AccountUnusable, or TokenUnavailable if a retry may help."""
        current = await self._looked_at(account_id)
        if current is None or self._left_s(current) <= min(EARLY_S, current.life_s / 2):
            current = await self._replace(account_id, current)
        left = max(0.0, self._left_s(current))
        return AccountToken(current.account, current.value, timedelta(seconds=left))

    async def at(self, endpoint_identity: str) -> AccountToken:
        """A token for the account of an endpoint, as connectors name it."""
        account = await self._book.at(endpoint_identity)
        if account is None:
            raise _not_connected(endpoint_identity)
        return await self.of(account.id)

    def refused(self, account_id: UUID, token: str) -> None:
        """Discard this token, since the mailbox did not accept it."""
        current = self._current.get(account_id)
        if current is not None and current.value == token:
            del self._current[account_id]

    async def refused_at(self, endpoint_identity: str, token: str) -> None:
        """The same for the account of an endpoint."""
        account = await self._book.at(endpoint_identity)
        if account is not None:
            self.refused(account.id, token)

    async def close(self) -> None:
        """Cancel running fetches; call it before the database is closed."""
        fetching = list(self._fetching.values())
        for task in fetching:
            task.cancel()
        if fetching:
            await asyncio.wait(fetching)

    def _left_s(self, current: _Current) -> float:
        ticked = self._monotonic() - current.asked_mono
        passed = (self._clock() - current.asked_at).total_seconds()
        return current.life_s - max(ticked, passed)

    async def _looked_at(self, account_id: UUID) -> _Current | None:
        """The cached token, unless the account was paused, removed or reconnected since, in any process."""
        current = self._current.get(account_id)
        if current is None or self._monotonic() - current.looked_mono < LOOK_AGAIN_S:
            return current
        account = await self._book.load(account_id)
        if account.state != "active" or account.consent is None or _granted_at(account) != _granted_at(current.account):
            self._current.pop(account_id, None)
            return None
        current.looked_mono = self._monotonic()
        return current

    async def _replace(self, account_id: UUID, current: _Current | None) -> _Current:
        try:
            return await self._fetched_once(account_id)
        except (GmailTokenUnavailable, StoreError):
            # Requested early, so that a short failure has no effect.
            if current is not None and self._left_s(current) > 0 and self._current.get(account_id) is current:
                return current
            raise

    async def _fetched_once(self, account_id: UUID) -> _Current:
        """The current fetch, or a new one. It is not canceled together with one of its waiting callers."""
        fetching = self._fetching.get(account_id)
        if fetching is None:
            fetching = asyncio.create_task(self._fetch(account_id), name="postroom-access-token")
            self._fetching[account_id] = fetching
            fetching.add_done_callback(_mark_seen)
        return await asyncio.shield(fetching)

    async def _fetch(self, account_id: UUID) -> _Current:
        try:
            for _ in range(MOST_RENEWED):
                held = await self._book.with_secret(account_id, REFRESH_TOKEN)
                if (fetched := await self._refresh(held)) is not None:
                    self._current[account_id] = fetched
                    return fetched
            raise GmailTokenUnavailable("the account was reconnected repeatedly meanwhile")
        finally:
            del self._fetching[account_id]

    async def _refresh(self, held: AccountWithSecret) -> _Current | None:
        """Refresh the token; None if the consent was renewed while Google refused the previous one."""
        account, sealed = held
        if account.state != "active" or account.consent is None or sealed is None:
            raise _unusable(account)
        consent = account.consent
        secret = self._book.open(sealed, account.id, REFRESH_TOKEN)
        life = ConsentLife(account.email, consent.granted_at, consent.refreshed_at, consent.dies_at)
        asked_mono, asked_at = self._monotonic(), self._clock()
        try:
            grant = await self._oauth.refresh(secret, life, asked_at)
        except ConsentLost as lost:
            return await self._lose_consent(account, consent.granted_at, str(lost))
        except GoogleAppRefused as lost:
            reason = str(lost) if lost.needs_consent else repair_for(str(lost), account.email)
            return await self._lose_consent(account, consent.granted_at, reason)
        await self._note(held, grant)
        seconds = grant.expires_in.total_seconds()
        return _Current(account, grant.access_token, seconds, asked_mono, asked_at, asked_mono)

    async def _lose_consent(self, account: AccountView, granted_at: datetime, reason: str) -> None:
        """Record the lost consent and raise the account's state, unless the account has changed since."""
        if await self._book.lose_consent(account.id, granted_at, reason):
            log.warning("account.needs_consent", account=account.id, reason=reason)
            raise _needs_consent(reason)

    async def _note(self, held: AccountWithSecret, grant: Grant) -> None:
        """Record that the consent is valid, and store a new refresh token if Google issued one."""
        account, sealed = held
        if account.consent is None or sealed is None:
            return
        await self._book.note_refresh(account.id, account.consent.granted_at)
        if (secret := grant.refresh_token) is not None:
            await self._book.replace(account.id, REFRESH_TOKEN, sealed, secret)


class JobTokens:
    """The tokens of one account for jobs: if there is none, the job ends in the right way."""

    def __init__(self, tokens: AccountTokens, account_id: UUID) -> None:
        self._tokens = tokens
        self._account_id = account_id
        self._account: AccountView | None = None

    async def token(self) -> str:
        """A token. Raises Parked while a person must act, Fatal if the account is gone, otherwise Retryable."""
        try:
            token = await self._tokens.of(self._account_id)
        except AccountUnusable as error:
            if error.state in ("paused", "needs_consent"):
                raise Parked(parking_key(self._account_id), str(error)) from error
            raise Fatal(str(error)) from error
        except GmailTokenUnavailable as error:
            raise Retryable(str(error), error.retry_after) from error
        self._account = token.account
        return token.value

    def consented(self) -> Consented | None:
        account = self._account
        return None if account is None or account.consent is None else Consented(account.email, account.consent.scopes)

    def refused(self, token: str) -> None:
        self._tokens.refused(self._account_id, token)


def _needs_consent(reason: str) -> AccountUnusable:
    problem, _, remedy = reason.rpartition("; ")
    return AccountUnusable("needs_consent", problem, remedy)


def _unusable(account: AccountView) -> AccountUnusable:
    match account.state:
        case "paused":
            remedy = f"run `{resume_command(account.email)}`"
            return AccountUnusable("paused", f"{account.email} is paused", remedy)
        case "needs_consent":
            return _needs_consent(account.state_reason or "")
        case "removed":
            return AccountUnusable(
                "removed",
                f"{account.email} was removed",
                f"connect it with `{connect_command(account.provider, account.email)}`",
            )
        case "active":
            return _not_connected(account.email)
        case _:
            assert_never(account.state)


def _not_connected(what: str) -> AccountUnusable:
    return AccountUnusable("missing", f"{what} is not connected", f"connect it with `postroom account add {NAME}`")


def _granted_at(account: AccountView) -> datetime | None:
    return None if account.consent is None else account.consent.granted_at


def _mark_seen(task: asyncio.Task[_Current]) -> None:
    """Mark the error as seen: waiting callers got it, and asyncio should not report it if none are left."""
    if not task.cancelled():
        task.exception()
