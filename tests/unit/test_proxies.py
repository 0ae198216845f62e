"""Whom the pages believe who the visitor is: proxies that the settings name, and nobody else."""

from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from postroom.interfaces.http.proxies import TrustedProxies

PROXIES = ("10.0.0.2", "10.1.0.0/16")


async def seen(peer: str | None, headers: dict[str, str], *, only_tls: bool = False, path: str = "/") -> Scope | int:
    """The scope that the application sees; or the status, if it sees nothing."""
    found: list[Scope] = []
    sent: list[Any] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(scope)

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "scheme": "http",
        "path": path,
        "client": None if peer is None else (peer, 1234),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await TrustedProxies(app, PROXIES, only_tls=only_tls)(scope, receive, send)
    return found[0] if found else sent[0]["status"]


FORWARDED = {
    "Host": "inside:8025",
    "X-Forwarded-For": "192.0.2.7",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "mail.example.com",
}


async def test_a_named_proxy_is_believed() -> None:
    scope = await seen("10.0.0.2", FORWARDED)
    assert isinstance(scope, dict)
    assert (scope["client"][0], scope["scheme"]) == ("192.0.2.7", "https")
    assert scope["headers"] == [(b"host", b"mail.example.com")]


@pytest.mark.parametrize("peer", ["192.0.2.9", "10.0.0.3", "127.0.0.1", None, ""])
async def test_nobody_else_is(peer: str | None) -> None:
    scope = await seen(peer, FORWARDED)
    assert isinstance(scope, dict)
    assert (scope["client"], scope["scheme"]) == (None if peer is None else (peer, 1234), "http")
    assert (b"host", b"inside:8025") in scope["headers"]


@pytest.mark.parametrize(
    ("given", "visitor"),
    [
        ("1.1.1.1, 192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, 10.1.2.3", "192.0.2.7"),
        ("6.6.6.6, 192.0.2.7, 10.1.2.3, 10.0.0.2", "192.0.2.7"),
        ("not an address, 10.1.2.3", "10.1.2.3"),
        ("", "10.0.0.2"),
        ("::ffff:10.1.2.3", "::ffff:10.1.2.3"),
    ],
)
async def test_the_visitor_is_the_last_who_is_no_proxy(given: str, visitor: str) -> None:
    scope = await seen("10.0.0.2", {"X-Forwarded-For": given})
    assert isinstance(scope, dict)
    assert scope["client"][0] == visitor


async def test_beyond_loopback_nobody_is_answered_without_tls() -> None:
    assert await seen("192.0.2.9", FORWARDED, only_tls=True) == 403
    assert await seen("10.0.0.2", {**FORWARDED, "X-Forwarded-Proto": "http"}, only_tls=True) == 403
    assert isinstance(await seen("10.0.0.2", FORWARDED, only_tls=True), dict)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_checks_are_answered_without_tls(path: str) -> None:
    assert isinstance(await seen("192.0.2.9", {}, only_tls=True, path=path), dict)
    assert await seen("192.0.2.9", {}, only_tls=True, path=f"{path}/more") == 403
