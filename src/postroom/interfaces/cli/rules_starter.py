"""`postroom rules starter`: rules that ship with Postroom, off until you choose them."""

from collections.abc import Sequence
from textwrap import fill

import typer

from postroom.core.rules.documents import write_documents
from postroom.core.rules.draft import as_document
from postroom.core.rules.starter import drafts_of, starters_named
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.rules.starter_rules import KeptRules, Names, StarterView

WIDTH = 100
CHOSEN = {"yes": "chosen", "partly": "partly chosen", "no": "off"}


def _show_list(session: Session, found: Sequence[StarterView]) -> None:
    if session.as_json:
        session.show_list(found, ())
        return
    for each in found:
        typer.echo(f"{each.name} ({CHOSEN[each.chosen]}); the last 7 days: {lately(each)}")
        typer.echo(fill(each.description, WIDTH, initial_indent="  ", subsequent_indent="  "))


def _show_added(session: Session, kept: KeptRules) -> None:
    for result, rules in {"added": kept.added, "left as it is": kept.skipped}.items():
        for rule in rules:
            session.show_result(rule, result, key="name")


app = command_group("Rules that ship with Postroom, off until you choose them: list, show and add them.")
add_commands(app, "rules starter", "rules.starter_rules", list=_show_list, add=_show_added)


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


def lately(view: StarterView) -> str:
    """The effect that the starter would have had on the mail of the last 7 days, in words."""
    if view.mail == 0:
        return "no mail yet"
    if view.matched == 0:
        return f"nothing, of {view.mail:,}"
    parts = [f"{view.matched:,} of {view.mail:,}"]
    parts += [f"{view.leave_inbox:,} leave the inbox"] if view.leave_inbox else ["all stay"]
    return ", ".join(parts + ([f"{view.wait:,} would need your approval"] if view.wait else []))
