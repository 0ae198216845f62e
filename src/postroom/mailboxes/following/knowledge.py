"""The data from which the connector assigns tiers: the user's addresses, contacts, the ids of sent mail, the policy."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Protocol, cast

from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.mail.tiers import Known
from postroom.mailboxes.following.receiving_hosts import ReceivingHosts

NOBODY: frozenset[str] = frozenset()


class SentIds(Protocol):
    """The Message-IDs of the user's sent mail, each as `<id>`."""

    def add(self, ids: Iterable[str]) -> object: ...

    def __contains__(self, id: str) -> bool: ...


class SentIdsInMemory:
    """For a connector without a folder to store them in."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def add(self, ids: Iterable[str]) -> None:
        self._ids.update(ids)

    def __contains__(self, id: str) -> bool:
        return id in self._ids


class EitherSet(AbstractSet[str]):
    """Two sets as one, without a copy: membership is tested for every message."""

    def __init__(self, one: AbstractSet[str], other: AbstractSet[str]) -> None:
        self._one = one
        self._other = other

    def __contains__(self, item: object) -> bool:
        return item in self._one or item in self._other

    def __iter__(self) -> Iterator[str]:
        yield from self._one
        yield from (each for each in self._other if each not in self._one)

    def __len__(self) -> int:
        return len(self._one) + sum(each not in self._one for each in self._other)

    def __bool__(self) -> bool:
        return bool(self._one or self._other)


class OtherAddresses(Protocol):
    """Addresses of the user besides the given ones."""

    def addresses(self) -> AbstractSet[str]: ...

    async def refresh(self) -> None:
        """Look them up if that is due. Does not raise: mail is ingested without them too."""
        ...


class Knowledge:
    """Read again for every batch, so that addresses, contacts and policy may change while the connector runs.

    `contacts` returns canonical addresses, or None if they are missing or too old to use.
    """

    def __init__(
        self,
        user_addresses: Collection[str],
        *,
        more_addresses: OtherAddresses | None = None,
        sent: SentIds | None = None,
        contacts: Callable[[], AbstractSet[str] | None] = lambda: NOBODY,
        policy: Callable[[], IngestionPolicy] = IngestionPolicy,
        fetch_policy: Callable[[], Awaitable[None]] | None = None,
        hosts: ReceivingHosts | None = None,
    ) -> None:
        self._given = Known.of(user_addresses).user_addresses
        self._more = more_addresses
        # An empty index is falsy, and must not be mistaken for None.
        self.sent: SentIds = SentIdsInMemory() if sent is None else sent
        self._contacts = contacts
        self._learned: set[str] = set()
        self._policy = policy
        self._fetch_policy = fetch_policy
        self.hosts = hosts or ReceivingHosts()

    def known(self) -> Known:
        # Only membership of the sent ids is tested, so an index on disk is enough.
        contacts = EitherSet(self._contacts() or NOBODY, self._learned)
        return Known(self._mine(), contacts, cast("AbstractSet[str]", self.sent), self.hosts.names)

    def add_contacts(self, addresses: Iterable[str]) -> None:
        """Add people just reported to the switchboard: they count at once, not only after the next fetch."""
        self._learned.update(addresses)

    @property
    def is_degraded(self) -> bool:
        return self._contacts() is None

    def policy(self) -> IngestionPolicy:
        return self._policy()

    async def refresh_policy(self) -> None:
        """Fetch the filters now: an estimate and a backfill begin with those that their owner has just set."""
        if self._fetch_policy is not None:
            await self._fetch_policy()

    def is_mine(self, address: str) -> bool:
        return address in self._mine()

    async def refresh(self) -> None:
        """Refresh before a round what is looked up periodically."""
        if self._more is not None:
            await self._more.refresh()

    def _mine(self) -> AbstractSet[str]:
        return self._given if self._more is None else self._given | self._more.addresses()
