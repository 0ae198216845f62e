"""Host names as requests spell them: with or without a port, in brackets, with a trailing dot, in any case."""

import re
from ipaddress import ip_address
from typing import NamedTuple

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
DNS_PORT = 53
_DNS_SERVER = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<v4>[0-9.]+))(?::(?P<port>[0-9]{1,5}))?")


def hostname(host: str) -> str:
    """A Host header without its port: `localhost:8025` and `[::1]:8025` both lose theirs."""
    name, colon, port = host.rpartition(":")
    return bare_name(name if colon and port.isascii() and port.isdigit() else host)


def bare_name(name: str) -> str:
    """The spelling in which host names are compared."""
    return name.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")


def is_within(domain: str, other: str) -> bool:
    """Whether a domain is the other one, or below it."""
    return domain == other or domain.endswith(f".{other}")


class DnsServer(NamedTuple):
    address: str
    port: int = DNS_PORT


def read_dns_server(text: str) -> DnsServer | None:
    """The server in `192.0.2.53`, `192.0.2.53:5353`, `2001:db8::53` or `[2001:db8::53]:5353`; None if it is none."""
    found = _DNS_SERVER.fullmatch(text)
    host, port = (found["v6"] or found["v4"], int(found["port"] or DNS_PORT)) if found else (text, DNS_PORT)
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if not 1 <= port <= 65_535 or (found is not None and (address.version == 6) != (found["v6"] is not None)):
        return None
    return DnsServer(str(address), port)
