"""The check that every API request must pass: our Host, no foreign Origin, and a valid token.

Browsers name the page that sends a request in the Origin header. Producers and agents are not browsers and send none.
Requests from pages of other sites are refused, whatever token they have.
"""

from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.types import Scope

from postroom.core.errors import Refused
from postroom.core.hosts import bare_name, hostname
from postroom.core.metrics import ACCESS_REFUSED
from postroom.core.roles import Principal
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.token_check import TokenRefused

RawHeaders = Sequence[tuple[bytes, bytes]]
ASK_FOR_TOKEN = (b"www-authenticate", b'Bearer realm="postroom"')
ASK_FOR_ANOTHER = (b"www-authenticate", b'Bearer realm="postroom", error="invalid_token"')


class HttpRequestRefused(Refused):
    """A refused request, with the status to answer with."""

    def __init__(
        self, status: int, code: str, field: str, problem: str, remedy: str, *headers: tuple[bytes, bytes]
    ) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.status = status
        self.form = {"code": code, "field": field, "problem": problem, "remedy": remedy}
        self.headers = headers


class Door:
    """Admits requests to one of our names, not from a foreign page, and with a valid token."""

    def __init__(self, services: Services, allowed_hosts: Collection[str]) -> None:
        self._services = services
        self._hosts = frozenset(bare_name(host) for host in allowed_hosts)

    async def admit(self, scope: Scope, *methods: str) -> Principal:
        """Return who sent this request, by default a POST.

        Raises HttpRequestRefused, or a StoreError if the token cannot be looked up.
        """
        headers: RawHeaders = scope["headers"]
        self._check_host(values_of(headers, b"host"))
        self._check_origins(values_of(headers, b"origin"))
        allowed = methods or ("POST",)
        if scope["method"] not in allowed:
            named = " and ".join(allowed)
            allow = (b"allow", ", ".join(allowed).encode())
            problem = f"only {named} {'is' if len(allowed) == 1 else 'are'} answered"
            raise HttpRequestRefused(405, "bad_method", "method", problem, f"send a {' or '.join(allowed)}", allow)
        try:
            return await self._services.token_check.check(bearer(values_of(headers, b"authorization")))
        except TokenRefused as refused:
            self._services.tally.count(ACCESS_REFUSED, refused.reason)
            challenge = ASK_FOR_TOKEN if refused.reason == "no_token" else ASK_FOR_ANOTHER
            problem, _, remedy = str(refused).partition("; ")
            raise HttpRequestRefused(401, refused.reason, "authorization", problem, remedy, challenge) from None

    def _check_host(self, hosts: Sequence[str]) -> None:
        if len(hosts) != 1 or hostname(hosts[0]) not in self._hosts:
            remedy = "use the address it printed at its start, or add the name to web.allowed_hosts"
            raise HttpRequestRefused(421, "foreign_host", "host", "Postroom does not answer to this host name", remedy)

    def _check_origins(self, origins: Sequence[str]) -> None:
        if not all(self._is_our_page(origin) for origin in origins):
            remedy = "call from a program, or from a page of Postroom's own"
            raise HttpRequestRefused(403, "foreign_origin", "origin", "pages of other sites may not call this", remedy)

    def _is_our_page(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        plain = origin == f"{parts.scheme}://{parts.netloc}"
        return plain and parts.scheme in ("http", "https") and hostname(parts.netloc) in self._hosts


def host_patterns(allowed_hosts: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the same hosts and origins as patterns for the MCP library, which checks them again."""
    names = [f"[{bare}]" if ":" in bare else bare for bare in map(bare_name, allowed_hosts)]
    hosts = [pattern for name in names for pattern in (name, f"{name}:*")]
    return hosts, [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]


def values_of(headers: RawHeaders, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def bearer(given: Sequence[str]) -> str | None:
    """Return the token; None without one. Two headers are refused as an invalid token."""
    if not given:
        return None
    scheme, _, token = given[0].strip().partition(" ")
    if scheme.lower() != "bearer":
        return None
    return token.strip() if len(given) == 1 else "more than one"
