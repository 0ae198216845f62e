"""`postroom preview`: show what Postroom would do with mail in files. It changes nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.core.mail.contacts import LARGEST_FILE, read_contacts
from postroom.core.mail.files import mail_in
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy
from postroom.core.mail.providers import known_receiving_hosts
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.starter import drafts_of, starters_named
from postroom.interfaces.cli.files import read_bytes
from postroom.interfaces.cli.filter_files import rules_in
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.preview_output import Shown, show_preview
from postroom.interfaces.cli.progress import progress, report
from postroom.interfaces.cli.rule_options import read_drafts
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument
from postroom.operations.preview.arrivals import IncomingMessage, read_history
from postroom.operations.preview.preview import Previewer
from postroom.operations.preview.preview_account import FetchedMail, fetch_mail
from postroom.operations.preview.preview_mail import check_is_mail, own_address, recipient_of, user_warnings
from postroom.operations.preview.preview_processes import preview_all
from postroom.operations.preview.preview_rules import Chosen, choose_rules, own_filters
from postroom.operations.preview.preview_summary import summarise

app = one_command()

MOST_FETCHED = 10_000
SHIPPED, OWN = "default", "own"

Mail = Callable[[], Iterator[IncomingMessage]]
"""Begins to read the mail anew."""


@app.command()
def preview(
    session: Session,
    path: Annotated[
        Path | None, Argument("An mbox, a Maildir, a folder of messages, or one message.", typed_as="PATH")
    ] = None,
    account: Annotated[
        str | None,
        Argument("The newest mail of this connected mailbox instead, only read.", typed_as="--account ID_OR_ADDRESS"),
    ] = None,
    limit: Annotated[int, Argument("With --account: how many messages.", 1, MOST_FETCHED)] = 500,
    user: Annotated[
        Sequence[str],
        Argument(
            "Your address; repeatable. Without it, the address that most of the mail is for.",
            typed_as="--user ADDRESS",
        ),
    ] = (),
    contacts: Annotated[
        Path | None, Argument("Your contacts: a vCard or CSV export.", typed_as="--contacts FILE")
    ] = None,
    rules: Annotated[
        Path | None, Argument("Apply the rules in this file, YAML or JSON.", typed_as="--rules FILE")
    ] = None,
    starter: Annotated[
        Sequence[str], Argument("Apply these starter rules; repeatable.", typed_as="--starter NAME|all")
    ] = (),
    filters: Annotated[
        str | None,
        Argument(
            "Which filters apply: those in a file (JSON or YAML), your own (with --account), or the default ones.",
            typed_as=f"--filters FILE|{OWN}|{SHIPPED}",
        ),
    ] = None,
    html: Annotated[Path | None, Argument("Write the result as one page to look at.", typed_as="--html FILE")] = None,
    summary: Annotated[bool, Argument("Show the summary alone, not each message.")] = False,
) -> None:
    """Show what Postroom would do with mail in an mbox, a Maildir or a folder of .eml files, changing nothing.

    First a summary: how much would leave the inbox, need your approval, and be seen first; then, for each message, the
    sender, the subject, the tier and why, and what would be done. With neither --rules nor --starter the rules in use
    are applied, and all starter rules where there are none yet.

    If a file is itself called own or default, give its folder too: ./own.
    """
    if (path is None) == (account is None):
        raise BadInput("preview", "needs exactly one kind of mail", "give PATH, or --account ADDRESS")
    (source, drafts), users = _choose_drafts(rules, starter), list(user or ())
    people = None if contacts is None else _contacts(contacts)
    ingestion, filters_source = _filters(session, filters or (SHIPPED if account is None else OWN))
    if account is not None:
        fetched = _fetch(session, account, limit)
        users, people = [fetched.email, *users], fetched.contacts | (people or frozenset())
        mail: Mail = partial(iter, fetched.newest.messages)
        known = _Known(users, people, ingestion, filters_source, fetched.hosts)
    else:
        mail = partial(_in_files, path or Path())
        known = _Known(users, people, ingestion, filters_source)
    shown = _preview(session, account or str(path), mail, known, source, drafts)
    _show(session, shown, html, only_summary=summary)


def preview_fetched(session: Session, fetched: FetchedMail) -> None:
    """Show the summary for mail that was just read from a mailbox, by the rules in use or the starter rules."""
    ingestion, filters_source = _filters(session, OWN)
    known = _Known([fetched.email], fetched.contacts, ingestion, filters_source, fetched.hosts)
    shown = _preview(session, fetched.email, partial(iter, fetched.newest.messages), known, "", None)
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
    with progress(session.as_json, moves=False):
        return _preview_all(session, name, mail, known, source, drafts)


def _preview_all(
    session: Session, name: str, mail: Mail, known: _Known, source: str, drafts: list[RuleDraft] | None
) -> Shown:
    now = session.clock()
    history = read_history(mail(), frozenset(map(own_address, known.users)), _looking)
    recipient = recipient_of(history, known.users, known.people, known.ingestion, known.hosts)
    chosen = session.call(choose_rules, session.live_settings.current, source, drafts, recipient, now)
    previewer = Previewer(chosen.rules, chosen.recipient, now)
    count = history.senders.total()
    preview_all(mail(), previewer, count, lambda number: report("previewing", number, count))
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
    with progress(session.as_json):
        return session.call(fetch_mail, account, most, open_source, reading)


def reading(number: int) -> None:
    report("reading the mailbox", number)


def _choose_drafts(rules: Path | None, starter: Sequence[str] | None) -> tuple[str, list[RuleDraft] | None]:
    """Return the rules to apply, with a name for them; None for those in use."""
    if rules is not None and starter:
        raise BadInput("--starter", "is given beside --rules", "give one of them")
    if rules is not None:
        return str(rules), read_drafts(rules)
    if starter:
        return f"starter rules: {', '.join(starter)}", drafts_of(starters_named(starter, "--starter"))
    return "", None


def _warnings_of(chosen: Chosen) -> list[str]:
    return [f"the rule {name!r} is invalid and not applied: {why}" for name, why in chosen.broken]


def _filters(session: Session, given: str) -> tuple[IngestionPolicy, str]:
    """Return the filters to apply, and what to call them. The database is read, never written."""
    if given == SHIPPED:
        return DEFAULT_POLICY, "the default ones"
    if given == OWN:
        found = session.call(own_filters, session.settings)
        called = (
            "the default ones"
            if set(found) == set(DEFAULT_POLICY.rules)
            else f"your own, {counted(len(found), 'rule')}"
        )
        return IngestionPolicy(found), called
    found = rules_in(Path(given))
    return IngestionPolicy(found), f"{cell(given)}, {counted(len(found), 'rule')}"


def _contacts(path: Path) -> frozenset[str]:
    read = read_contacts(read_bytes(path, LARGEST_FILE + 1, "--contacts", "give a vCard or CSV"))
    for problem in read.problems:
        typer.echo(f"{cell(str(path))}: {cell(problem)}", err=True)
    return read.addresses


def _looking(number: int) -> None:
    report("looking for your own mail", number)
