"""`postroom account`: connect mailboxes, and switch acting on; list, pause, resume or remove them."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.core.errors import BadInput
from postroom.core.mail.providers import PROVIDERS
from postroom.interfaces.cli.account_adding import AddOptions, account_row, dialog_for
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
    provider: Annotated[
        str, typer.Argument(metavar="PROVIDER", help=f"How to reach the mailbox: {' or '.join(PROVIDERS)}.")
    ],
    options: AddOptions,
) -> None:
    """Connect a mailbox, or renew its consent or password.

    gmail: Google asks you in the browser. imap: any mailbox; its server is looked for, and the password is asked for
    here, or read from standard input; with --sign-in google or microsoft, those ask you in the browser.
    """
    if provider not in PROVIDERS:
        raise BadInput("PROVIDER", f"{provider!r} is unknown", f"use {' or '.join(PROVIDERS)}")
    dialog_for(provider)(session, provider, options)


@app.command("list")
def list_(session: Session) -> None:
    """List the accounts: state, reason, and what you have consented to."""
    from postroom.operations.accounts.accounts import list_accounts

    found = session.call(list_accounts)
    session.show_list(map(account_row, found), COLUMNS)


@app.command()
def pause(
    session: Session,
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; shown in the list.")] = None,
) -> None:
    """Stop using an account for a while: its jobs wait and nothing is lost. Once this command returns, nothing more is
    sent to the mailbox; what had left just before may still take effect. Safe to repeat."""
    from postroom.operations.accounts.accounts import pause_account

    _show(session.because(reason).act(pause_account, name), session)


@app.command()
def resume(session: Session, name: Name) -> None:
    """Use an account again: jobs that waited for it continue. Safe to repeat."""
    from postroom.operations.accounts.accounts import resume_account

    _show(session.act(resume_account, name), session)


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
    acting = session.act(begin_acting, name, start)
    account, count, batch = acting.account, acting.messages, acting.batch_id
    line = f"{account.email}  acts on mail from {start:%Y-%m-%d %H:%M} UTC on"
    if count:
        line += f"; {count:,} {'message is' if count == 1 else 'messages are'} decided again"
        line += f"\n`postroom undo --batch {batch}` takes back the resulting actions."
    session.show_line({**account_row(account), "messages": count, "batch_id": str(batch) if count else None}, line)


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

    account, job_id = session.act(sync_account, name)
    row = {"account": account.email, "job_id": job_id}
    session.show_line(row, f"{account.email}  will be checked by job {job_id}")


@app.command()
def remove(session: Session, name: Name) -> None:
    """Remove an account: revoke its consent, wipe its secrets; its mail and history stay. Safe to repeat."""
    from postroom.mailboxes.providers import provider_named
    from postroom.operations.accounts.connecting import remove_account

    removed = session.act(remove_account, session.settings, name)
    _show(removed.account, session)
    if not removed.consent_ended:
        typer.echo(provider_named(removed.account.provider).end_by_hand, err=True)


def _show(account: "AccountView", session: Session) -> None:
    session.show_line(account_row(account), f"{account.email}  {account.state}")
