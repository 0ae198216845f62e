"""What the connector goes by when it gives tiers: the user's addresses, contacts, the ids of sent mail, the policy."""

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from postroom.core.ingestion import IngestionPolicy
from postroom.core.tiers import Known

NOBODY: frozenset[str] = frozenset()


class SentIds(Protocol):
    """The Message-IDs of what the user has sent, each as `<id>`."""

    def add(self, ids: Iterable[str]) -> object: ...

    def __contains__(self, id: str) -> bool: ...


class SentIdsInMemory:
    """For a connector that has no folder to keep them in."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def add(self, ids: Iterable[str]) -> None:
        self._ids.update(ids)

    def __contains__(self, id: str) -> bool:
        return id in self._ids


class MoreAddresses(Protocol):
    """Addresses of the user's beside those that were given."""

    def addresses(self) -> AbstractSet[str]: ...

    async def freshen(self) -> None:
        """Looks them up where that is due. Does not raise: mail is taken without them too."""
        ...


class Knowledge:
    """Asked anew for every batch, so that addresses, contacts and policy may change while the connector runs.

    `contacts` gives canonical addresses, or None when they are missing or too old to go by.
    """

    def __init__(
        self,
        user_addresses: Collection[str],
        *,
        more_addresses: MoreAddresses | None = None,
        sent: SentIds | None = None,
        contacts: Callable[[], AbstractSet[str] | None] = lambda: NOBODY,
        policy: Callable[[], IngestionPolicy] = IngestionPolicy,
    ) -> None:
        self._given = Known.of(user_addresses).user_addresses
        self._more = more_addresses
        self.sent: SentIds = sent or SentIdsInMemory()
        self._contacts = contacts
        self._policy = policy

    def known(self) -> Known:
        # Of the sent ids only membership is asked, so an index on disk will do.
        return Known(self._mine(), self._contacts() or NOBODY, cast("AbstractSet[str]", self.sent))

    @property
    def is_degraded(self) -> bool:
        return self._contacts() is None

    def policy(self) -> IngestionPolicy:
        return self._policy()

    def is_mine(self, address: str) -> bool:
        return address in self._mine()

    async def freshen(self) -> None:
        """Before a round: what is looked up from time to time."""
        if self._more is not None:
            await self._more.freshen()

    async def learn(self) -> None:
        """Before mail of the past gets its tiers: whom the user has written to."""

    def _mine(self) -> AbstractSet[str]:
        return self._given if self._more is None else self._given | self._more.addresses()
