"""The gate: every request that changes a mailbox or sends mail passes it just before it is sent.

By then the client has waited for quota. It asks the gate for a clearance, and the request is written only while the
clearance is valid: `transport` checks it again right before each write. If it has expired, the gate is asked again.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import PostroomError
from postroom.gmail.resources import Label


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

    async def clear(
        self, permits: Sequence[Permit], labels: Mapping[str, frozenset[str] | None], listed: frozenset[UUID]
    ) -> Clearance:
        """Ask for a clearance. `labels` are those just read, by message; `listed` are accounts whose labels were just
        listed.
        """
        ...

    async def learn_labels(self, account_id: UUID, labels: Sequence[Label]) -> None:
        """Store the labels that a mailbox has now."""
        ...
