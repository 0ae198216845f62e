"""Destinations of outgoing mail: the domain of a recipient's address, or the smart host.

All of it is decided without the network: how an address is written in SMTP, in which order the mail servers of a domain
are tried, and which network addresses mail may go to. The protocols at the end are what a transport reads and keeps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from postroom.core.hosts import bare_name
from postroom.core.mail.addresses import canonical_domain

if TYPE_CHECKING:
    from random import Random

IPAddress = IPv4Address | IPv6Address
StsMode = Literal["enforce", "testing", "none"]
SigningAlgorithm = Literal["rsa-sha256", "ed25519-sha256"]

LONGEST_LOCAL = 256
LONGEST_DOMAIN = 255
# More than any domain needs. The rest is not tried.
MOST_HOSTS = 20

# Unicode in the local part is allowed with SMTPUTF8 (RFC 6531); control characters and blanks never are outside quotes.
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u00a0-\U0010ffff]"
_LOCAL = re.compile(rf"""{_ATEXT}+(?:\.{_ATEXT}+)*|"(?:[ !#-\[\]-~\u00a0-\U0010ffff]|\\[ -~])*\"""")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LITERAL = re.compile(r"\[(?:IPv6:)?([0-9A-Fa-f:.]+)\]", re.IGNORECASE)
_TRANSLATED = IPv6Network("64:ff9b::/96")
# All public IPv6 addresses are in the first; the others are parts of it, and of IPv4, for special purposes (IANA's
# registries). Python knows most of them as not global, but not in every version.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL = (
    IPv6Network("2001::/23"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("198.18.0.0/15"),
    IPv4Network("240.0.0.0/4"),
)


class Address(NamedTuple):
    """An address as SMTP writes it: the local part as it was given, the domain in ASCII and lower case."""

    local: str
    destination: str

    def __str__(self) -> str:
        return f"{self.local}@{self.destination}"

    @property
    def is_ascii(self) -> bool:
        return self.local.isascii()


@lru_cache(maxsize=4096)
def smtp_address(address: str) -> Address | None:
    """The address in the form in which it may stand in a command; None if it is no address.

    What would end the command, or begin another, is not part of any address.
    """
    local, at, domain = address.rpartition("@")
    if not at or len(local) > LONGEST_LOCAL or not _LOCAL.fullmatch(local) or not local.isprintable():
        return None
    if literal := literal_address(domain):
        return Address(local, f"[{'IPv6:' if literal.version == 6 else ''}{literal}]")
    written = canonical_domain(domain.removesuffix("."))
    return Address(local, written) if len(written) <= LONGEST_DOMAIN and _DOMAIN.fullmatch(written) else None


def literal_address(domain: str) -> IPAddress | None:
    """The address on the network that a domain names itself: `[192.0.2.1]`, `[IPv6:2001:db8::1]`."""
    found = _LITERAL.fullmatch(domain)
    try:
        return ip_address(found[1]) if found else None
    except ValueError:
        return None


class MailHost(NamedTuple):
    """One mail server of a domain, from its MX record."""

    preference: int
    name: str


def in_order(hosts: Iterable[MailHost], rng: Random) -> list[MailHost]:
    """The order in which hosts are tried: by preference, and by chance among equals (RFC 5321, 5.1)."""
    return sorted(dict.fromkeys(hosts), key=lambda host: (host.preference, rng.random()))[:MOST_HOSTS]


def before_ourselves(hosts: Iterable[MailHost], own_names: Collection[str]) -> list[MailHost]:
    """The hosts that are closer to the recipient than we are: from the others mail would come back (RFC 5321, 5.1)."""
    hosts = list(hosts)
    ours = [host.preference for host in hosts if bare_name(host.name) in own_names]
    return [host for host in hosts if not ours or host.preference < min(ours)]


def is_public(address: IPAddress) -> bool:
    """Whether the address belongs to the public network. One inside another, as in IPv4-mapped ones, must too."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _TRANSLATED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast and not any(address in each for each in _SPECIAL)


class DestinationPauses(Protocol):
    async def reason(self, destination: str) -> str | None:
        """Why mail to this destination waits, if it is paused."""
        ...


class StsPolicy(NamedTuple):
    """The policy of a domain for those that send to it (RFC 8461). `mx` are patterns of host names."""

    id: str
    mode: StsMode
    mx: tuple[str, ...]
    expires_at: datetime


class StsPolicies(Protocol):
    """Keeps policies beyond the life of the process: a policy holds although it can not be fetched any more."""

    async def kept(self, domain: str) -> StsPolicy | None: ...

    async def keep(self, domain: str, policy: StsPolicy) -> None: ...


class SigningKey(NamedTuple):
    """A key with which mail of a domain is signed. `private` is a PEM, or for Ed25519 the 32 bytes themselves."""

    domain: str
    selector: str
    algorithm: SigningAlgorithm
    private: bytes


class SigningKeys(Protocol):
    async def keys_of(self, domain: str) -> Sequence[SigningKey]:
        """The keys that sign mail from this domain; none if it is not signed."""
        ...
