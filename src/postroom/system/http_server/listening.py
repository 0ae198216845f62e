"""Binds listening sockets. Every address that the host name resolves to is checked before the first is bound.

An address beyond loopback is refused unless the caller allows it: the pages are allowed there with sign-in and TLS,
metrics by a setting of their own. The address that was checked is the one that is bound; the name is not resolved
a second time.
"""

import ipaddress
import socket
from collections.abc import Sequence

import structlog

from postroom.core.errors import SettingsError

log = structlog.stdlib.get_logger(__name__)

BACKLOG = 128
PAGES_INSTEAD = (
    "which needs sign-in and TLS; leave web.sign_in on, and set web.tls_certificate and web.tls_key or name your "
    "reverse proxy in web.trusted_proxies; or use 127.0.0.1 and a tunnel such as `ssh -L`"
)


def addresses_of(host: str, setting: str = "web.host") -> list[str]:
    """Every address that the host resolves to, IPv4 first. Raises SettingsError if there is none."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise SettingsError(f"{setting}: {host!r} is not an address of this machine; use 127.0.0.1") from None
    ordered = sorted(found, key=lambda each: each[0] != socket.AF_INET)
    return list(dict.fromkeys(str(each[4][0]) for each in ordered))


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach the address. IPv4-mapped IPv6 counts as IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_loopback


def exposed_addresses(addresses: Sequence[str]) -> list[str]:
    """The addresses that other machines may reach."""
    return [address for address in addresses if not is_loopback(address)]


def is_own_machine(host: str) -> bool:
    """Whether only this machine can reach the addresses of the host."""
    return not exposed_addresses(addresses_of(host))


def open_listener(
    host: str,
    port: int,
    *,
    allow_exposed: bool,
    what: str = "the dashboard",
    setting: str = "web.host",
    instead: str = PAGES_INSTEAD,
    is_protected: bool = True,
) -> socket.socket:
    """Open a listening socket on the first address of the host. Raises SettingsError, which says what to do.

    `instead` says how to get it allowed. Where it is allowed though it `is_protected` by nothing, a warning is logged.
    """
    addresses = addresses_of(host, setting)
    exposed = exposed_addresses(addresses)
    if exposed and not allow_exposed:
        raise SettingsError(refusal(host, exposed, setting, instead))
    if exposed and not is_protected:
        log.warning("http.unprotected_bind", host=host, addresses=exposed, what=what)
    address = addresses[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"{what} cannot listen on {host}:{port} ({error.strerror}); choose a free port, or 0 for any"
        ) from error
    # Send small answers at once, even where the event loop does not set this.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def refusal(host: str, exposed: Sequence[str], setting: str, instead: str) -> str:
    named = "" if list(exposed) == [host] else f" ({', '.join(exposed)})"
    return f"{setting}: {host}{named} can be reached by other machines, {instead}"
