"""`postroom mail`: list and search stored mail, read it, and ask why it is where it is."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

import typer

from postroom.interfaces.cli.output import cell, clipped, show_json, show_list, show_wrapped
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.mail.mail_ids import MessageName
from postroom.operations.mail.mail_lines import MailLine, MailPage, MailQuestion, MailTier, list_by_date, list_lines
from postroom.operations.mail.mail_page import MailDetail, show_mail
from postroom.operations.operation import Argument, Limit

app = command_group(
    "List and search stored mail, read it, and ask why it is where it is.\n\n"
    "Each message is shown with a short id, the last eight digits of its whole id. Commands take any beginning of it "
    "that is unique, the whole id, the Gmail id or the Message-ID of a message, and the ids of actions, decisions and "
    "jobs about it."
)

COLUMNS = ("id", "sent", "from", "subject", "tier", "done", "by")
FOUND_COLUMNS = ("id", "sent", "from", "subject", "labels")
NOTHING_YET = "No mail is stored yet. Mail comes with `postroom serve`, once an account is connected."


@app.command("list")
def list_(
    session: Session,
    account: Annotated[str | None, Argument("Only mail of this account.", typed_as="--account ADDRESS")] = None,
    tier: Annotated[MailTier | None, Argument("Only mail of this tier.")] = None,
    category: Annotated[str | None, Argument("Only mail of this category, such as finance.")] = None,
    kept: Annotated[bool, Argument("Only mail with which nothing was done.")] = False,
    since: Annotated[datetime | None, Argument("Only mail sent since then.")] = None,
    limit: Limit = 20,
) -> None:
    """List mail, the newest first, with what was done and by whom."""
    asked = MailQuestion(kind="mail", tier=tier, account=account, since=since, category=category)
    found = session.call(list_by_date, asked, limit, only_kept=kept).lines
    if session.as_json:
        session.show_list(found, ())
    elif found:
        show_list(map(_row, found), COLUMNS, as_json=False)
    else:
        typer.echo(NOTHING_YET if since is None and not (account or tier or category or kept) else "No mail matches.")


@app.command(context_settings={"ignore_unknown_options": True})  # -word excludes a word
def search(
    session: Session,
    query: Annotated[
        Sequence[str],
        Argument('Such as: invoice -draft from:"Mara Lindqvist" has:attachment in:inbox.', typed_as="WORDS"),
    ],
    limit: Annotated[int, Argument("At most this many.", 1, 200)] = 20,
) -> None:
    """Search stored mail, the newest first. Accents and case make no difference.

    All parts must match: words, "phrases", beginnings (invo*), -excluded, and from:, to:, subject:, label:, in:, is:,
    has:attachment, account:, after:2026-11-01, before:2026-11-15.
    """
    _show_found(session, session.call(list_lines, MailQuestion(" ".join(map(_as_typed, query))), limit))


@app.command()
def why(session: Session, message: MessageName) -> None:
    """Explain one message: how it came, what was decided and why, what was done, and how to undo it."""
    found = session.ask(show_mail, message=message)
    show_json(found) if session.as_json else _show_story(session, found)


def _as_typed(part: str) -> str:
    """Restore the quotes that the shell removed around a phrase."""
    name, colon, value = part.partition(":")
    if " " not in part or '"' in part:
        return part
    if colon and name.lstrip("-").isalpha() and " " not in name:
        return f'{name}:"{value}"'
    return f'-"{part[1:]}"' if part.startswith("-") else part


def _row(mail: MailLine) -> dict[str, object]:
    name = f"{mail.sender_name} <{mail.sender}>" if mail.sender_name else mail.sender
    return {
        "id": mail.short_id,
        "sent": _sent_at(mail),
        "from": clipped(name, 32),
        "subject": clipped(mail.subject, 40),
        "tier": mail.tier,
        "done": clipped(mail.outcome, 60),
        "by": clipped(mail.by, 32),
    }


def _show_found(session: Session, found: MailPage) -> None:
    if session.as_json:
        session.show_list(found.lines, ())
    elif found.lines:
        show_list(_found_rows(found), FOUND_COLUMNS, as_json=False)
    else:
        typer.echo("No mail matches.")
    if found.next is not None:
        typer.echo("There is more: give --limit, or narrow the search.", err=True)
    if found.is_indexing:
        typer.echo("Older mail is still being indexed and may be missing.", err=True)


def _found_rows(found: MailPage) -> Iterable[dict[str, object]]:
    for mail in found.lines:
        yield {
            "id": mail.short_id,
            "sent": _sent_at(mail),
            "from": clipped(mail.sender, 32),
            "subject": clipped(mail.subject, 50),
            "labels": clipped(", ".join(mail.labels), 40),
        }


def _show_story(session: Session, mail: MailDetail) -> None:
    typer.echo(f"{cell(mail.subject)}  ({mail.short_id})")
    for line in mail.story:
        when = "" if line.at is None else _minute(line.at)
        show_wrapped(f"  {when:<16}  ", cell(line.text))
        if line.command is not None:  # on one line, so that it can be copied
            typer.echo(f"{'':<20}{session.command_line(line.command)}")


def _sent_at(mail: MailLine) -> str:
    return "" if mail.sent_at is None else _minute(mail.sent_at)


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _show(session: Session, mail: MailDetail) -> None:
    if session.as_json:
        show_json(mail)
        return
    sender = f"{mail.sender_name} <{mail.sender}>" if mail.sender_name else mail.sender
    head = (("From", sender), *mail.headers, ("Date", _minute(mail.sent_at)), ("Subject", mail.subject))
    for name, value in head:
        typer.echo(f"{cell(name.title())}: {cell(value)}")
    typer.echo(f"Labels: {cell(mail.labels)}{' (gone from the mailbox)' if mail.is_gone else ''}")
    for each in mail.attachments:
        typer.echo(f"Attachment: {cell(each.name)}{'' if each.size is None else f' ({each.size:,} bytes)'}")
    typer.echo(f"Id: {mail.short_id} ({mail.id}); Gmail id {cell(mail.provider_message_id)}; {cell(mail.account)}")
    typer.echo("")
    for line in (mail.text or mail.no_text).splitlines():
        typer.echo("" if not line.strip() else cell(line))
    if mail.is_cut:
        typer.echo("… (cut; the whole text is in the mailbox)")


add_commands(app, "mail", "mail.mail_page", show=_show)
