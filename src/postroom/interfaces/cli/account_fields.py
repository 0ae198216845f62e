"""`postroom account add` for a provider that needs an address and a few fields, which are asked for here."""

import typer

from postroom.core.mail.providers import facts_of
from postroom.interfaces.cli.account_adding import (
    OPTIONS,
    AddOptions,
    account_row,
    asked,
    say_how_to_act,
    typed_secret,
)
from postroom.interfaces.cli.session import Session


def add(session: Session, provider: str, options: AddOptions) -> None:
    """Ask for the fields, try them, and connect the mailbox."""
    from postroom.mailboxes.providers import provider_named
    from postroom.operations.accounts.connecting import connect_with_fields

    options.refuse(provider, OPTIONS - {"email"})
    email = options.email or asked("Mail address")
    fields = {each.name: typed_secret(each.label) for each in provider_named(provider).fields}
    connected = session.act(connect_with_fields, session.settings, provider, email, fields)
    account = connected.account
    session.show_line(account_row(account), f"{account.email}  connected {facts_of(provider).way}  ({account.id})")
    for each in connected.warnings:
        typer.echo(each, err=True)
    say_how_to_act(account)
