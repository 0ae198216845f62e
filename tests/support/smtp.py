"""An SMTP transport among names and servers of the test's own."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache
from random import Random
from typing import Any
from uuid import UUID

import dns.asyncresolver
import trustme
from dnslib import AAAA, CNAME, MX, QTYPE, RCODE, RR, SRV, TXT, A, DNSRecord

from postroom.core.outbound.transport import MailOptions, OutgoingMail, OutgoingRecipient, RecipientOutcome
from postroom.outbound.smtp.dns import Dns
from postroom.outbound.smtp.options import SmtpOptions, TlsContexts
from postroom.outbound.smtp.transport import SmtpTransport

HEAD = b"From: mara@sender.example\r\nTo: ada@example.org\r\nSubject: Hello\r\n\r\n"
CONTENT = HEAD + b"Line one\r\n.dot\r\n..two\r\n.\r\nend\r\n"
KINDS: dict[str, Callable[[Any], Any]] = {
    "A": A,
    "AAAA": AAAA,
    "CNAME": CNAME,
    "MX": lambda value: MX(value[1], value[0]),
    "SRV": lambda value: SRV(*value),
    "TXT": lambda value: TXT(value),
}
Zone = dict[str, dict[str, list[Any]] | str]
"""Records by name and kind, or the name of a failure such as SERVFAIL."""


class ZoneServer(asyncio.DatagramProtocol):
    """Answers from the zone, and notes what it was asked."""

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.asked: list[tuple[str, str]] = []

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(self._reply(DNSRecord.parse(data)).pack(), addr)

    def _reply(self, request: DNSRecord) -> DNSRecord:
        reply = request.reply()
        name, kind = str(request.q.qname).removesuffix(".").lower(), QTYPE[request.q.qtype]
        self.asked.append((name, kind))
        for _ in range(5):
            found = self.zone.get(name)
            if found is None or isinstance(found, str):
                reply.header.rcode = getattr(RCODE, found or "NXDOMAIN")
                return reply
            made = kind if kind in found else "CNAME"
            for record in found.get(made, ()):
                reply.add_answer(RR(name, getattr(QTYPE, made), rdata=KINDS[made](record), ttl=60))
            if made == kind or made not in found:
                return reply
            name = found["CNAME"][0]
        return reply


@contextlib.asynccontextmanager
async def dns_server(zone: Zone) -> AsyncGenerator[tuple[dns.asyncresolver.Resolver, ZoneServer]]:
    transport, names = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: ZoneServer(zone), local_addr=("127.0.0.1", 0)
    )
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = transport.get_extra_info("sockname")[1]
    try:
        yield resolver, names
    finally:
        transport.close()


def zone_of(address: str = "127.0.0.1", more: Zone | None = None) -> Zone:
    """`example.org` with one mail server."""
    return {"example.org": {"MX": [(10, "mx.example.org")]}, "mx.example.org": {"A": [address]}, **(more or {})}


@cache
def tls_contexts(authority: trustme.CA | None = None) -> TlsContexts:
    contexts = TlsContexts.with_authorities()
    if authority is not None:
        authority.configure_trust(contexts.checked)
    return contexts


@contextlib.asynccontextmanager
async def smtp_transport(
    zone: Zone, port: int, contexts: TlsContexts | None = None, **options: Any
) -> AsyncGenerator[SmtpTransport]:
    """One that delivers to this port of loopback addresses."""
    changes: dict[str, Any] = {"hostname": "out.sender.example", "allow_private": True, "mta_sts": False, **options}
    parts = {name: changes.pop(name) for name in ("sts", "signer", "pauses", "clock") if name in changes}
    clock = parts.pop("clock", time.monotonic)
    async with dns_server(zone) as (resolver, _):
        made = SmtpOptions(port=port, **changes)
        transport = SmtpTransport(
            made, contexts or tls_contexts(), Dns(resolver, clock, 5.0), Random(1), clock, **parts
        )
        try:
            yield transport
        finally:
            await transport.close()


def outgoing(content: bytes = CONTENT, sender: str = "mara@sender.example", **more: Any) -> OutgoingMail:
    return OutgoingMail(UUID(int=1), sender, content, options=MailOptions(**more))


def to(*addresses: str) -> list[OutgoingRecipient]:
    return [OutgoingRecipient(position, address) for position, address in enumerate(addresses)]


class Departures:
    """Notes what may leave; refuses if it is told to."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.noted: list[tuple[int, ...]] = []
        self.first = asyncio.Event()
        self._refusal = refusal

    async def __call__(self, positions: Sequence[int]) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.noted.append(tuple(positions))
        self.first.set()


async def delivered(
    transport: SmtpTransport, *addresses: str, mail: OutgoingMail | None = None, leaving: Departures | None = None
) -> list[RecipientOutcome]:
    return await transport.deliver(mail or outgoing(), to(*addresses), leaving or Departures())
