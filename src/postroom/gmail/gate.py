"""The gate that every request passes which changes a mailbox or sends mail, at the moment when it is about to leave.

The client has waited for quota and holds by then. It asks the gate for a clearance; the request's bytes are written
while the clearance is good, and not a moment later: `transport` asks it once more right before each write. One that ran
out meanwhile is asked for anew.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import PostroomError
from postroom.gmail.resources import Label


class ClearanceExpired(Exception):
    """The request did not leave, or not the whole of it: so it does nothing. The gate has to be asked anew."""


class Clearance(Protocol):
    """The gate's answer for several permits, by their places."""

    @property
    def refused(self) -> Mapping[int, PostroomError]:
        """Why some may not leave."""
        ...

    @property
    def wants_labels(self) -> Mapping[int, str]:
        """Permits that are only judged when the labels of a message, named here, were read just now."""
        ...

    @property
    def wants_names(self) -> bool:
        """Whether the list of the mailbox's labels has to be read first."""
        ...

    def check(self) -> None:
        """Raises ClearanceExpired when nothing may be written any more."""
        ...

    def on_the_wire(self) -> AbstractContextManager[None]:
        """The request is counted from its first byte to the end of this."""
        ...


class Gate(Protocol):
    """Says which requests may leave."""

    @property
    def protects_labels(self) -> bool:
        """Whether labels are likely to be wanted."""
        ...

    async def clear(
        self, permits: Sequence[Permit], labels: Mapping[str, frozenset[str] | None], listed: frozenset[UUID]
    ) -> Clearance:
        """`labels` are those that were read just now, by messages; `listed` are accounts whose labels were."""
        ...

    async def learn_labels(self, account_id: UUID, labels: Sequence[Label]) -> None:
        """The labels that a mailbox has now."""
        ...
