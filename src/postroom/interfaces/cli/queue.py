"""`postroom queue`: show what waits in the queues, and replay past events."""

from dataclasses import asdict
from typing import Annotated

from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.jobs.queues import count_kept, queue_stats
from postroom.operations.operation import Argument

app = command_group("Show the queues; replay past events.")

STATS_COLUMNS = ("queue", "tier", "waiting", "leased", "oldest_waiting_at", "streak", "guard")
KEPT_COLUMNS = ("queue", "tier", "state", "messages")


@app.command()
def stats(
    session: Session,
    kept: Annotated[bool, Argument("Count every stored message by state, including ended ones.")] = False,
) -> None:
    """Show what waits in every queue, tier by tier, and how close each tier is to its guard."""
    if kept:
        session.show_list(session.ask(count_kept), KEPT_COLUMNS)
        return
    found = session.ask(queue_stats).queues
    session.show_list([{"queue": each.queue, **asdict(tier)} for each in found for tier in each.tiers], STATS_COLUMNS)


add_commands(app, "queue", "jobs.queues")
