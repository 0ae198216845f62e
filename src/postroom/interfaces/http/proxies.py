"""Reverse proxies: those named in the settings are believed who the visitor is; nobody else is.

A proxy adds the visitor's address to `X-Forwarded-For`, behind whatever the visitor wrote there. So the header is read
from its end, as long as the addresses are those of trusted proxies: the first that is not is the visitor.
"""

import ipaddress
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that health checks ask for without a proxy in between. Without a session their answer is a bare status."""
FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"})


class TrustedProxies:
    """Put the visitor's address, scheme and host in place of the proxy's. With `only_tls`, refuse those without TLS,
    except health checks."""

    def __init__(self, app: ASGIApp, proxies: Collection[str] = (), *, only_tls: bool = False) -> None:
        self._app = app
        self._networks = tuple(ipaddress.ip_network(each) for each in proxies)
        self._only_tls = only_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        forwarded = self._rewrite(scope) if self._is_trusted(_peer(scope)) else scope
        if self._only_tls and forwarded["scheme"] != "https" and scope["path"] not in PROBES:
            words = "Postroom answers over TLS only: open it through its reverse proxy, with https.\n"
            await PlainTextResponse(words, 403)(scope, receive, send)
            return
        await self._app(forwarded, receive, send)

    def _rewrite(self, scope: Scope) -> Scope:
        headers = Headers(scope=scope)
        host, scheme = _last(headers.getlist("x-forwarded-host")), _last(headers.getlist("x-forwarded-proto")).lower()
        kept = [(name, value) for name, value in scope["headers"] if name not in FORWARDED]
        if host:
            kept = [(name, value) for name, value in kept if name != b"host"]
            kept.append((b"host", host.encode("latin-1", "replace")))
        return {
            **scope,
            "headers": kept,
            "scheme": scheme if scheme in ("http", "https") else scope["scheme"],
            "client": (self._visitor(headers.getlist("x-forwarded-for"), _peer(scope)), 0),
        }

    def _visitor(self, given: Sequence[str], peer: str) -> str:
        visitor = peer
        for each in reversed([part.strip() for value in given for part in value.split(",")]):
            if not self._is_trusted(visitor) or not _is_address(each):
                break
            visitor = each
        return visitor

    def _is_trusted(self, address: str) -> bool:
        if not _is_address(address):
            return False
        parsed = ipaddress.ip_address(address)
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self._networks)


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])


def _last(values: Sequence[str]) -> str:
    """The value that the nearest proxy wrote."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
