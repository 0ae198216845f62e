"""Gmail's REST API over mailboxes in memory, as an ASGI application, with Google's OAuth, batch, quota and Pub/Sub.

It answers as the real one would, errors included, and follows Google's discovery document. Under `/sandbox/` is the
control API: deliver mail, add faults, read counters, reset.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from postroom_sandbox.account import Account
from postroom_sandbox.batch import Batch
from postroom_sandbox.connection import FaultyConnections, Sleep
from postroom_sandbox.consent import Consents, Issued
from postroom_sandbox.control import Control
from postroom_sandbox.dates import DatedAnswers
from postroom_sandbox.faults import SEED, Faults
from postroom_sandbox.gmail_api import GmailApi, json_response, refused
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import ALL_SCOPES
from postroom_sandbox.oauth_api import OauthApi
from postroom_sandbox.outgoing import Outgoing
from postroom_sandbox.pubsub import Pubsub
from postroom_sandbox.pubsub_api import PubsubApi
from postroom_sandbox.quota import Limits, Quota
from postroom_sandbox.refusal import Refusal, missing, unauthenticated
from postroom_sandbox.requests import PageTokens
from postroom_sandbox.send_as import SendAs
from postroom_sandbox.service_accounts import ServiceAccounts
from postroom_sandbox.signing import Signer
from postroom_sandbox.vacation import Vacation
from postroom_sandbox.watch import Watcher

Json = dict[str, Any]


class Emulator:
    """Google for one mailbox, and for more that are added.

    `token` gives access to the first mailbox, never expires, and is the only one that the control API accepts. `fill`
    adds the initial mail. The clock is that of the first mailbox.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        token: str,
        fill: Callable[[Mailbox], None] = lambda mailbox: None,
        *,
        limits: Limits | None = None,
        sleep: Sleep = asyncio.sleep,
        seed: int = SEED,
    ) -> None:
        self.mailbox = mailbox
        self.accounts: dict[str, Account] = {}
        self.faults = Faults(mailbox.clock, seed)
        self.quota = Quota(mailbox.clock, limits)
        self.consents = Consents(mailbox.clock)
        self.service_accounts = ServiceAccounts(mailbox.clock)
        self.signer = Signer()
        self.pubsub = Pubsub(mailbox.clock, self.signer, sleep)
        self._pages = PageTokens()
        self._token = token
        self._fill = fill
        self._sleep = sleep
        self._control = Control(self)
        self.add(mailbox, token)
        fill(mailbox)

    def add(self, mailbox: Mailbox, token: str | None = None) -> Account:
        """Add a user with a mailbox and, if given, a token that never expires."""
        send_as = SendAs(mailbox.owner)
        outgoing = Outgoing(mailbox, self._post, send_as.usable)
        account = Account(mailbox, outgoing, Watcher(mailbox, self.pubsub), self._pages, send_as, Vacation())
        mailbox.own_addresses = send_as.usable
        mailbox.forward = self._post
        self.accounts[mailbox.owner] = account
        if token is not None:
            self.consents.admit(token, mailbox.owner)
        return account

    def issue_token(self, user: str | None = None, scopes: Collection[str] = ALL_SCOPES) -> Issued:
        """Issue an access and a refresh token, as if the user had consented in a browser."""
        return self.consents.issue(user or self.mailbox.owner, scopes)

    def reset(self) -> None:
        self.faults.clear()
        self.quota.reset()
        self.accounts[self.mailbox.owner].outgoing.forget()
        self.accounts[self.mailbox.owner].send_as.clear()
        self.accounts[self.mailbox.owner].vacation.clear()
        self.mailbox.clear()
        self._fill(self.mailbox)

    def app(self) -> ASGIApp:
        routes = GmailApi(self.accounts, self.consents, self.quota, self.faults).routes()
        routes += OauthApi(self.accounts, self.consents, self.signer, self.service_accounts).routes()
        routes += PubsubApi(self.pubsub, self.consents).routes()
        google = Starlette(routes=routes, exception_handlers={HTTPException: _unknown_address})
        batch = Batch(google, self.quota)
        ours = [Route(path, batch.answer, methods=["POST"]) for path in ("/batch", "/batch/gmail/v1")]
        whole = Starlette(
            routes=[*ours, *self._control_routes(), *routes], exception_handlers={HTTPException: _unknown_address}
        )
        return FaultyConnections(DatedAnswers(whole, self.mailbox.clock), self.faults, self._sleep)

    def _control_routes(self) -> list[Route]:
        control = self._control
        offered: list[tuple[str, str, Callable[[Request], Awaitable[Json]]]] = [
            ("POST", "messages", control.deliver),
            ("GET", "faults", control.list_faults),
            ("POST", "faults", control.order_fault),
            ("DELETE", "faults", control.clear_faults),
            ("POST", "reset", control.reset),
            ("POST", "history/expire", control.expire_history),
            ("GET", "counters", control.counters),
            ("DELETE", "counters", control.reset_counters),
            ("POST", "quota", control.set_quota),
            ("POST", "search", control.set_search),
            ("POST", "tokens", control.issue_token),
            ("POST", "tokens/revoke", control.revoke),
            ("POST", "consent", control.set_consent),
            ("POST", "accounts", control.add_account),
            ("POST", "sendAs", control.add_send_as),
            ("POST", "forwardingAddresses", control.add_forwarding_address),
            ("POST", "serviceAccounts", control.create_service_key),
        ]
        return [Route(f"/sandbox/{path}", self._guarded(end), methods=[verb]) for verb, path, end in offered]

    def _guarded(self, endpoint: Callable[[Request], Awaitable[Json]]) -> Callable[[Request], Awaitable[Response]]:
        """Protect a control endpoint with the emulator's own token, which faults and revocations do not affect."""

        async def answer(request: Request) -> Response:
            try:
                scheme, _, given = request.headers.get("Authorization", "").partition(" ")
                if scheme.lower() != "bearer" or not secrets.compare_digest(
                    given.strip().encode(), self._token.encode()
                ):
                    raise unauthenticated()
                return json_response(await endpoint(request))
            except Refusal as refusal:
                return refused(refusal)

        return answer

    def _post(self, address: str, raw: bytes) -> None:
        """Deliver a sent mail if its recipient has a mailbox here."""
        for owner, account in self.accounts.items():
            if owner.lower() == address:
                account.mailbox.receive(raw)


async def _unknown_address(request: Request, error: Exception) -> Response:
    return refused(missing())
