"""Facts about Gmail that the rest of Postroom may know."""

from postroom.core.mail.providers import ProviderFacts

NAME = "gmail"
RECEIVING_HOST = "mx.google.com"
"""The name that Google's servers give themselves in `Authentication-Results`."""

FACTS = ProviderFacts(
    NAME,
    "through Gmail's API",
    owner="Gmail",
    sign_in="consent",
    arrived="-in:drafts -in:chats",
    receiving_hosts=lambda _servers: frozenset({RECEIVING_HOST}),
    mail_system="google.com",
    has_quota=True,
    runs_alone=True,
    own_page="/connectors/new",
    page_label="Gmail by its API",
)
