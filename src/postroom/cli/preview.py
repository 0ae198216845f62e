"""`postroom preview`: show what Postroom would do with mail in files. It changes nothing."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from postroom.cli.filter_files import rules_in
from postroom.cli.output import cell, show_json
from postroom.cli.rule_options import read_bytes
from postroom.cli.session import Session, one_command
from postroom.core.mail.contacts import LARGEST_FILE, read_contacts
from postroom.core.mail.files import mail_in
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy, IngestionRule
from postroom.manage.preview import Previewed, check_database, known_from_files, own_filters, preview_message

app = one_command()

PROGRESS_EVERY = 250
SHIPPED, OWN = "default", "own"
COLUMNS = "{:<13}  {:<21}  {:<9}  {:<24}  {}"


@app.command()
def preview(
    session: Session,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="An mbox, a Maildir, a folder of messages, or one message.")
    ],
    user: Annotated[list[str], typer.Option("--user", metavar="ADDRESS", help="Your address; repeatable.")],
    contacts: Annotated[
        Path | None, typer.Option("--contacts", metavar="FILE", help="Your contacts: a vCard or CSV export.")
    ] = None,
    filters: Annotated[
        str,
        typer.Option(
            "--filters",
            metavar=f"FILE|{OWN}|{SHIPPED}",
            help="Which filters apply: those in a file (JSON or YAML), your own, or the default ones.",
        ),
    ] = SHIPPED,
) -> None:
    """Show what Postroom would do with the mail in an mbox, a Maildir or a folder of .eml files, changing nothing.

    If a file is itself called own or default, give its folder too: ./own.

    For each message: its tier and the rule that gives it, how much of it is stored, its categories, and any problems.
    Replies to mail that you sent are recognised if that mail is in PATH too.
    """
    people = _contacts(contacts) if contacts else frozenset[str]()
    known = known_from_files(path, user, people, _looking)
    policy, source = _policy(session, filters)
    counts: Counter[tuple[str, str]] = Counter()
    if not session.as_json:
        typer.echo(COLUMNS.format("TIER", "RULE", "TAKEN IN", "CATEGORIES", "MESSAGE"))
    for number, mail in enumerate(mail_in(path), 1):
        seen = preview_message(mail, known, policy)
        _count(seen, counts)
        show_json(seen._asdict()) if session.as_json else _show(seen)
        _progress(f"{number:,} messages", number)
    _progress("", 0)
    if not session.as_json:
        _summarise(counts, source)


def _policy(session: Session, given: str) -> tuple[IngestionPolicy, str]:
    """Return the filters to apply, and what to call them. The database is read, never written."""
    if given == SHIPPED:
        return DEFAULT_POLICY, "the default ones"
    if given == OWN:
        check_database(session.settings)
        rules = session.call(own_filters)
        return IngestionPolicy(rules), f"your own, {_counted(rules)}"
    rules = rules_in(Path(given))
    return IngestionPolicy(rules), f"{cell(given)}, {_counted(rules)}"


def _counted(rules: list[IngestionRule]) -> str:
    return "1 rule" if len(rules) == 1 else f"{len(rules):,} rules"


def _contacts(path: Path) -> frozenset[str]:
    read = read_contacts(read_bytes(path, LARGEST_FILE + 1, "--contacts", "give a vCard or CSV"))
    for problem in read.problems:
        typer.echo(f"{cell(str(path))}: {cell(problem)}", err=True)
    return read.addresses


def _show(seen: Previewed) -> None:
    where = cell(seen.path) + (f"  ({cell(seen.problem)})" if seen.problem else "")
    typer.echo(
        COLUMNS.format(
            seen.policy_tier, seen.assignment_rule, seen.ingestion_tier, cell(seen.categories), where
        ).rstrip()
    )


def _count(seen: Previewed, counts: Counter[tuple[str, str]]) -> None:
    counts["", "messages"] += 1
    counts["tier", seen.policy_tier] += 1
    counts["rule", seen.assignment_rule] += 1
    counts["taken in", seen.ingestion_tier] += 1
    counts.update(("category", name) for name in seen.categories)
    counts["", "with a problem"] += seen.problem is not None


def _summarise(counts: Counter[tuple[str, str]], filters: str) -> None:
    total = counts["", "messages"]
    typer.echo()
    typer.echo(f"{total:,} messages, {counts['', 'with a problem']:,} with a problem")
    typer.echo(f"filters   {filters}")
    for kind in ("tier", "rule", "taken in", "category"):
        found = [(name, count) for (of, name), count in counts.most_common() if of == kind]
        typer.echo(f"{kind:<9} {', '.join(f'{name} {n:,} ({n / total:.0%})' for name, n in found) or '-'}")


def _looking(number: int) -> None:
    _progress(f"looking for your own mail: {number:,} messages", number)


def _progress(text: str, number: int) -> None:
    """Print one line on a terminal, over the previous one; an empty text clears it."""
    if sys.stderr.isatty() and number % PROGRESS_EVERY == 0:
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)
