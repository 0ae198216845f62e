"""Decides whether a report that was found in a mailbox is believed: who wrote it, and whom that writer may speak for.

Anybody can send a report to a mailbox, and everybody who got a mail knows its Message-ID and most of its recipients.
So the writer must be proven, must be a mail system and not one of its users, and must be the one that had the mail:
the provider of the mailbox that it left through, the domain of the recipient, or the server that took it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from postroom.core.hosts import is_within
from postroom.core.mail.accounts import mailbox_name, provider_of
from postroom.core.mail.addresses import addresses
from postroom.core.mail.authentication import proven_domains
from postroom.core.mail.headers import head_of, read_head, values, with_line_ends
from postroom.core.mail.providers import facts_of
from postroom.core.outbound.bounce_letters import MAIL_SYSTEMS

ReportKind = Literal["delivery", "complaint"]

# Google's mail systems sign as googlemail.com. So do some of its users, but not under these names.
_ALSO = {"googlemail.com": "google.com"}
_COMPLAINT_DESKS = re.compile(r"abuse|arf|complaints?|fbl|feedback|feedback-?loop|postmaster|mailer-daemon")
_HOST = re.compile(r"((?:[a-z0-9_-]+\.)+[a-z0-9-]+)(?:\[[^\]]*\])?: ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """The mailbox in which a report was found, and the domains that are proven to have written it as mail systems."""

    account_id: UUID
    email: str
    provider: str
    domains: frozenset[str] = frozenset()

    def concerns(self, account_id: UUID | None, envelope_sender: str) -> bool:
        """Whether reports about a mail come to this mailbox: it left through it, or names it as envelope sender."""
        if account_id is not None:
            return account_id == self.account_id
        return mailbox_name(_without_detail(envelope_sender)) == mailbox_name(self.email)

    def speaks_for(self, address: str, taken_by: str | None, *, through_mailbox: bool) -> bool:
        """Whether the writer can know the fate of the recipient, whose mail the server `taken_by` took."""
        if through_mailbox and facts_of(self.provider).mail_system in self.domains:
            return True
        domain = address.rpartition("@")[2].lower()
        return any(
            is_within(domain, each) or is_within(each, domain) or (taken_by is not None and is_within(taken_by, each))
            for each in self.domains
        )


def origin_of(raw: bytes, kind: ReportKind, account_id: UUID, endpoint_identity: str, email: str) -> ReportOrigin:
    """The origin of a report in the mailbox at this endpoint. One without proof speaks for no one."""
    provider = provider_of(endpoint_identity)
    head = head_of(with_line_ends(raw))
    headers = read_head(head).headers
    hosts = facts_of(provider).receiving_hosts(None)
    proven = frozenset[str]().union(*(proven_domains(head.block, each) for each in hosts))
    authors = [each for value in values(headers, "from") for each in addresses(value)]
    if len(values(headers, "from")) != 1 or len(authors) != 1:
        return ReportOrigin(account_id, email, provider)
    # Mail systems report with an empty envelope sender, which a user's mail cannot have (RFC 3464, 2).
    if kind == "delivery" and [each.strip() for each in values(headers, "return-path")[:1]] != ["<>"]:
        return ReportOrigin(account_id, email, provider)
    local, _, domain = authors[0].rpartition("@")
    names = MAIL_SYSTEMS if kind == "delivery" else _COMPLAINT_DESKS
    aligned = [each for each in proven if is_within(domain, each) or is_within(each, domain)]
    if names.fullmatch(local.lower()) is None:
        aligned = []
    return ReportOrigin(account_id, email, provider, frozenset(_with_siblings(aligned)))


def server_in(reply: str | None) -> str | None:
    """The name of the server in a stored reply, such as `mx.example.org[192.0.2.1]: 250 2.0.0 Ok`."""
    found = _HOST.match(reply or "")
    return None if found is None else found[1].lower()


def _with_siblings(domains: Iterable[str]) -> Iterable[str]:
    for each in domains:
        yield each
        if each in _ALSO:
            yield _ALSO[each]


def _without_detail(address: str) -> str:
    """The address without the part after a plus in its local part, as for bounces of one mailing (`ada+list@...`)."""
    local, at, domain = address.rpartition("@")
    return f"{local.partition('+')[0] or local}{at}{domain}"
