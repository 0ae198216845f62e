"""`postroom account`: connect mailboxes, and switch acting on; list, pause, resume or remove them."""

import sys
from typing import Annotated

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.mail.providers import PROVIDERS
from postroom.core.moments import read_start
from postroom.interfaces.cli.account_adding import AddOptions, dialog_for
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.accounts.accounts import AccountName, account_row
from postroom.operations.accounts.acting import ActingPlan, begin_acting, plan_acting
from postroom.operations.mail.reclassify import again_words
from postroom.operations.operation import Argument

app = command_group("Connect mailboxes, and switch acting on; list, pause, resume or remove them.")
add_commands(app, "account", "accounts.accounts", "accounts.connecting")


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
    dialog_for(provider).add(session, provider, options)


@app.command()
def act(
    session: Session,
    account: AccountName,
    since: Annotated[
        str,
        Argument("now, a span back such as 7d, a day such as 2026-11-01 (UTC), or a time.", typed_as="--from WHEN"),
    ],
    yes: Yes = False,
) -> None:
    """Act on an account's mail from a time on. Until then, everything is decided in shadow: recorded, not done.

    With a time in the past, mail since then that nothing was done with is decided again, with today's rules and model.
    You are asked before that. Earlier mail stays as it is. Safe to repeat.
    """
    start = read_start("--from", since, session.clock())
    plan = session.call(plan_acting, account, start)
    if plan.messages and not yes and since != "now":
        _ask_to_act(plan)
    acting = session.act(begin_acting, account, start)
    count, batch = acting.messages, acting.batch_id
    again = f".\n{again_words(count, batch)}" if count else ""
    line = f"{acting.account.email}  acts on mail from {start:%Y-%m-%d %H:%M} UTC on{again}"
    session.show_line(
        {**account_row(acting.account), "messages": count, "batch_id": str(batch) if count else None}, line
    )


def _ask_to_act(plan: ActingPlan) -> None:
    """Say what acting on earlier mail means, and ask. Raise BadInput where nobody can be asked."""
    said = f"{counted(plan.messages, 'message')} since {plan.since:%Y-%m-%d %H:%M} UTC would be decided again"
    if not sys.stdin.isatty():
        raise BadInput("--yes", f"is missing: {said}", "repeat the command with --yes, or use --from now")
    if plan.would:
        so_far = ", ".join(f"{action} {count:,}" for action, count in plan.would.items())
        said += f"; decided in shadow so far: {so_far}"
    typer.confirm(f"{said}. Act on them?", abort=True, err=True)
