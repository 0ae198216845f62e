"""Facts about mailboxes over IMAP that the rest of Postroom may know."""

from postroom.core.mail.providers import ProviderFacts
from postroom.core.mail.servers import MailServers

NAME = "imap"
_RECEIVED_BY = {"imap.gmail.com": "mx.google.com", "imap.googlemail.com": "mx.google.com"}
"""For a host that mailboxes are read from, the one that receives their mail."""


def _receiving_hosts(servers: MailServers | None) -> frozenset[str]:
    if servers is None:
        return frozenset()
    named = servers.authserv_ids.split()
    known = _RECEIVED_BY.get(servers.imap_host.lower())
    return frozenset(named or ([known] if known else []))


# A deleted message may come back: from a backup, or from a folder that was away.
FACTS = ProviderFacts(
    NAME,
    "over IMAP",
    has_servers=True,
    arrived="-in:drafts",
    messages_return=True,
    receiving_hosts=_receiving_hosts,
    own_page="/connectors/imap",
    page_label="Connect a mailbox",
    is_usual=True,
)
