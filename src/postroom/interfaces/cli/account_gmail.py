"""`postroom account add gmail`: the owner consents on Google's page."""

from typing import TYPE_CHECKING

import typer

from postroom.core.choices import choice
from postroom.interfaces.cli.account_adding import OPTIONS, AddOptions, show_connected
from postroom.interfaces.cli.consent import Browsing, Pasting
from postroom.interfaces.cli.session import Session

if TYPE_CHECKING:
    from postroom.operations.accounts.accounts import AccountView
    from postroom.operations.accounts.connecting import ConnectedAccount


def add(session: Session, provider: str, options: AddOptions) -> None:
    """Connect a mailbox, and say what comes next."""
    connected = _connect(session, provider, options)
    consent = connected.account.consent
    how = f"with level {consent.level if consent else 'nothing'}"
    show_connected(session, connected.account, how, connected.warnings)


def connect(session: Session, provider: str, options: AddOptions) -> "AccountView":
    """Connect a mailbox, or renew its consent."""
    connected = _connect(session, provider, options)
    for each in connected.warnings:
        typer.echo(each, err=True)
    return connected.account


def _connect(session: Session, provider: str, options: AddOptions) -> "ConnectedAccount":
    """Ask for consent, and connect the mailbox."""
    from postroom.mailboxes.gmail.from_settings import google_app, scopes_beside
    from postroom.mailboxes.gmail.scopes import LEVELS
    from postroom.operations.accounts.connecting import WantedConsent, add_gmail
    from postroom.operations.installation.vault import vault_of

    options.refuse(provider, OPTIONS - {"email", "level", "no_browser"})
    wanted_level = None if options.level is None else choice("--level", options.level, LEVELS)
    settings = session.settings
    return session.act(
        add_gmail,
        vault_of(settings),
        google_app(settings),
        settings.gmail.base_url,
        WantedConsent(options.email, wanted_level, scopes_beside(settings)),
        Pasting() if options.no_browser else Browsing(),
    )
