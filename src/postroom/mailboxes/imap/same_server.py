"""Tells whether two ways lead to the same mailbox: by the names and addresses of the servers, and where those do not
tell, by what is in the inbox.
"""

import asyncio
import contextlib
import ipaddress
import socket

from postroom.mailboxes.imap.identity import id_of, scheme_of
from postroom.mailboxes.imap.session import ImapSession
from postroom.mailboxes.imap.wire import Endpoint

LOOK_UP_S = 5.0
_USUAL_PORTS = frozenset({143, 993})


async def is_same_machine(one: Endpoint, other: Endpoint) -> bool:
    """Whether both hosts have the same name, or an address in common. A name that has no address now tells nothing."""
    if _plain(one.host) == _plain(other.host):
        return True
    addresses = await asyncio.gather(_addresses(one.host), _addresses(other.host))
    return bool(addresses[0] & addresses[1])


def is_same_service(one: Endpoint, other: Endpoint) -> bool:
    """Whether both ports of a machine are one server's: the usual ones are, with TLS from the beginning and without. On
    others there may be several servers.
    """
    return one.port == other.port or {one.port, other.port} <= _USUAL_PORTS


def may_be_same_user(one: str, other: str) -> bool:
    """Whether two names may sign in the same user: many servers take a name with or without its domain."""
    first, second = sorted((one.lower(), other.lower()), key=len)
    return first == second or ("@" not in first and second.partition("@")[0] == first)


async def is_same_inbox(one: ImapSession, other: ImapSession) -> bool:
    """Whether both are signed in to the same mailbox: the inboxes have the same UIDs, and the same newest message.
    Empty ones do not tell.
    """
    first, second = await asyncio.gather(_newest(one), _newest(other))
    return first is not None and first == second


async def _newest(session: ImapSession) -> tuple[object, ...] | None:
    selected = await session.select(b"INBOX", read_only=True)
    if not selected.exists or not (uids := await session.search(b"UID *")):
        return None
    scheme = scheme_of(session.connection.capabilities)
    for each in await session.fetch_identified(uids[-1:], "FLAGS", scheme):
        return selected.uidvalidity, selected.uidnext, selected.exists, each.uid, id_of(each, scheme)
    return None


async def _addresses(host: str) -> frozenset[str]:
    """The addresses of a host; all of this machine's own are one."""
    found: list[tuple[object, ...]] = []
    with contextlib.suppress(OSError, UnicodeError, TimeoutError):
        async with asyncio.timeout(LOOK_UP_S):
            answer = await asyncio.get_running_loop().getaddrinfo(_plain(host), None, type=socket.SOCK_STREAM)
            found = [each[4] for each in answer]
    return frozenset(_host_text(str(address)) for address, *_ in found)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _host_text(address: str) -> str:
    plain = ipaddress.ip_address(address.partition("%")[0])
    plain = getattr(plain, "ipv4_mapped", None) or plain
    return "this machine" if plain.is_loopback else str(plain)
