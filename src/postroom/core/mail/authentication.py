"""The domains that a message was proven to come from, as the server of the mailbox has found out (RFC 8601).

Only the first `Authentication-Results` counts, and only if it has the name of that server: it is the one that the
server added, above all that the sender wrote. It quotes the sender, in names and comments, so a result that is not
in its plainest form ends the reading, and so does the one of SPF, which quotes most: nothing after it is believed.
"""

import re
from collections.abc import Iterator

from postroom.core.mail.addresses import canonical_domain
from postroom.core.mail.headers import raw_values, searchable

LONGEST_RESULTS = 8_192
_RESULT = re.compile(
    r"\s*(?P<method>[a-z0-9-]+)\s*=\s*(?P<result>[a-z]+)(?:\s+\([\w :.@/+-]*\))*"
    r"(?P<properties>(?:\s+[a-z]+\.[a-z-]+=(?:[\w.@/+=-]+|\"[\w.@/+=-]+\"))*)\s*",
    re.ASCII,
)
_PROPERTY = re.compile(r"([a-z]+\.[a-z-]+)=(\S+)")
_DOMAIN = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)+[a-z0-9-]{2,63}")
_NAMED_BY = {
    "dkim": ("header.i", "header.d"),
    "spf": ("smtp.helo", "smtp.mailfrom"),
}


def proven_domains(head: bytes, server: str) -> frozenset[str]:
    """The domains that signed the message, or may send from where it came, as far as this server says so."""
    found = raw_values(searchable(head), head, b"authentication-results")
    if not found or len(found[0]) > LONGEST_RESULTS:
        return frozenset()
    name, _, results = found[0].partition(";")
    if name.strip().lower() != server:
        return frozenset()
    return frozenset(_verified_domains(results))


def _verified_domains(results: str) -> Iterator[str]:
    for each in results.split(";"):
        found = _RESULT.fullmatch(each)
        if found is None:
            return
        if found["result"] == "pass":
            yield from _domains(found["method"], found["properties"])
        if found["method"] == "spf":
            return


def _domains(method: str, properties: str) -> Iterator[str]:
    for name, value in _PROPERTY.findall(properties):
        domain = canonical_domain(value.strip('"').rpartition("@")[2].lower().removesuffix("."))
        if name in _NAMED_BY.get(method, ()) and _DOMAIN.fullmatch(domain):
            yield domain
