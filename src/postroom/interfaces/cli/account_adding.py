"""Shared by the dialogs of `postroom account add`: options as typed, questions, and how an account is shown."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.session import Session

if TYPE_CHECKING:
    from postroom.operations.accounts.accounts import AccountView


@dataclass(frozen=True)
class AddOptions:
    """The options of the command, as typed."""

    email: str | None
    imap_host: str | None
    imap_port: int | None
    imap_security: str | None
    smtp_host: str | None
    smtp_port: int | None
    smtp_security: str | None
    no_sending: bool
    user: str | None
    labels: str | None
    ca_file: Path | None
    other_smtp_password: bool
    preview: bool
    sign_in: str | None
    no_browser: bool
    authserv_ids: tuple[str, ...] = ()
    level: str | None = None


def dialog_for(provider: str) -> Callable[[Session, str, AddOptions], None]:
    """The dialog of a provider: for its fields, or the module of its own, `account_NAME.py`."""
    from postroom.mailboxes.providers import provider_named

    name = "fields" if provider_named(provider).fields else provider
    module = import_module(f"postroom.interfaces.cli.account_{name}")
    return cast("Callable[[Session, str, AddOptions], None]", module.add)


def refuse_options(provider: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise BadInput(name, f"is not for {provider}", "leave it out, or name the other provider")


def typed_secret(prompt: str) -> str:
    """Ask without echo; from standard input, a line for each, if that is not a terminal."""
    if sys.stdin.isatty():
        return str(typer.prompt(prompt, hide_input=True, err=True))
    line = sys.stdin.readline()
    if not line.strip():
        raise BadInput("standard input", "has no line left for a password", "give one, or use a terminal")
    return line.rstrip("\r\n")


def asked(what: str) -> str:
    if not sys.stdin.isatty():
        raise BadInput("--email", "is missing", "give the address of the mailbox")
    return str(typer.prompt(what, err=True))


def say_how_to_act(account: "AccountView") -> None:
    from postroom.core.mail.account_repair import act_command

    if account.acts_from is None:
        typer.echo(
            "Mail is read and decided in shadow; nothing in the mailbox is changed. "
            f"To act on new mail, run `{act_command(account.email)}`",
            err=True,
        )


def account_row(account: "AccountView") -> dict[str, object]:
    from postroom.operations.accounts.acting import in_words

    consent, servers = account.consent, account.servers
    return {
        "id": account.id,
        "provider": account.provider,
        "email": account.email,
        "endpoint_identity": account.endpoint_identity,
        "state": account.state,
        "state_reason": account.state_reason,
        "level": consent and consent.level,
        "scopes": sorted(consent.scopes) if consent else [],
        "granted_at": consent and consent.granted_at,
        "refreshed_at": consent and consent.refreshed_at,
        "dies_at": consent and consent.dies_at,
        "imap_host": servers and servers.imap_host,
        "smtp_host": servers and servers.smtp_host,
        "labels_as": servers and servers.labels_as,
        "acts": in_words(account.acts_from),
        "acts_from": account.acts_from,
        "authserv_ids": servers.authserv_ids.split() if servers else [],
        "created_at": account.created_at,
        "updated_at": account.updated_at,
    }
