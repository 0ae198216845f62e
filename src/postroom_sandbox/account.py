"""One user of the emulator: a mailbox with its drafts, watch and settings; and one call of an API method."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import METADATA
from postroom_sandbox.outgoing import Outgoing
from postroom_sandbox.refusal import forbidden
from postroom_sandbox.requests import PageTokens, Parameters
from postroom_sandbox.send_as import SendAs
from postroom_sandbox.vacation import Vacation
from postroom_sandbox.watch import Watcher

Json = dict[str, Any]


@dataclass(frozen=True)
class Account:
    mailbox: Mailbox
    outgoing: Outgoing
    watcher: Watcher
    pages: PageTokens
    send_as: SendAs
    vacation: Vacation


@dataclass(frozen=True)
class Call:
    """One call of a method: the account, and the granted scopes."""

    account: Account
    request: Request
    scopes: frozenset[str]

    @property
    def mailbox(self) -> Mailbox:
        return self.account.mailbox

    def named(self, name: str = "id") -> str:
        """A path parameter."""
        return self.request.path_params[name]

    def parameters(self, *known: str) -> Parameters:
        return Parameters(self.request).only(*known)

    @property
    def only_metadata(self) -> bool:
        """Whether the scopes only allow reading headers."""
        granted = self.scopes - {METADATA}
        return METADATA in self.scopes and not any("gmail" in scope or "mail.google" in scope for scope in granted)

    def check_format(self, format: str) -> None:
        if self.only_metadata and format not in ("metadata", "minimal"):
            raise forbidden(f"Metadata scope doesn't allow format {format.upper()}")

    def check_search(self, q: str) -> None:
        if self.only_metadata and q:
            raise forbidden("Metadata scope does not support 'q' parameter")


Endpoint = Callable[[Call], Awaitable[Json]]
