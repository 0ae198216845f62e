"""The gate: every request that changes a mailbox or sends mail passes it just before it is sent.

Each provider must ask it; `tests/conformance/test_providers.py` checks that. After all waiting, for quota too, the
provider asks for a clearance, and the request is written only while the clearance is valid, which is checked again
right before each write. If it has expired, the gate is asked again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import PostroomError
from postroom.core.mail.mailbox import MailboxLabel

Labels = Mapping[str, frozenset[str] | None]
"""The labels of messages, by the provider's id; None for a message that is gone."""


class ClearanceExpired(Exception):
    """The request was not sent, or not all of it, so it has no effect. The gate must be asked again."""


class Clearance(Protocol):
    """The gate's answer for several permits, by index."""

    @property
    def refused(self) -> Mapping[int, PostroomError]:
        """Why some may not be sent."""
        ...

    @property
    def wants_labels(self) -> Mapping[int, str]:
        """Permits that can only be judged after reading the labels of a message, named here."""
        ...

    @property
    def wants_names(self) -> bool:
        """Whether the list of the mailbox's labels must be read first."""
        ...

    def check(self) -> None:
        """Raise ClearanceExpired if nothing may be written any more."""
        ...

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Count the request as in flight, from its first byte to the end of this block."""
        ...


class Gate(Protocol):
    """Decides which requests may be sent."""

    @property
    def protects_labels(self) -> bool:
        """Whether labels are likely to be needed."""
        ...

    async def clear(self, permits: Sequence[Permit], labels: Labels, listed: frozenset[UUID]) -> Clearance:
        """Ask for a clearance. `labels` are those just read, by message; `listed` are accounts whose labels were just
        listed.
        """
        ...

    async def learn_labels(self, account_id: UUID, labels: Sequence[MailboxLabel]) -> None:
        """Store the labels that a mailbox has now."""
        ...


class ClearanceRequest:
    """Asks the gate about one request, and reads the facts it needs from the mailbox."""

    def __init__(
        self,
        gate: Gate,
        permits: Sequence[Permit],
        labels_of: Callable[[Sequence[str]], Awaitable[Labels]],
        list_labels: Callable[[], Awaitable[Sequence[MailboxLabel]]],
    ) -> None:
        self._gate = gate
        self._permits = permits
        self._labels_of = labels_of
        self._list_labels = list_labels
        self._labels: Labels = {}
        self._listed: frozenset[UUID] = frozenset()

    def forget(self) -> None:
        """Discard outdated facts."""
        self._labels = {}
        self._listed = frozenset()

    async def clearance(self) -> Clearance | None:
        """The gate's answer; None if something was read for it and it must be asked again."""
        clearance = await self._gate.clear(self._permits, self._labels, self._listed)
        wanted = sorted({id for place, id in clearance.wants_labels.items() if place not in clearance.refused})
        if wanted:
            self._labels = {**self._labels, **await self._labels_of(wanted)}
            return None
        if clearance.wants_names:
            account_id = self._permits[0].account_id
            await self._gate.learn_labels(account_id, await self._list_labels())
            self._listed = frozenset({account_id})
            return None
        return clearance
