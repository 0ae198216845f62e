"""Finds the servers of a mail address: presets, the domain's records (RFC 6186), and the usual names, in this order.

A server counts only after a TLS connection with a certificate for the name that was asked for; a name from the DNS
alone proves nothing, since the answer may be forged. What RFC 6186 asks of the user (to confirm a host outside the
address's domain) is said in `is_foreign`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from postroom.core.errors import BadInput, PostroomError
from postroom.core.hosts import is_within
from postroom.mailboxes.imap.errors import ImapError
from postroom.mailboxes.imap.presets import Preset, preset_for, preset_of_hosts
from postroom.mailboxes.imap.wire import Endpoint

Origin = Literal["preset", "records", "guess"]
MOST_RECORDS = 4
T = TypeVar("T")
_USUAL_NAMES = ("imap.{}", "mail.{}", "{}")
_USUAL_SUBMISSION = ("smtp.{}", "mail.{}", "{}")


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """One SRV record. An empty host says that there is no such service."""

    priority: int
    weight: int
    port: int
    host: str


class Records(Protocol):
    """Questions to the DNS. Both answer with nothing where there is nothing, and raise PostroomError if it fails."""

    async def services(self, name: str) -> Sequence[ServiceRecord]: ...

    async def mail_hosts(self, domain: str) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server to try for reading, and those that may take the mail to be sent."""

    imap: Endpoint
    submission: tuple[Endpoint, ...]
    origin: Origin
    preset: Preset | None = None
    is_foreign: bool = False
    """Whether the domain's records name a host outside the domain."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A server that was tried in vain, and why."""

    endpoint: Endpoint
    problem: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """The first server that answered, if any, and those tried before."""

    found: Candidate | None
    attempts: tuple[Attempt, ...]


Try = Callable[[Endpoint], Awaitable[None]]
"""Connects with TLS and reads the greeting. Raises ImapError if that fails."""


def domain_of(address: str) -> str:
    """The domain of an address, as the DNS spells it. Raises BadInput."""
    _, at, domain = address.strip().rpartition("@")
    try:
        ascii_domain = domain.rstrip(".").encode("idna").decode().lower()
    except UnicodeError:
        ascii_domain = ""
    if not at or not ascii_domain or "." not in ascii_domain:
        raise BadInput("address", f"{address[:100]!r} is no mail address", "use one such as ada@example.com")
    return ascii_domain


async def candidates_for(domain: str, records: Records) -> list[Candidate]:
    """The servers to try, likeliest first. A DNS that fails leaves the guesses."""
    if preset := preset_for(domain):
        return [_from_preset(preset)]
    # All at once: a DNS that does not answer takes as long for five questions as for one.
    found, hosts = await asyncio.gather(_from_records(domain, records), _ask(records.mail_hosts(domain)))
    if hosted := preset_of_hosts(tuple(each.lower().rstrip(".") for each in hosts)):
        found.append(_from_preset(hosted))
    return [*found, *_guesses(domain)]


async def find_server(domain: str, records: Records, attempt: Try) -> Discovery:
    """Try one server after another until one answers."""
    attempts: list[Attempt] = []
    for candidate in await candidates_for(domain, records):
        try:
            await attempt(candidate.imap)
        except ImapError as error:
            attempts.append(Attempt(candidate.imap, str(error)))
        else:
            return Discovery(candidate, tuple(attempts))
    return Discovery(None, tuple(attempts))


def _from_preset(preset: Preset) -> Candidate:
    return Candidate(preset.imap, (preset.submission,), "preset", preset)


async def _from_records(domain: str, records: Records) -> list[Candidate]:
    """TLS from the first byte before STARTTLS, whatever the priorities between the two services say (RFC 8314)."""
    submissions, submission, imaps, imap = await asyncio.gather(
        _endpoints(f"_submissions._tcp.{domain}", "tls", records),
        _endpoints(f"_submission._tcp.{domain}", "starttls", records),
        _endpoints(f"_imaps._tcp.{domain}", "tls", records),
        _endpoints(f"_imap._tcp.{domain}", "starttls", records),
    )
    outward = (*submissions, *submission)
    return [
        Candidate(each, outward, "records", is_foreign=not is_within(each.host, domain)) for each in (*imaps, *imap)
    ]


async def _endpoints(name: str, security: Literal["tls", "starttls"], records: Records) -> list[Endpoint]:
    """The hosts of a service, by priority, then the heavier first: with one connection there is no load to spread."""
    named = [each for each in await _ask(records.services(name)) if each.host not in ("", ".") and each.port]
    ordered = sorted(named, key=lambda each: (each.priority, -each.weight))
    return [Endpoint(each.host.lower().rstrip("."), each.port, security) for each in ordered[:MOST_RECORDS]]


def _guesses(domain: str) -> list[Candidate]:
    submission = tuple(Endpoint(name.format(domain), 465) for name in _USUAL_SUBMISSION)
    ways: tuple[tuple[int, Literal["tls", "starttls"]], ...] = ((993, "tls"), (143, "starttls"))
    return [
        Candidate(Endpoint(name.format(domain), port, security), submission, "guess")
        for port, security in ways
        for name in _USUAL_NAMES
    ]


async def _ask(question: Awaitable[Sequence[T]]) -> Sequence[T]:
    try:
        return await question
    except PostroomError:
        return ()
