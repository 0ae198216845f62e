"""Whether the sender of a message is in doubt: its authentication failed, or it is unclear who it says it is from.

**Authentication** (RFC 8601). Believed are the `Authentication-Results` of the account's own receiving hosts: the
topmost one, and those directly below it that the same delivery added. Headers by a sender come further down, so they
can never hide the host's findings. Other hosts are not believed, and without results nothing is in doubt.

`dmarc` decides. `fail` is a failure, and so is a verdict on another domain than that of From. Without a verdict of
`dmarc`, `spf=fail` for the domain of From is a failure, unless the domain signed the message (`dkim=pass`): its owner
says that mail never comes from there. `softfail` and a broken signature are none: forwarding and lists cause both.

A host quotes the sender in its results, so comments and quoted strings are read as such, and one `dmarc=fail` outweighs
every other verdict in the same header. In a header with an unclosed comment or string it is found anywhere.

**From** is unclear if there are several, or if one has several mailboxes, or a group. A mailbox beside words with
another address in them is unclear too, unless these are a quoted name or a comment.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from postroom.core.mail.addresses import LONGEST_VALUE, addresses, canonical_domain, single_mailbox
from postroom.core.mail.headers import Headers, values

SenderDoubt = Literal["failed", "unclear"]
DOUBTS: tuple[SenderDoubt, ...] = ("failed", "unclear")

NAMES = ("from", "authentication-results", "received")
"""The headers that are looked at."""
_PIECE = re.compile(r'\\.|[()";\\]|[^()";\\]++', re.DOTALL)
_MASKED = re.compile(r"[\s;=]")
_RESULT = re.compile(r"\s*([a-z0-9_-]+)\s*(?:/\s*\d+\s*)?=\s*([a-z]+)(?![a-z])(.*)", re.DOTALL)
_PROPERTY = re.compile(r"(?<![a-z])([a-z]+)\s*\.\s*([a-z0-9_-]+)\s*=\s*(\S+)")
_FAILED_ANYWHERE = re.compile(r"dmarc\s*(?:/\s*\d+\s*)?=\s*fail")


class AuthenticationResult(NamedTuple):
    """The result of one method at one host, and the domains that it is about, by property."""

    method: str
    verdict: str
    domains: dict[str, str]

    def is_about(self, domain: str, *properties: str) -> bool:
        """Whether one of these properties names the domain, or one above or below it."""
        found = (self.domains[each] for each in properties if each in self.domains)
        return any(_is_related(each, domain) for each in found)


class AuthenticationResults(NamedTuple):
    """One `Authentication-Results`. `is_whole` is false if a comment or a string in it has no end."""

    host: str
    results: tuple[AuthenticationResult, ...]
    is_whole: bool


def sender_doubt(headers: Headers, own_hosts: Collection[str]) -> SenderDoubt | None:
    """The doubt about the sender; None without any. `own_hosts` are the names of the account's receiving hosts."""
    found = values(headers, "from")
    if not any(addresses(value) for value in found):
        return None
    sender = single_mailbox(found[0]) if len(found) == 1 else None
    if own_hosts and _has_failed(headers, own_hosts, None if sender is None else sender.rpartition("@")[2]):
        return "failed"
    return "unclear" if sender is None else None


def undoubted_sender(headers: Headers, own_hosts: Collection[str]) -> str | None:
    """The sender, in canonical form, if there is one and it is not in doubt."""
    found = values(headers, "from")
    return single_mailbox(found[0]) if len(found) == 1 and sender_doubt(headers, own_hosts) is None else None


def top_host(headers: Headers) -> str:
    """The host that gave the topmost results; empty if none did."""
    return next((parse_results(value).host for value in values(headers, "authentication-results")), "")


def is_own_host(host: str, own_hosts: Collection[str]) -> bool:
    """Whether a name is one of these. `*.example.com` matches all names below `example.com`."""
    return bool(host) and any(
        host.endswith(own[1:]) if own.startswith("*.") else host == own for own in map(str.lower, own_hosts)
    )


def parse_results(value: str) -> AuthenticationResults:
    """Parse a header value. Never raises."""
    segments, is_whole = _segments(value.lower())
    name = segments[0].split()
    found = [_result(each) for each in segments[1:]]
    host = name[0].removesuffix(".") if name and "=" not in name[0] else ""
    return AuthenticationResults(host, tuple(each for each in found if each is not None), is_whole)


def _has_failed(headers: Headers, own_hosts: Collection[str], domain: str | None) -> bool:
    signed = False
    for value in _own_results(headers, own_hosts):
        if len(value) >= LONGEST_VALUE:
            return True  # The rest was cut off, and the verdict may be in it.
        parsed = parse_results(value)
        verdicts = [each for each in parsed.results if each.method == "dmarc"]
        if any(each.verdict == "fail" or _is_about_another(each, domain) for each in verdicts):
            return True
        if not parsed.is_whole and _FAILED_ANYWHERE.search(value.lower()):
            return True
        if any(each.verdict == "pass" for each in verdicts):
            return False
        signed = signed or _is_signed(parsed, domain)
        if not signed and _is_refused_by_spf(parsed, domain):
            return True
    return False


def _own_results(headers: Headers, own_hosts: Collection[str]) -> Iterator[str]:
    """The topmost results of the account's own hosts, up to the next hop or the next other host."""
    begun = False
    for name, value in headers:
        match name.lower():
            case "authentication-results" if is_own_host(parse_results(value).host, own_hosts):
                begun = True
                yield value
            case "authentication-results" | "received" if begun:
                return
            case _:
                pass


def _is_about_another(result: AuthenticationResult, domain: str | None) -> bool:
    about = result.domains.get("header.from")
    return domain is not None and about is not None and not _is_related(about, domain)


def _is_signed(parsed: AuthenticationResults, domain: str | None) -> bool:
    signatures = (each for each in parsed.results if (each.method, each.verdict) == ("dkim", "pass"))
    return domain is not None and any(each.is_about(domain, "header.d", "header.i") for each in signatures)


def _is_refused_by_spf(parsed: AuthenticationResults, domain: str | None) -> bool:
    found = (each for each in parsed.results if each.method == "spf" and each.verdict in ("fail", "hardfail"))
    return domain is not None and any(each.is_about(domain, "smtp.mailfrom", "smtp.mail") for each in found)


def _is_related(one: str, other: str) -> bool:
    """Whether the domains are the same, or one is below the other."""
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def _segments(value: str) -> tuple[list[str], bool]:
    """The parts between semicolons, without comments. In quoted strings nothing separates."""
    segments: list[list[str]] = [[]]
    depth, is_quoted = 0, False
    for piece in _PIECE.findall(value):
        if is_quoted:
            is_quoted = piece != '"'
            segments[-1].append(_MASKED.sub("_", piece.removeprefix("\\")) if is_quoted else "")
        elif depth:
            depth += {"(": 1, ")": -1}.get(piece, 0)
        elif piece == "(":
            depth = 1
            segments[-1].append(" ")
        elif piece == '"':
            is_quoted = True
        elif piece == ";":
            segments.append([])
        else:
            segments[-1].append(piece)
    return ["".join(each) for each in segments], not depth and not is_quoted


def _result(segment: str) -> AuthenticationResult | None:
    found = _RESULT.match(segment)
    if found is None:
        return None
    method, verdict, rest = found.groups()
    named = {f"{kind}.{name}": _domain(value) for kind, name, value in _PROPERTY.findall(rest)}
    return AuthenticationResult(method, verdict, named)


def _domain(value: str) -> str:
    return canonical_domain(value.rpartition("@")[2].strip("<>").removesuffix("."))
