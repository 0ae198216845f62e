"""`postroom account add` for a provider that needs an address and a few fields, which are asked for here."""

from typing import TYPE_CHECKING

from postroom.core.mail.providers import facts_of
from postroom.interfaces.cli.account_adding import OPTIONS, AddOptions, asked_address, show_connected
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.typed_secrets import typed_secret

if TYPE_CHECKING:
    from postroom.operations.accounts.accounts import AccountView
    from postroom.operations.accounts.connecting import ConnectedAccount


def add(session: Session, provider: str, options: AddOptions) -> None:
    """Connect a mailbox, and say what comes next."""
    connected = _connect(session, provider, options)
    show_connected(session, connected.account, facts_of(provider).way, connected.warnings)


def connect(session: Session, provider: str, options: AddOptions) -> "AccountView":
    """Connect a mailbox, or renew its fields."""
    return _connect(session, provider, options).account


def _connect(session: Session, provider: str, options: AddOptions) -> "ConnectedAccount":
    """Ask for the fields, try them, and connect the mailbox."""
    from postroom.mailboxes.providers import provider_named
    from postroom.operations.accounts.connecting import connect_with_fields

    options.refuse(provider, OPTIONS - {"email"})
    email = options.email or asked_address()
    fields = {each.name: typed_secret(each.label) for each in provider_named(provider).fields}
    return session.act(connect_with_fields, session.settings, provider, email, fields)
