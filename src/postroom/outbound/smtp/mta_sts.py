"""MTA-STS (RFC 8461): a domain says, over HTTPS, which servers take its mail and that their certificates are valid.

A policy that was fetched holds until it expires, also while the DNS or the web server say nothing: otherwise somebody
who can suppress their answers could switch it off. It is fetched anew when the id in the DNS has changed. A failed
fetch is not repeated for a while.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import httpx2

from postroom.core.errors import PostroomError
from postroom.core.outbound.destinations import StsPolicies, StsPolicy, is_public
from postroom.outbound.smtp.dns import Dns, DnsFailed, NoSuchName
from postroom.outbound.smtp.options import SmtpOptions

LARGEST_POLICY = 65_536
LONGEST_AGE = timedelta(seconds=31_557_600)
AGAIN_AFTER_S = 300.0
MOST_PATTERNS = 100
MOST_KNOWN = 10_000

_RECORD = re.compile(r"v=STSv1\s*;(?P<fields>.*)", re.DOTALL)
_ID = re.compile(r"(?:^|;)\s*id\s*=\s*([A-Za-z0-9]{1,32})\s*(?:;|$)")
_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


class NoPolicy(PostroomError):
    """The policy could not be fetched, or is none."""


class FetchPolicy(Protocol):
    async def __call__(self, domain: str) -> str:
        """The text of the domain's policy. Raises NoPolicy."""
        ...


def announced_id(texts: list[str]) -> str | None:
    """The id of the policy that the TXT records announce; None unless exactly one does."""
    records = [found for text in texts if (found := _RECORD.match(text))]
    if len(records) != 1:
        return None
    found = _ID.search(records[0]["fields"])
    return found[1] if found else None


def read_policy(text: str, id: str, now: datetime) -> StsPolicy:
    """The policy in the text. Raises NoPolicy."""
    fields: dict[str, list[str]] = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), []).append(value.strip())
    version, mode, age = ((fields.get(key) or [""])[0] for key in ("version", "mode", "max_age"))
    if version != "STSv1" or not re.fullmatch(r"[0-9]{1,10}", age):
        raise NoPolicy("it has no version or no max_age")
    patterns = tuple(pattern.lower().removesuffix(".") for pattern in fields.get("mx", ()))
    if len(patterns) > MOST_PATTERNS or not all(map(_PATTERN.fullmatch, patterns)):
        raise NoPolicy("it names servers in a form that does not exist")
    expires_at = now + min(timedelta(seconds=int(age)), LONGEST_AGE)
    match mode:
        case "none":
            return StsPolicy(id, "none", patterns, expires_at)
        case "enforce" | "testing" if patterns:
            return StsPolicy(id, mode, patterns, expires_at)
        case _:
            raise NoPolicy("it has no known mode, or names no servers")


def allows(policy: StsPolicy, host: str) -> bool:
    """Whether the policy names the host. A `*` stands for exactly one label."""
    name = host.lower().removesuffix(".")
    return any(name == each or (each.startswith("*.") and name.partition(".")[2] == each[2:]) for each in policy.mx)


@dataclass(eq=False, slots=True)
class StsCache:
    """The policies of destinations. `seconds` is the clock of waits, `now` the one of dates."""

    dns: Dns
    policies: StsPolicies
    fetch: FetchPolicy
    seconds: Callable[[], float]
    now: Callable[[], datetime]
    _known: dict[str, StsPolicy | None] = field(default_factory=dict[str, StsPolicy | None], init=False)
    _failed: dict[str, float] = field(default_factory=dict[str, float], init=False)

    async def policy(self, domain: str) -> StsPolicy | None:
        """The policy that holds for the domain now, if there is one; `none` counts as none."""
        known = await self._unexpired_policy(domain)
        try:
            announced = announced_id(await self.dns.texts(f"_mta-sts.{domain}"))
        except DnsFailed:
            announced = None
        if announced is not None and (known is None or known.id != announced) and self._may_fetch(domain):
            known = await self._fetch_policy(domain, announced) or known
        return known if known is not None and known.mode != "none" else None

    async def _unexpired_policy(self, domain: str) -> StsPolicy | None:
        if domain not in self._known:
            self._remember(domain, await self.policies.kept(domain))
        known = self._known[domain]
        return known if known is not None and known.expires_at > self.now() else None

    async def _fetch_policy(self, domain: str, id: str) -> StsPolicy | None:
        try:
            policy = read_policy(await self.fetch(domain), id, self.now())
        except NoPolicy:
            self._failed[domain] = self.seconds()
            return None
        self._failed.pop(domain, None)
        self._remember(domain, policy)
        await self.policies.keep(domain, policy)
        return policy

    def _may_fetch(self, domain: str) -> bool:
        return self.seconds() >= self._failed.get(domain, float("-inf")) + AGAIN_AFTER_S

    def _remember(self, domain: str, policy: StsPolicy | None) -> None:
        for table in (self._known, self._failed):
            if len(table) >= MOST_KNOWN:
                table.clear()
        self._known[domain] = policy


class HttpsPolicies:
    """Fetches policies from `https://mta-sts.DOMAIN/.well-known/mta-sts.txt`: no redirects, one size, one deadline.

    The address is looked up here and must be public, for the domain belongs to anybody.
    """

    def __init__(self, http: httpx2.AsyncClient, dns: Dns, options: SmtpOptions, port: int = 443) -> None:
        self._http = http
        self._dns = dns
        self._options = options
        self._port = port

    async def __call__(self, domain: str) -> str:
        host = f"mta-sts.{domain}"
        try:
            async with asyncio.timeout(self._options.timeouts.policy):
                return await self._request(host)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise NoPolicy(f"{host} does not answer: {type(error).__name__}") from None
        except (DnsFailed, NoSuchName) as error:
            raise NoPolicy(str(error)) from None

    async def _request(self, host: str) -> str:
        addresses = await self._dns.addresses(host, self._options.families[::-1])
        allowed = [each for each in addresses if self._options.allow_private or is_public(each)]
        if not allowed:
            raise NoPolicy(f"{host} has no public address")
        address = f"[{allowed[0]}]" if allowed[0].version == 6 else str(allowed[0])
        request = self._http.build_request(
            "GET",
            f"https://{address}:{self._port}/.well-known/mta-sts.txt",
            headers={"Host": host, "Accept": "text/plain", "Accept-Encoding": "identity"},
            extensions={"sni_hostname": host},
        )
        response = await self._http.send(request, stream=True, auth=None, follow_redirects=False)
        async with contextlib.aclosing(response):
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 200 or kind != "text/plain":
                raise NoPolicy(f"{host} answers {response.status_code} with {kind[:40] or 'no type'}")
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > LARGEST_POLICY:
                    raise NoPolicy(f"its policy has more than {LARGEST_POLICY} bytes")
        return content.decode("utf-8", "replace")
