"""Mailboxes over IMAP, as a provider."""

from postroom.mailboxes.imap.facts import FACTS
from postroom.mailboxes.providers import MailProvider, Provider, ProviderParts


def _open(parts: ProviderParts) -> MailProvider:
    from postroom.mailboxes.imap.mailboxes import ImapProvider

    return ImapProvider(parts)


PROVIDER = Provider(FACTS, _open)
