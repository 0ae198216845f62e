"""The providers of mailboxes: where the folder of each one is, and what everything outside of it may know.

A provider is one folder and one line in `PROVIDERS`. Its `facts.py` has the facts below, and its `provider.py` all that
it can do (`mailboxes/providers.py`). Both are loaded by name when they are needed, so that nothing imports a provider,
and a command that needs none loads none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, cast

from postroom.core.mail.servers import MailServers

PROVIDERS: dict[str, str] = {
    "gmail": "postroom.mailboxes.gmail",
    "imap": "postroom.mailboxes.imap",
}
"""For each provider, the package that knows it."""

SignIn = Literal["consent", "password"]
"""What the owner renews when a mailbox can no longer be opened."""


def _no_hosts(_servers: MailServers | None) -> frozenset[str]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """A provider in data and words, for decisions that depend on it."""

    name: str
    way: str
    """How its mailboxes are reached, such as "over IMAP"."""
    owner: str = "the mailbox"
    """Who has the labels, in sentences such as "it was deleted in the mailbox"."""
    sign_in: SignIn = "password"
    has_servers: bool = False
    """Whether an account without servers was never connected."""
    arrived: str = ""
    """The search, in the provider's language, for mail that arrives: neither drafts nor chats."""
    messages_return: bool = False
    """Whether a message can come back after it was deleted, with the same id."""
    receiving_hosts: Callable[[MailServers | None], frozenset[str]] = _no_hosts
    """The hosts that report on the authentication of a mailbox's mail, as far as they are known or were named."""
    mail_system: str | None = None
    """The domain that the provider's own mail systems sign as."""


def facts_of(name: str) -> ProviderFacts:
    """The facts of a provider. One that is not known, such as that of a stream of events, has none."""
    if name not in PROVIDERS:
        return ProviderFacts(name, f"as {name}")
    return cast("ProviderFacts", import_module(f"{PROVIDERS[name]}.facts").FACTS)


def known_receiving_hosts() -> frozenset[str]:
    """The hosts that receive mail for whole providers, whoever's mailbox it is."""
    return frozenset(host for name in PROVIDERS for host in facts_of(name).receiving_hosts(None))
