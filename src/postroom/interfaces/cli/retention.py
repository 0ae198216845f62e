"""`postroom retention`: how long the content of mail is kept, and pruning what is past its time."""

from typing import TYPE_CHECKING

import typer

from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.output import show_json, show_list, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.mail import retention
from postroom.operations.mail.retention import PruneCounts, RetentionPolicy, RetentionPreview

if TYPE_CHECKING:
    from collections.abc import Mapping

app = command_group("Show how long mail is kept; prune what is past its time.")

MAILBOX = "Only Postroom's copy is pruned: mail in the mailbox itself is never touched."
SAMPLE_COLUMNS = ("stored_at", "ingestion_tier", "sender", "subject")


@app.command()
def show(session: Session) -> None:
    """Show the settings in effect, and whether mail is pruned under them every day."""
    policy = _policy(session)
    found = session.call(retention.status, policy)
    last = next((each for each in found.runs if not each.is_dry), None)
    row = {
        **_times(policy),
        "pruned_every_day": found.is_enabled,
        "previewed": found.was_previewed,
        "last_pruned_at": None if last is None else last.ended_at,
        "last_pruned_messages": None if last is None else last.messages,
    }
    session.show_one(row)
    if not session.as_json:
        if policy.shortest is not None and not found.is_enabled:
            step = "enable" if found.was_previewed else "preview"
            typer.echo(f"\nNothing is pruned automatically under these settings: see `postroom retention {step}`.")
        typer.echo(f"\n{MAILBOX}")


@app.command()
def preview(session: Session) -> None:
    """Show what would be pruned now, and change nothing. The counts are recorded; the samples are only shown."""
    found = session.act(retention.preview, _policy(session))
    if session.as_json:
        show_json({**_counts(found.counts), "oldest": found.oldest, "newest": found.newest})
    else:
        _print(found)


@app.command()
def prune(session: Session, yes: Yes = False) -> None:
    """Prune now: what would go is shown, and pruned when you confirm. It cannot be undone."""
    policy = _policy(session)
    if not yes:
        _print(session.act(retention.preview, policy))
        typer.confirm("Prune this?", abort=True)
    counts = session.act(retention.prune, policy)
    line = f"{counts.messages} messages pruned, {counts.held} held for now.\n{MAILBOX}"
    session.show_line(_counts(counts), line)


@app.command()
def enable(session: Session, yes: Yes = False) -> None:
    """Prune every day under these settings. When the settings change, this is asked for again."""
    policy = _policy(session)
    if not yes:
        show_one(_times(policy))
        typer.confirm("Prune every day under these settings?", abort=True)
    session.act(retention.enable, policy)
    session.show_result("retention", f"mail is pruned every day now. {MAILBOX}", key="name")


@app.command()
def disable(session: Session) -> None:
    """Prune nothing automatically any more."""
    ended = session.act(retention.disable)
    session.show_result("retention", "nothing is pruned automatically now" if ended else "was not enabled", key="name")


def _policy(session: Session) -> RetentionPolicy:
    from postroom.settings.retention import retention_policy

    return retention_policy(session.settings.retention)


def _times(policy: RetentionPolicy) -> "Mapping[str, object]":
    def days(count: int) -> str:
        return f"{count} days" if count else "for good"

    own = {f"category_{name}": days(count) for name, count in sorted(policy.categories.items())}
    return {"full": days(policy.full_days), "metadata": days(policy.metadata_days), **own}


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
    typer.echo(f"\n{MAILBOX}")
