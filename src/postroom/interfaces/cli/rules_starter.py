"""`postroom rules starter`: rules that ship with Postroom, off until you choose them."""

from datetime import UTC, datetime
from textwrap import fill
from typing import Annotated

import typer

from postroom.core.rules.documents import write_documents
from postroom.core.rules.draft import as_document
from postroom.core.rules.starter import drafts_of, starters_named
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.installation.database import is_created
from postroom.operations.rules.starter_rules import (
    StarterView,
    add_starters,
    list_starters,
    views_without_mail,
)

app = command_group("Rules that ship with Postroom, off until you choose them: list, show and add them.")

WIDTH = 100

Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="Starters, as the list names them, or all.")]


@app.command("list")
def list_(session: Session) -> None:
    """List the starters, and what each would have done by itself to the mail of the last 7 days. It changes nothing."""
    created = is_created(session.settings)
    now = datetime.now(UTC)
    found = session.call(list_starters, session.settings, now) if created else views_without_mail()
    if session.as_json:
        session.show_list(found, ())
        return
    for each in found:
        chosen = {"yes": "chosen", "partly": "partly chosen", "no": "off"}[each.chosen]
        typer.echo(f"{each.name} ({chosen}); the last 7 days: {lately(each)}")
        typer.echo(fill(each.description, WIDTH, initial_indent="  ", subsequent_indent="  "))


@app.command()
def show(session: Session, names: Names) -> None:
    """Show starters in words, and their rules as they would stand in a file."""
    chosen = starters_named(names)
    if session.as_json:
        for each in chosen:
            rules = [as_document(draft) for draft in each.rules]
            show_json({"name": each.name, "description": each.description, "rules": rules})
        return
    for each in chosen:
        typer.echo(fill(f"{each.title}: {each.description}", WIDTH, initial_indent="# ", subsequent_indent="# "))
    typer.echo(write_documents(drafts_of(chosen), "yaml"), nl=False)


@app.command()
def add(session: Session, names: Names) -> None:
    """Add the rules of starters to yours. Rules whose names exist already are left as they are. Safe to repeat."""
    kept = session.act(add_starters, names)
    for result, rules in {"added": kept.added, "left as it is": kept.skipped}.items():
        for rule in rules:
            session.show_result(rule, result, key="name")


def lately(view: StarterView) -> str:
    """The effect that the starter would have had on the mail of the last 7 days, in words."""
    if view.mail == 0:
        return "no mail yet"
    if view.matched == 0:
        return f"nothing, of {view.mail:,}"
    parts = [f"{view.matched:,} of {view.mail:,}"]
    parts += [f"{view.leave_inbox:,} leave the inbox"] if view.leave_inbox else ["all stay"]
    return ", ".join(parts + ([f"{view.wait:,} wait for your yes"] if view.wait else []))
