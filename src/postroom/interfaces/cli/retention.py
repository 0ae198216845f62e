"""`postroom retention`: how long the content of mail is kept, and pruning what is past its time."""

import typer

from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.output import show_json, show_list, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.mail import retention
from postroom.operations.mail.retention import PruneCounts
from postroom.triage.act.retention import RetentionPreview

SAMPLE_COLUMNS = ("stored_at", "ingestion_tier", "sender", "subject")


def _show_preview(session: Session, found: RetentionPreview) -> None:
    if session.as_json:
        show_json({**_counts(found.counts), "oldest": found.oldest, "newest": found.newest})
    else:
        _print(found)


app = command_group("Show how long mail is kept; prune what is past its time.")
add_commands(app, "retention", "mail.retention", preview=_show_preview)


@app.command()
def prune(session: Session, yes: Yes = False) -> None:
    """Prune now: what would go is shown, and pruned when you confirm. It cannot be undone."""
    if not yes:
        _print(session.ask(retention.preview))
        typer.confirm("Prune this?", abort=True)
    counts = session.ask(retention.prune)
    line = f"{counts.messages} messages pruned, {counts.held} held for now.\n{retention.ONLY_OURS}"
    session.show_line(_counts(counts), line)


@app.command()
def enable(session: Session, yes: Yes = False) -> None:
    """Prune every day under these settings. When the settings change, this is asked for again."""
    if not yes:
        show_one(retention.kept_times(session.live_settings.current.retention.policy))
        typer.confirm("Prune every day under these settings?", abort=True)
    changed = session.ask(retention.enable)
    session.show_result(changed.name, changed.result, key="name")


def _counts(counts: PruneCounts) -> dict[str, object]:
    return {"messages": counts.messages, "held": counts.held, **counts.as_json()}


def _print(found: RetentionPreview) -> None:
    counts = found.counts
    by = {f"tier_{name}": count for name, count in sorted(counts.tiers.items())}
    by |= {f"category_{name}": count for name, count in sorted(counts.categories.items())}
    show_one({"messages": counts.messages, "held": counts.held, **by, "oldest": found.oldest, "newest": found.newest})
    if found.samples:
        typer.echo()
        show_list(found.samples, SAMPLE_COLUMNS, as_json=False)
    typer.echo(f"\n{retention.ONLY_OURS}")
