"""`postroom preview`: show what Postroom would do with mail in files. It changes nothing."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from postroom.core.errors import BadInput
from postroom.core.mail.contacts import LARGEST_FILE, read_contacts
from postroom.core.mail.files import mail_in
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy, IngestionRule
from postroom.core.mail.providers import known_receiving_hosts
from postroom.core.rules.draft import RuleDraft
from postroom.interfaces.cli.filter_files import rules_in
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.preview_output import Shown, show_preview
from postroom.interfaces.cli.rule_options import read_bytes, read_drafts
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.preview.arrivals import IncomingMessage, read_history
from postroom.operations.preview.preview import Previewer
from postroom.operations.preview.preview_account import FetchedMail, fetch_mail
from postroom.operations.preview.preview_mail import check_is_mail, own_address, recipient_of, user_warnings
from postroom.operations.preview.preview_processes import preview_all
from postroom.operations.preview.preview_rules import Chosen, choose_rules, own_filters, starter_drafts
from postroom.operations.preview.preview_summary import summarise

app = one_command()

PROGRESS_EVERY = 250
MOST_FETCHED = 10_000
SHIPPED, OWN = "default", "own"

Mail = Callable[[], Iterator[IncomingMessage]]
"""Begins to read the mail anew."""


@app.command()
def preview(
    session: Session,
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="An mbox, a Maildir, a folder of messages, or one message.")
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            "--account", metavar="ID_OR_ADDRESS", help="The newest mail of this connected mailbox instead, only read."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MOST_FETCHED, help="With --account: how many messages.")
    ] = 500,
    user: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            metavar="ADDRESS",
            help="Your address; repeatable. Without it, the address that most of the mail is for.",
        ),
    ] = None,
    contacts: Annotated[
        Path | None, typer.Option("--contacts", metavar="FILE", help="Your contacts: a vCard or CSV export.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Apply the rules in this file, YAML or JSON.")
    ] = None,
    starter: Annotated[
        list[str] | None,
        typer.Option("--starter", metavar="NAME|all", help="Apply these starter rules; repeatable."),
    ] = None,
    filters: Annotated[
        str | None,
        typer.Option(
            "--filters",
            metavar=f"FILE|{OWN}|{SHIPPED}",
            help="Which filters apply: those in a file (JSON or YAML), your own (with --account), or the default ones.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the result as one page to look at.")
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Show the summary alone, not each message.")] = False,
) -> None:
    """Show what Postroom would do with mail in an mbox, a Maildir or a folder of .eml files, changing nothing.

    First a summary: how much would leave the inbox, wait for your yes, and be seen first; then, for each message, the
    sender, the subject, the tier and why, and what would be done. With neither --rules nor --starter the rules in use
    are applied, and all starter rules where there are none yet.

    If a file is itself called own or default, give its folder too: ./own.
    """
    if (path is None) == (account is None):
        raise BadInput("preview", "needs exactly one kind of mail", "give PATH, or --account ADDRESS")
    drafts, users = _drafts(rules, starter), list(user or ())
    people = None if contacts is None else _contacts(contacts)
    ingestion, filters_source = _filters(session, filters or (SHIPPED if account is None else OWN))
    if account is not None:
        fetched = _fetch(session, account, limit)
        users, people = [fetched.email, *users], fetched.contacts | (people or frozenset())
        mail: Mail = partial(iter, fetched.messages)
        known = _Known(users, people, ingestion, filters_source, fetched.hosts)
    else:
        mail = partial(_in_files, path or Path())
        known = _Known(users, people, ingestion, filters_source)
    shown = _preview(session, account or str(path), mail, known, _source(rules, starter), drafts)
    _show(session, shown, html, only_summary=summary)


def preview_fetched(session: Session, fetched: FetchedMail) -> None:
    """Show the summary for mail that was just read from a mailbox, by the rules in use or the starter rules."""
    ingestion, filters_source = _filters(session, OWN)
    known = _Known([fetched.email], fetched.contacts, ingestion, filters_source, fetched.hosts)
    shown = _preview(session, fetched.email, partial(iter, fetched.messages), known, "", None)
    _show(session, shown, None, only_summary=True)


class _Known(NamedTuple):
    """Whose mail it is, the people they know, the filters with a name for them, and the hosts that receive the mail."""

    users: list[str]
    people: frozenset[str] | None
    ingestion: IngestionPolicy
    filters_source: str
    hosts: frozenset[str] = field(default_factory=known_receiving_hosts)


def _preview(
    session: Session, name: str, mail: Mail, known: _Known, source: str, drafts: list[RuleDraft] | None
) -> Shown:
    now = datetime.now(UTC)
    history = read_history(mail(), frozenset(map(own_address, known.users)), _looking)
    recipient = recipient_of(history, known.users, known.people, known.ingestion, known.hosts)
    chosen = choose_rules(session.settings, source, drafts, recipient, now, session.call)
    previewer = Previewer(chosen.rules, chosen.recipient, now)
    preview_all(mail(), previewer, history.senders.total(), _previewing)
    _progress("", 0)
    rows = previewer.finish()
    check_is_mail(name, rows)
    for warning in [*user_warnings(history, known.users, recipient), *_warnings_of(chosen)]:
        typer.echo(f"postroom: {cell(warning)}", err=True)
    return Shown(rows, summarise(rows, session.settings.model), chosen.source, known.filters_source, recipient.email)


def _show(session: Session, shown: Shown, html: Path | None, *, only_summary: bool) -> None:
    if html is not None:
        from postroom.interfaces.cli.preview_page import write_page

        write_page(html, shown)
    if session.as_json:
        for row in [shown.summary] if only_summary else shown.rows:
            show_json(asdict(row))
        return
    show_preview(shown, each=not only_summary)
    if html is not None:
        typer.echo(f"\nThe page is in {cell(str(html))}.")


def _in_files(path: Path) -> Iterator[IncomingMessage]:
    return map(IncomingMessage, mail_in(path))


def _fetch(session: Session, account: str, most: int) -> FetchedMail:
    """Return the newest mail of a mailbox, read over the network."""
    open_source = partial(session.application.open_source, session.settings)
    found = session.call(fetch_mail, account, most, open_source, reading)
    _progress("", 0)
    return found


def reading(number: int) -> None:
    _progress(f"reading the mailbox: {number:,} messages", number)


def _drafts(rules: Path | None, starter: Sequence[str] | None) -> list[RuleDraft] | None:
    if rules is not None and starter:
        raise BadInput("--starter", "is given beside --rules", "give one of them")
    if rules is not None:
        return read_drafts(rules)
    return starter_drafts(starter) if starter else None


def _source(rules: Path | None, starter: Sequence[str] | None) -> str:
    if rules is not None:
        return str(rules)
    return f"starter rules: {', '.join(starter)}" if starter else ""


def _warnings_of(chosen: Chosen) -> list[str]:
    return [f"the rule {name!r} is invalid and not applied: {why}" for name, why in chosen.broken]


def _filters(session: Session, given: str) -> tuple[IngestionPolicy, str]:
    """Return the filters to apply, and what to call them. The database is read, never written."""
    if given == SHIPPED:
        return DEFAULT_POLICY, "the default ones"
    if given == OWN:
        found = own_filters(session.settings, session.call)
        called = "the default ones" if set(found) == set(DEFAULT_POLICY.rules) else f"your own, {_rules_text(found)}"
        return IngestionPolicy(found), called
    found = rules_in(Path(given))
    return IngestionPolicy(found), f"{cell(given)}, {_rules_text(found)}"


def _rules_text(rules: list[IngestionRule]) -> str:
    return "1 rule" if len(rules) == 1 else f"{len(rules):,} rules"


def _contacts(path: Path) -> frozenset[str]:
    read = read_contacts(read_bytes(path, LARGEST_FILE + 1, "--contacts", "give a vCard or CSV"))
    for problem in read.problems:
        typer.echo(f"{cell(str(path))}: {cell(problem)}", err=True)
    return read.addresses


def _previewing(number: int) -> None:
    _progress(f"{number:,} messages", number)


def _looking(number: int) -> None:
    _progress(f"looking for your own mail: {number:,} messages", number)


def _progress(text: str, number: int) -> None:
    """Print one line on a terminal, over the previous one; an empty text clears it."""
    if sys.stderr.isatty() and number % PROGRESS_EVERY == 0:
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)
