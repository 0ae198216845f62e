"""Shared by the dialogs of `postroom account add`: options as typed, questions, and how they end."""

import sys
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, cast

import typer

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.servers import LabelsAs, Security
from postroom.interfaces.cli.session import Session
from postroom.operations.operation import Argument

if TYPE_CHECKING:
    from postroom.operations.accounts.accounts import AccountView

HIGHEST_PORT = 65535
SignIn = Literal["password", "google", "microsoft"]


@dataclass(frozen=True)
class AddOptions:
    """The options of the command, as typed."""

    email: Annotated[str | None, Argument("The mailbox; if omitted, you are asked.", typed_as="--email ADDRESS")] = None
    level: Annotated[
        str | None,
        Argument(
            "gmail: what Postroom may do there: read, organise, send or full. Default: its present level, or organise."
        ),
    ] = None
    no_browser: Annotated[bool, Argument("Print the address of the consent page and ask for the code here.")] = False
    sign_in: Annotated[
        SignIn | None,
        Argument("imap: by password, or by consent to your own app there. Default: as before, else password."),
    ] = None
    imap_host: Annotated[
        str | None, Argument("imap: the server; if omitted, it is looked for.", typed_as="--imap-host HOST")
    ] = None
    imap_port: Annotated[int | None, Argument("imap: its port.", 1, HIGHEST_PORT)] = None
    imap_security: Annotated[
        Security | None, Argument("imap: how the connection is encrypted. Default: tls, from the first byte.")
    ] = None
    smtp_host: Annotated[
        str | None, Argument("imap: the server that mail is sent through.", typed_as="--smtp-host HOST")
    ] = None
    smtp_port: Annotated[int | None, Argument("imap: its port.", 1, HIGHEST_PORT)] = None
    smtp_security: Annotated[Security | None, Argument("imap: the same for sending.")] = None
    no_sending: Annotated[bool, Argument("imap: connect without a server for sending.")] = False
    user: Annotated[
        str | None, Argument("imap: the name to sign in with, if not the address.", typed_as="--user NAME")
    ] = None
    labels: Annotated[
        LabelsAs | None, Argument("imap: keywords (several for a message) or folders (a label moves the message).")
    ] = None
    ca_file: Annotated[
        Path | None,
        Argument("imap: certificates to trust in addition to the system's, in PEM.", typed_as="--ca-file FILE"),
    ] = None
    other_smtp_password: Annotated[bool, Argument("imap: ask for another password for sending.")] = False
    authserv_id: Annotated[
        Sequence[str],
        Argument(
            "imap: the name of a host that receives your mail, as in its Authentication-Results; may be repeated.",
            typed_as="--authserv-id NAME",
        ),
    ] = ()
    preview: Annotated[bool, Argument("imap: show what would be done with the newest mail, and store nothing.")] = False

    def refuse(self, provider: str, names: Set[str]) -> None:
        """Raise BadInput if one of these options, which are for other providers, is given."""
        for name, value in asdict(self).items():
            if value and name in names:
                option = f"--{name.replace('_', '-')}"
                raise BadInput(option, f"is not for {provider}", "leave it out, or name the other provider")


OPTIONS = frozenset(each.name for each in fields(AddOptions))


class Dialog(Protocol):
    """The dialog that connects mailboxes of a provider."""

    def add(self, session: Session, provider: str, options: AddOptions) -> None:
        """Connect a mailbox, and say what comes next."""
        ...

    def connect(self, session: Session, provider: str, options: AddOptions) -> "AccountView":
        """Connect a mailbox, as a part of a longer dialog."""
        ...


def dialog_for(provider: str) -> Dialog:
    """The dialog of a provider: for its fields, or the module of its own, `account_NAME.py`."""
    from postroom.mailboxes.providers import provider_named

    name = "fields" if provider_named(provider).fields else provider
    return cast("Dialog", import_module(f"postroom.interfaces.cli.account_{name}"))


def asked(what: str) -> str:
    if not sys.stdin.isatty():
        raise BadInput("--email", "is missing", "give the address of the mailbox")
    return str(typer.prompt(what, err=True))


def asked_address() -> str:
    """The address of the mailbox; asked for again until it is one."""
    while True:
        try:
            return normalised_address(asked("Mail address"))
        except BadInput as error:
            if not sys.stdin.isatty():
                raise
            typer.echo(f"That {error.problem}; {error.remedy}.", err=True)


def show_connected(session: Session, account: "AccountView", how: str, notes: Sequence[str] = ()) -> None:
    """Show the account, then what its owner should know."""
    from postroom.core.mail.account_repair import act_command
    from postroom.operations.accounts.accounts import account_row

    session.show_line(account_row(account), f"{account.email}  connected {how}  ({account.id})")
    for each in notes:
        typer.echo(each, err=True)
    if account.acts_from is None:
        typer.echo(
            "Mail is read and decided in shadow; nothing in the mailbox is changed. "
            f"To act on new mail, run `{act_command(account.email)}`",
            err=True,
        )
