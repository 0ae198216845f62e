"""Questions to the DNS: the mail servers of a domain, the hosts of a service, the addresses of a host, and texts.

An answer is kept as long as it says, within bounds, and so is the answer that there is none. A failure is not kept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, cast

import dns.asyncresolver
import dns.exception
import dns.name
import dns.nameserver
import dns.rdata
import dns.resolver
from dns.rdtypes.ANY.MX import MX
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.SRV import SRV

from postroom.core.errors import PostroomError
from postroom.core.hosts import DnsServer
from postroom.core.outbound.destinations import IPAddress, MailHost

SHORTEST_S = 30.0
LONGEST_S = 3600.0
NOTHING_S = 300.0
MOST_KEPT = 20_000

Found = tuple[str, ...]
Kind = Literal["MX", "A", "AAAA", "TXT", "SRV"]


class DnsFailed(PostroomError):
    """The DNS could not be asked, or its servers failed: it may be different later."""


class NoSuchName(PostroomError):
    """The name does not exist."""


@dataclass(frozen=True, slots=True)
class _Kept:
    until: float
    found: Found | None
    """None for a name that does not exist."""


def resolver_of(servers: Sequence[DnsServer] = ()) -> dns.asyncresolver.Resolver:
    """One that asks these servers, or those of the system. Where the system names none, every question fails."""
    try:
        resolver = dns.asyncresolver.Resolver(configure=not servers)
    except dns.resolver.NoResolverConfiguration:
        resolver = dns.asyncresolver.Resolver(configure=False)
    if servers:
        resolver.nameservers = [dns.nameserver.Do53Nameserver(each.address, each.port) for each in servers]
    return resolver


class Dns:
    """`resolver` asks; its servers are the system's unless they were set."""

    def __init__(self, resolver: dns.asyncresolver.Resolver, clock: Callable[[], float], timeout: float = 20.0) -> None:
        self._resolver = resolver
        self._clock = clock
        self._timeout = timeout
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def mail_hosts(self, domain: str) -> list[MailHost]:
        """Its MX records, unordered; empty if it has none. Raises NoSuchName or DnsFailed."""
        found = (each.partition(" ") for each in await self._records(domain, "MX"))
        return [MailHost(int(preference), name) for preference, _, name in found]

    async def addresses(self, host: str, families: Sequence[Literal[4, 6]]) -> list[IPAddress]:
        """Its addresses, in the order of the families; empty if it has none. Raises NoSuchName or DnsFailed.

        One family is enough: some servers fail for a kind of record that they do not know.
        """
        found: list[IPAddress] = []
        failure: DnsFailed | None = None
        for family in families:
            try:
                found += map(ip_address, await self._records(host, "A" if family == 4 else "AAAA"))
            except DnsFailed as error:
                failure = error
        if failure is not None and not found:
            raise failure
        return found

    async def texts(self, name: str) -> list[str]:
        """Its TXT records; empty if it has none, or does not exist. Raises DnsFailed."""
        try:
            return list(await self._records(name, "TXT"))
        except NoSuchName:
            return []

    async def services(self, name: str) -> list[tuple[int, int, int, str]]:
        """Its SRV records as priority, weight, port and host, unordered; empty if it has none, or does not exist.
        Raises DnsFailed.
        """
        try:
            found = [each.split(" ") for each in await self._records(name, "SRV")]
        except NoSuchName:
            return []
        return [(int(priority), int(weight), int(port), host) for priority, weight, port, host in found]

    async def _records(self, name: str, kind: Kind) -> Found:
        now = self._clock()
        kept = self._kept.get((name, kind))
        if kept is None or kept.until <= now:
            kept = await self._ask(name, kind, now)
            if len(self._kept) >= MOST_KEPT:
                self._forget(now)
            self._kept[name, kind] = kept
        if kept.found is None:
            raise NoSuchName(f"{name} does not exist")
        return kept.found

    async def _ask(self, name: str, kind: Kind, now: float) -> _Kept:
        try:
            answer = await self._resolver.resolve(
                dns.name.from_text(name), kind, raise_on_no_answer=False, lifetime=self._timeout, search=False
            )
        except dns.resolver.NXDOMAIN:
            return _Kept(now + NOTHING_S, None)
        except (dns.name.LabelTooLong, dns.name.EmptyLabel, dns.name.NameTooLong, dns.name.BadEscape):
            return _Kept(now + NOTHING_S, None)
        except (dns.exception.DNSException, OSError, EOFError, ValueError) as error:
            raise DnsFailed(f"the DNS failed for {kind} of {name}: {type(error).__name__}") from None
        if answer.rrset is None:
            return _Kept(now + NOTHING_S, ())
        found = tuple(map(_write_record, cast("Iterable[dns.rdata.Rdata]", answer.rrset)))
        return _Kept(now + min(max(answer.rrset.ttl, SHORTEST_S), LONGEST_S), found)

    def _forget(self, now: float) -> None:
        """Forget what is out of date, or else the older half."""
        current = [(key, kept) for key, kept in self._kept.items() if kept.until > now]
        self._kept = dict(current[len(current) // 2 :] if len(current) >= MOST_KEPT else current)


def _write_record(record: dns.rdata.Rdata) -> str:
    match record:
        case MX():
            return f"{record.preference} {_host_name(record.exchange)}"
        case SRV():
            return f"{record.priority} {record.weight} {record.port} {_host_name(record.target)}"
        case TXT():
            return b"".join(record.strings).decode("utf-8", "replace")
        case _:
            return str(record)


def _host_name(name: dns.name.Name) -> str:
    """The name in lower case, without the last dot; the root is empty: it is what a null MX names."""
    return name.to_text(omit_final_dot=True).lower() if name != dns.name.root else ""
