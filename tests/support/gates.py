"""For tests that use a mailbox directly: a gate that lets everything out, and a lease that lasts."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2

from postroom.core.actions.permits import HeldLease, Permit
from postroom.core.errors import PostroomError, SafetyRefused
from postroom.core.mail.mailbox import MailboxLabel
from postroom.mailboxes.gmail.tokens import Token, TokenProvider
from support.whole_gmail import WholeGmailClient

LASTING = HeldLease(float("inf"))
BY_HAND = Permit(UUID(int=0), LASTING)


class OpenGate:
    """Lets everything out."""

    protects_labels = False

    async def clear(self, permits: Sequence[Permit], labels: Mapping[str, Any], listed: frozenset[UUID]) -> "_Cleared":
        return _Cleared()

    async def learn_labels(self, account_id: UUID, labels: Sequence[MailboxLabel]) -> None: ...


class ProtectingGate(OpenGate):
    """Lets everything out, unless it is `closed`, or the message in `protects` bears the label there."""

    protects_labels = True

    def __init__(self) -> None:
        self.closed: PostroomError | None = None
        self.protects: tuple[str, str] | None = None

    async def clear(self, permits: Sequence[Permit], labels: Mapping[str, Any], listed: frozenset[UUID]) -> "_Cleared":
        if self.closed is not None:
            return _Cleared(refused=dict.fromkeys(range(len(permits)), self.closed))
        if self.protects is None:
            return _Cleared()
        id, label = self.protects
        if id not in labels:
            return _Cleared(wants_labels={0: id})
        return _Cleared(refused={0: SafetyRefused("its label is protected")} if label in (labels[id] or ()) else {})


@dataclass
class _Cleared:
    refused: Mapping[int, PostroomError] = field(default_factory=dict[int, PostroomError])
    wants_labels: Mapping[int, str] = field(default_factory=dict[int, str])
    wants_names: bool = False

    def check(self) -> None: ...

    def on_the_wire(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def owners_client(
    http: httpx2.AsyncClient, url: str, token: TokenProvider | Token, user: str = "me", **options: Any
) -> WholeGmailClient:
    """The mailbox's owner at work: nothing is asked."""
    return WholeGmailClient(http, url, token, user, gate=OpenGate(), **options).under(BY_HAND)
