"""`postroom model`: the language model in use, its cost, and every call."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer

from postroom.core.days import zone_named
from postroom.core.money import MICROS_PER_CENT
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.rules.model import CallView, ModelStatus, list_calls, model_prices, model_status
from postroom.settings.sections import ModelSettings

app = command_group("Show the language model in use, what it costs, and what it was asked.")

COLUMNS = (
    "started_at",
    "message_id",
    "model",
    "state",
    "input_tokens",
    "output_tokens",
    "cost_cents",
    "latency_ms",
    "error",
)
NO_MODEL = "no model: only rules decide; mail that matches none stays where it is"


@app.command()
def status(session: Session) -> None:
    """Show which model decides, what it sees of a message, its budget, and what it has cost today."""
    settings = session.settings
    if settings.model.provider == "none":
        session.show_line({"configured": False, "says": NO_MODEL}, NO_MODEL)
        return
    found = session.call(model_status, settings.model, zone=zone_named(settings.time_zone))
    session.show_one(_row(settings.model, found))


@app.command()
def calls(
    session: Session,
    message: Annotated[
        UUID | None, typer.Option("--message", metavar="ID", help="Only calls about this message, oldest first.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many, newest first.")] = 50,
) -> None:
    """List the calls to the model: tokens, cost in US cents, duration and errors."""
    found = session.call(list_calls, message, limit)
    session.show_list([_call(each) for each in found], COLUMNS)


def _row(settings: ModelSettings, status: ModelStatus) -> dict[str, object]:
    prices = model_prices(settings)
    return {
        "configured": True,
        "provider": settings.provider,
        "model": settings.name,
        "base_url": settings.base_url,
        "mode": settings.mode,
        **({"problem": prices} if isinstance(prices, str) else asdict(prices)),
        "spent_today_cents": status.spent_today_cents,
        "calls_today": status.calls_today,
        "left_today_cents": status.left_today_cents,
        "max_cents_per_day": settings.max_cents_per_day,
        "max_cents_per_message": settings.max_cents_per_message,
        "next_budget_at": status.next_budget_at,
        "shares_ended": [asdict(each) for each in status.ended],
    }


def _call(view: CallView) -> dict[str, object]:
    """Return one call; while it has not ended, its cost is what was reserved."""
    row = asdict(view)
    reserved, cost = row.pop("reserved_micros"), row.pop("cost_micros")
    return {**row, "cost_cents": (reserved if cost is None else cost) / MICROS_PER_CENT}
