"""Tells whether two ways to a mail server lead to the same one: by its name, or by the addresses of the names."""

import asyncio
import contextlib
import ipaddress
import socket

from postroom.imap.wire import Endpoint

LOOK_UP_S = 5.0
_USUAL_PORTS = frozenset({143, 993})


async def is_same_server(one: Endpoint, other: Endpoint) -> bool:
    """Whether both lead to one server. The usual ports, with TLS from the beginning and without, belong to one; on
    other ports of one machine there may be several servers. A name that has no address now tells nothing.
    """
    if one.port != other.port and not {one.port, other.port} <= _USUAL_PORTS:
        return False
    if _plain(one.host) == _plain(other.host):
        return True
    addresses = await asyncio.gather(_addresses(one.host), _addresses(other.host))
    return bool(addresses[0] & addresses[1])


async def _addresses(host: str) -> frozenset[str]:
    """The addresses of a host; all of this machine's own are one."""
    found: list[tuple[object, ...]] = []
    with contextlib.suppress(OSError, UnicodeError, TimeoutError):
        async with asyncio.timeout(LOOK_UP_S):
            answer = await asyncio.get_running_loop().getaddrinfo(_plain(host), None, type=socket.SOCK_STREAM)
            found = [each[4] for each in answer]
    return frozenset(_shown(str(address)) for address, *_ in found)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _shown(address: str) -> str:
    plain = ipaddress.ip_address(address.partition("%")[0])
    plain = getattr(plain, "ipv4_mapped", None) or plain
    return "this machine" if plain.is_loopback else str(plain)
