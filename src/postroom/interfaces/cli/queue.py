"""`postroom queue`: show what waits in the queues, and replay past events."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.moments import read_moment
from postroom.interfaces.cli.session import Session, command_group

if TYPE_CHECKING:
    from postroom.core.queue.queues import Queues
    from postroom.settings.reading import Settings

app = command_group("Show the queues; replay past events.")

STATS_COLUMNS = ("queue", "tier", "waiting", "leased", "oldest_waiting_at", "streak", "guard")
KEPT_COLUMNS = ("queue", "tier", "state", "messages")
PEEK_COLUMNS = ("message_id", "tier", "state", "attempts", "accepted_at", "channel", "kind", "text")
LONGEST_TEXT = 60

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue, such as gateway.")]


@app.command()
def stats(
    session: Session,
    kept: Annotated[
        bool, typer.Option("--kept", help="Count every stored message by state, including ended ones.")
    ] = False,
) -> None:
    """Show what waits in every queue, tier by tier, and how close each tier is to its guard."""
    from postroom.operations.jobs.queues import count_kept, queue_stats

    settings = session.settings
    if kept:
        session.show_list(session.call(count_kept, _queues(settings)), KEPT_COLUMNS)
        return
    found = session.call(queue_stats, _queues(settings))
    rows = [{"queue": each.queue, **asdict(tier)} for each in found for tier in each.tiers]
    session.show_list(rows, STATS_COLUMNS)


@app.command()
def peek(
    session: Session,
    queue: Queue,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="At most this many.")] = 10,
) -> None:
    """Show the first messages that wait in a queue, without leasing them."""
    from postroom.operations.jobs.queues import peek

    settings = session.settings
    found = session.call(peek, _queues(settings), queue, limit)
    rows = [asdict(each) if session.as_json else {**asdict(each), "text": _beginning(each.envelope)} for each in found]
    session.show_list(rows, PEEK_COLUMNS)


@app.command()
def replay(
    session: Session,
    queue: Queue,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Start: 2h, 3d, or a time with offset.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="End, in the same forms; default: now.")
    ] = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only events of this kind; repeatable.")] = None,
    id_: Annotated[list[UUID] | None, typer.Option("--id", help="Only this message; repeatable.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many, oldest first.")] = 1000,
) -> None:
    """Queue past messages once more, as copies that name their originals. The audit log records who asked."""
    from postroom.operations.jobs.queues import replay

    if since is None and not id_:
        raise BadInput("--since", "is missing", "say where to start, such as --since 2h, or name messages with --id")
    now = datetime.now(UTC)
    start = read_moment("--since", since, now, ahead=False) if since is not None else now - timedelta(days=3650)
    end = read_moment("--until", until, now, ahead=False) if until is not None else None
    settings = session.settings
    copies = session.act(
        replay, _queues(settings), queue, since=start, until=end, kinds=kind or (), ids=id_ or (), most=limit
    )
    row = {"queue": queue, "replayed": len(copies), "ids": copies}
    session.show_line(row, f"queued once more in {queue}: {len(copies)}")


def _queues(settings: "Settings") -> "Queues":
    from postroom.settings.queues import queues_of

    return queues_of(settings.queues, settings.routes)


def _beginning(envelope: dict[str, Any]) -> str:
    text = " ".join(str(envelope["payload"]["normalized_text"]).split())
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
