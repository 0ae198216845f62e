"""Hints from Google that the mailbox may have changed: a Pub/Sub subscription (see `mailboxes/following/hints.py`)."""

import asyncio
import base64
import binascii
import contextlib
from datetime import timedelta
from typing import Any, cast

import httpx2
import orjson
import structlog

from postroom.core.errors import PostroomError, SettingsError
from postroom.mailboxes.gmail.refusals import SCOPE_REASONS, reason_in
from postroom.mailboxes.gmail.scopes import PUBSUB, needs_more
from postroom.mailboxes.gmail.service_account import KeyRefused
from postroom.mailboxes.gmail.tokens import KnowsConsent, TokenProvider

log = structlog.get_logger()

GOOGLE = "https://pubsub.googleapis.com"
MOST_MESSAGES = 100
# Google keeps a pull open for a while if there is nothing.
PATIENCE_S = 100.0
AFTER_TROUBLE = timedelta(minutes=1)


class HintsRefused(PostroomError):
    """The subscription cannot be pulled until somebody changes something."""


# Errors that waiting does not fix: the user is told, while mail keeps coming by polling.
NEEDS_A_PERSON = (HintsRefused, KeyRefused, SettingsError)


class PubSubHints:
    """Pulls a Google Pub/Sub subscription, which works behind a home router. It should be for this mailbox only."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        subscription: str,
        email: str,
        tokens: TokenProvider,
        base_url: str = GOOGLE,
        after_trouble: timedelta = AFTER_TROUBLE,
    ) -> None:
        self.problem: PostroomError | None = None
        self._last_problem = ""
        self._http = http
        self._subscription = subscription
        self._url = f"{base_url.rstrip('/')}/v1/{subscription}"
        self._email = email.lower()
        self._tokens = tokens
        self._after_trouble = after_trouble

    async def wait(self) -> None:
        while True:
            try:
                found = await self.pull()
            except (httpx2.HTTPError, httpx2.InvalidURL, PostroomError, OSError, ValueError) as error:
                self._log_once(error)
                await asyncio.sleep(self._after_trouble.total_seconds())
                continue
            self.problem, self._last_problem = None, ""
            if found:
                return

    def _log_once(self, error: Exception) -> None:
        """Log an error once, until it changes. Only our own errors are quoted: they contain no secrets."""
        self.problem = error if isinstance(error, NEEDS_A_PERSON) else None
        problem = str(error) if isinstance(error, PostroomError) else type(error).__name__
        if problem != self._last_problem:
            log.warning("connector.no_hints", error=problem)
        self._last_problem = problem

    async def pull(self) -> bool:
        """Pull once: take the hints for this mailbox, and return whether there were any."""
        answer = await self._post("pull", {"maxMessages": MOST_MESSAGES})
        received = cast("list[dict[str, Any]]", answer.get("receivedMessages") or [])
        ours = [each for each in received if self._is_ours(each.get("message") or {})]
        if ours:
            await self._post("acknowledge", {"ackIds": [str(each.get("ackId")) for each in ours]})
        return bool(ours)

    async def _post(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        token = await self._tokens.token()
        headers = {"Authorization": f"Bearer {token}"}
        answer = await self._http.post(
            f"{self._url}:{verb}", json=body, headers=headers, timeout=PATIENCE_S, follow_redirects=False
        )
        if answer.status_code == 401:
            self._tokens.refused(token)
        if answer.status_code in (403, 404):
            raise HintsRefused(self._refusal(answer.status_code, reason_in(answer.content)))
        answer.raise_for_status()
        content: object = orjson.loads(answer.content) if answer.content else {}
        return cast("dict[str, Any]", content) if isinstance(content, dict) else {}

    def _refusal(self, status: int, reason: str) -> str:
        if reason in SCOPE_REASONS:
            consented = self._tokens.consented() if isinstance(self._tokens, KnowsConsent) else None
            lacking = needs_more("pulling gmail.pubsub_subscription", (PUBSUB,), consented)
            return f"{lacking}; gmail.pubsub_subscription must be set there too. Or set gmail.pubsub_key_file"
        if status == 404:
            return (
                f"there is no subscription {self._subscription} (404); create it, or correct gmail.pubsub_subscription"
            )
        if reason == "SERVICE_DISABLED":
            return "Pub/Sub is disabled (403); enable the Cloud Pub/Sub API for the project of the subscription"
        return (
            f"{self._subscription} may not be pulled (403 {reason or 'no reason given'}); give the puller, the "
            "account or the service account of gmail.pubsub_key_file, the role Pub/Sub Subscriber on it"
        )

    def _is_ours(self, message: dict[str, Any]) -> bool:
        """Whether the message is for this mailbox. A malformed one counts as a hint: an extra sync does no harm."""
        with contextlib.suppress(binascii.Error, ValueError, AttributeError):
            notification = orjson.loads(base64.b64decode(str(message.get("data", ""))))
            return str(notification.get("emailAddress", self._email)).lower() == self._email
        return True
