"""`postroom account`: connect mailboxes, and switch acting on; list, pause, resume or remove them."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.account_imap import ImapOptions
from postroom.interfaces.cli.consent import Browsing, Pasting
from postroom.interfaces.cli.operator import operator_signature
from postroom.interfaces.cli.options import choice
from postroom.interfaces.cli.session import Session, command_group

if TYPE_CHECKING:
    from postroom.operations.accounts.accounts import AccountView
    from postroom.operations.accounts.acting import ActingPlan

app = command_group("Connect mailboxes, and switch acting on; list, pause, resume or remove them.")

COLUMNS = (
    "id",
    "provider",
    "email",
    "state",
    "acts",
    "level",
    "imap_host",
    "granted_at",
    "refreshed_at",
    "state_reason",
)

Name = Annotated[str, typer.Argument(metavar="ID_OR_ADDRESS", help="The account's id or mail address.")]


@app.command()
def add(
    session: Session,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="How to reach the mailbox: gmail or imap.")],
    email: Annotated[
        str | None, typer.Option("--email", metavar="ADDRESS", help="The mailbox; if omitted, you are asked.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            help="gmail: what Postroom may do there: read, organise, send or full. Default: its present level, or "
            "organise.",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address of the consent page and ask for the code here.")
    ] = False,
    sign_in: Annotated[
        str | None,
        typer.Option(
            "--sign-in",
            help="imap: password, or google or microsoft for a consent by your own app there. Default: as before, or "
            "password.",
        ),
    ] = None,
    imap_host: Annotated[
        str | None, typer.Option("--imap-host", metavar="HOST", help="imap: the server; if omitted, it is looked for.")
    ] = None,
    imap_port: Annotated[int | None, typer.Option("--imap-port", min=1, max=65535, help="imap: its port.")] = None,
    imap_security: Annotated[
        str | None,
        typer.Option("--imap-security", help="imap: tls (from the first byte, the default) or starttls."),
    ] = None,
    smtp_host: Annotated[
        str | None, typer.Option("--smtp-host", metavar="HOST", help="imap: the server that mail is sent through.")
    ] = None,
    smtp_port: Annotated[int | None, typer.Option("--smtp-port", min=1, max=65535, help="imap: its port.")] = None,
    smtp_security: Annotated[
        str | None, typer.Option("--smtp-security", help="imap: tls (the default) or starttls.")
    ] = None,
    no_sending: Annotated[
        bool, typer.Option("--no-sending", help="imap: connect without a server for sending.")
    ] = False,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="imap: the name to sign in with, if not the address.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="imap: keywords (several for a message) or folders (a label moves the message)."),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", metavar="FILE", help="imap: certificates to trust besides the system's, in PEM."),
    ] = None,
    other_smtp_password: Annotated[
        bool, typer.Option("--other-smtp-password", help="imap: ask for another password for sending.")
    ] = False,
    authserv_id: Annotated[
        list[str] | None,
        typer.Option(
            "--authserv-id",
            metavar="NAME",
            help="imap: the name of a host that receives your mail, as in its Authentication-Results; may be repeated.",
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="imap: show what would be done with the newest mail, and store nothing.")
    ] = False,
) -> None:
    """Connect a mailbox, or renew its consent or password.

    gmail: Google asks you in the browser. imap: any mailbox; its server is looked for, and the password is asked for
    here, or read from standard input; with --sign-in google or microsoft, those ask you in the browser.
    """
    if provider == "imap":
        _refuse_options("imap", {"--level": level})
        options = ImapOptions(
            email,
            imap_host,
            imap_port,
            imap_security,
            smtp_host,
            smtp_port,
            smtp_security,
            no_sending,
            user,
            labels,
            ca_file,
            other_smtp_password,
            preview,
            sign_in,
            no_browser,
            tuple(authserv_id or ()),
        )
        _add_imap(session, options)
        return
    if provider != "gmail":
        raise BadInput("PROVIDER", f"{provider!r} is unknown", "use gmail or imap")
    given = {
        "--imap-host": imap_host,
        "--smtp-host": smtp_host,
        "--user": user,
        "--labels": labels,
        "--sign-in": sign_in,
        "--authserv-id": authserv_id,
    }
    _refuse_options("gmail", {**given, "--ca-file": ca_file, "--preview": preview})
    _add_gmail(session, email, level, no_browser)


def _refuse_options(provider: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise BadInput(name, f"is not for {provider}", "leave it out, or name the other provider")


def _add_imap(session: Session, options: ImapOptions) -> None:
    from postroom.interfaces.cli.account_imap import add_imap

    account = add_imap(session, options)
    if account is None:
        typer.echo("Nothing was stored.", err=True)
        return
    session.show_line(_row(account), f"{account.email}  connected over IMAP  ({account.id})")
    typer.echo(
        f"Next: {session.command_line('serve')}, or look again: "
        f"{session.command_line('preview --account ' + shlex.quote(account.email))}",
        err=True,
    )
    _say_how_to_act(account)


def _add_gmail(session: Session, email: str | None, level: str | None, no_browser: bool) -> None:
    from postroom.mailboxes.gmail.from_settings import google_app, scopes_beside
    from postroom.mailboxes.gmail.scopes import LEVELS
    from postroom.operations.accounts.connecting import WantedConsent, add_gmail
    from postroom.operations.installation.vault import vault_of

    wanted_level = None if level is None else choice("--level", level, LEVELS)
    settings = session.settings
    connected = session.call(
        add_gmail,
        vault_of(settings),
        google_app(settings),
        settings.gmail.base_url,
        WantedConsent(email, wanted_level, scopes_beside(settings)),
        Pasting() if no_browser else Browsing(),
        operator_signature(),
    )
    account = connected.account
    granted = account.consent.level if account.consent else "nothing"
    line = f"{account.email}  connected with level {granted}  ({account.id})"
    session.show_line(_row(account), line)
    _say_how_to_act(account)
    for warning in connected.warnings:
        typer.echo(warning, err=True)


@app.command("list")
def list_(session: Session) -> None:
    """List the accounts: state, reason, and what you have consented to."""
    from postroom.operations.accounts.accounts import list_accounts

    found = session.call(list_accounts)
    session.show_list(map(_row, found), COLUMNS)


@app.command()
def pause(
    session: Session,
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; shown in the list.")] = None,
) -> None:
    """Stop using an account for a while: its jobs wait and nothing is lost. Once this command returns, nothing more is
    sent to the mailbox; what had left just before may still take effect. Safe to repeat."""
    from postroom.operations.accounts.accounts import pause_account

    _show(session.call(pause_account, name, operator_signature(reason)), session)


@app.command()
def resume(session: Session, name: Name) -> None:
    """Use an account again: jobs that waited for it continue. Safe to repeat."""
    from postroom.operations.accounts.accounts import resume_account

    _show(session.call(resume_account, name, operator_signature()), session)


@app.command()
def act(
    session: Session,
    name: Name,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="WHEN", help="now, a span back such as 7d, a day such as 2026-11-01 (UTC), or a time."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Decide again about earlier mail without asking.")] = False,
) -> None:
    """Act on an account's mail from a time on. Until then, everything is decided in shadow: recorded, not done.

    With a time in the past, mail since then that nothing was done with is decided again, with today's rules and model.
    You are asked before that. Earlier mail stays as it is. Safe to repeat.
    """
    from datetime import UTC, datetime

    from postroom.core.moments import read_start
    from postroom.operations.accounts.acting import begin_acting, plan_acting

    start = read_start("--from", since, datetime.now(UTC))
    plan = session.call(plan_acting, name, start)
    if plan.messages and not yes and since != "now":
        _ask_to_act(plan)
    account, (count, batch) = session.call(begin_acting, name, start, operator_signature())
    line = f"{account.email}  acts on mail from {start:%Y-%m-%d %H:%M} UTC on"
    if count:
        line += f"; {count:,} {'message is' if count == 1 else 'messages are'} decided again"
        line += f"\n`postroom undo --batch {batch}` takes back the resulting actions."
    session.show_line({**_row(account), "messages": count, "batch_id": str(batch) if count else None}, line)


def _ask_to_act(plan: "ActingPlan") -> None:
    """Say what acting on earlier mail means, and ask. Raise BadInput where nobody can be asked."""
    several = "message" if plan.messages == 1 else "messages"
    said = f"{plan.messages:,} {several} since {plan.since:%Y-%m-%d %H:%M} UTC would be decided again"
    if not sys.stdin.isatty():
        raise BadInput("--yes", f"is missing: {said}", "repeat the command with --yes, or use --from now")
    if plan.would:
        so_far = ", ".join(f"{action} {count:,}" for action, count in plan.would.items())
        said += f"; decided in shadow so far: {so_far}"
    typer.confirm(f"{said}. Act on them?", abort=True, err=True)


@app.command()
def sync(session: Session, name: Name) -> None:
    """Check a mailbox and its labels now, by jobs. Both are also checked continuously. Safe to repeat."""
    from postroom.operations.accounts.accounts import sync_account

    account, job_id = session.call(sync_account, name, operator_signature())
    row = {"account": account.email, "job_id": job_id}
    session.show_line(row, f"{account.email}  will be checked by job {job_id}")


@app.command()
def remove(session: Session, name: Name) -> None:
    """Remove an account: revoke its consent, wipe its secrets; its mail and history stay. Safe to repeat."""
    from postroom.mailboxes.gmail.from_settings import google_app
    from postroom.operations.accounts.connecting import remove_account
    from postroom.operations.installation.vault import vault_of

    settings = session.settings
    has_app = settings.google.client_id is not None and settings.google.client_secret is not None
    google = google_app(settings) if has_app else None
    removed = session.call(remove_account, vault_of(settings), google, name, operator_signature())
    _show(removed.account, session)
    if not removed.consent_ended and removed.account.provider == "imap":
        typer.echo(
            "The provider was not told: remove the app's consent yourself, at https://myaccount.google.com/connections "
            "or https://account.microsoft.com/privacy/app-access",
            err=True,
        )
    elif not removed.consent_ended:
        typer.echo(
            "Google could not be told: revoke the consent yourself at https://myaccount.google.com/connections",
            err=True,
        )


def _say_how_to_act(account: "AccountView") -> None:
    from postroom.core.mail.account_repair import act_command

    if account.acts_from is None:
        typer.echo(
            "Mail is read and decided in shadow; nothing in the mailbox is changed. "
            f"To act on new mail, run `{act_command(account.email)}`",
            err=True,
        )


def _show(account: "AccountView", session: Session) -> None:
    session.show_line(_row(account), f"{account.email}  {account.state}")


def _row(account: "AccountView") -> dict[str, object]:
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
