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
"""The means of access that the owner renews when a mailbox can no longer be opened."""


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
    has_quota: bool = False
    """Whether the provider limits reads."""
    runs_alone: bool = False
    """Whether its connector can also be a process of its own: `postroom connector NAME`."""
    own_page: str | None = None
    """The page on which a mailbox is connected, if it is not the one for all providers."""
    page_label: str = ""
    """The words of the button that leads there."""
    is_usual: bool = False
    """Whether it is the way to connect that is offered first."""

    @property
    def button(self) -> str:
        return self.page_label or f"Connect {self.way}"

    @property
    def page(self) -> str:
        """The address of the page on which a mailbox is connected."""
        return self.own_page or f"/connectors/new/{self.name}"


def facts_of(name: str) -> ProviderFacts:
    """The facts of a provider. One that is not known, such as that of a stream of events, has none."""
    if name not in PROVIDERS:
        return ProviderFacts(name, f"as {name}")
    return cast("ProviderFacts", import_module(f"{PROVIDERS[name]}.facts").FACTS)


def ways_to_connect() -> list[ProviderFacts]:
    """The providers in the order in which they are offered to a person, the usual one first."""
    return sorted((facts_of(name) for name in PROVIDERS), key=lambda each: not each.is_usual)


def known_receiving_hosts() -> frozenset[str]:
    """The hosts that receive mail for all mailboxes of a provider."""
    return frozenset(host for name in PROVIDERS for host in facts_of(name).receiving_hosts(None))
