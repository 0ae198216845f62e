"""For tests that use a mailbox directly: a gate that lets everything out, and a lease that lasts."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx2

from postroom.core.actions.permits import HeldLease, Permit
from postroom.core.errors import PostroomError
from postroom.gmail.client import GmailClient
from postroom.gmail.resources import Label
from postroom.gmail.tokens import Token, TokenProvider

LASTING = HeldLease(float("inf"))
BY_HAND = Permit(UUID(int=0), LASTING)


class OpenGate:
    """Lets everything out."""

    protects_labels = False

    async def clear(self, permits: Sequence[Permit], labels: Mapping[str, Any], listed: frozenset[UUID]) -> "_Cleared":
        return _Cleared()

    async def learn_labels(self, account_id: UUID, labels: Sequence[Label]) -> None: ...


class _Cleared:
    refused: Mapping[int, PostroomError] = {}
    wants_labels: Mapping[int, str] = {}
    wants_names = False

    def check(self) -> None: ...

    def on_the_wire(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def owners_client(
    http: httpx2.AsyncClient, url: str, token: TokenProvider | Token, user: str = "me", **options: Any
) -> GmailClient:
    """The mailbox's owner at work: nothing is asked."""
    return GmailClient(http, url, token, user, gate=OpenGate(), **options).under(BY_HAND)
