"""`postroom model`: whether a language model decides, what it may cost and has cost, and every call of it."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import run_transaction
from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings
    from postroom.store.model_calls import CallView, DaySpend

app = command_group("See whether a language model decides, what it costs, and what it was asked.")

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
NO_MODEL = "no model: rules alone decide, and mail that no rule matches stays where it is"


@app.command()
def status(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show which model decides, what it is shown of a mail, what it may cost, and what it has cost today."""
    from postroom.store.model_calls import day_of, next_day, spend_of

    settings = settings_for(data_dir)
    if settings.model.provider == "none":
        show_json({"configured": False, "says": NO_MODEL}) if as_json else typer.echo(NO_MODEL)
        return
    now = datetime.now(UTC)
    spent = run_transaction(application_of(context), settings, spend_of(day_of(now)))
    row = {**_row(settings.model, spent), "next_budget_at": next_day(now)}
    show_json(row) if as_json else show_one(row)


@app.command()
def calls(
    context: typer.Context,
    message: Annotated[
        UUID | None, typer.Option("--message", metavar="ID", help="Only those about this message, oldest first.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many, newest first.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List the calls of the model: tokens, cost in US cents, how long they took, and what went wrong."""
    from postroom.store.model_calls import calls_of, last_calls

    transaction = last_calls(limit) if message is None else calls_of(message)
    found = run_transaction(application_of(context), settings_for(data_dir), transaction)
    show_list([_call(call) for call in found], COLUMNS, as_json=as_json)


def _row(settings: "ModelSettings", spent: "DaySpend") -> dict[str, object]:
    spent_cents = spent.micros / MICROS_PER_CENT
    return {
        "configured": True,
        "provider": settings.provider,
        "model": settings.name,
        "base_url": settings.base_url,
        "mode": settings.mode,
        **_prices(settings),
        "spent_today_cents": spent_cents,
        "calls_today": spent.calls,
        "left_today_cents": max(0, settings.max_cents_per_day - spent_cents),
        "max_cents_per_day": settings.max_cents_per_day,
        "max_cents_per_message": settings.max_cents_per_message,
    }


def _prices(settings: "ModelSettings") -> dict[str, object]:
    """In US cents for a million tokens; a price that is not known is why the model is not asked."""
    from postroom.decide.model_prices import prices_of

    try:
        prices = prices_of(settings)
    except ModelRefused as error:
        return {"problem": str(error)}
    return {
        "input_cents_per_million": prices.input_micros / MICROS_PER_CENT,
        "output_cents_per_million": prices.output_micros / MICROS_PER_CENT,
    }


def _call(call: "CallView") -> dict[str, object]:
    """What was reserved is the cost of a call that has not ended."""
    row = asdict(call)
    reserved, cost = row.pop("reserved_micros"), row.pop("cost_micros")
    return {**row, "cost_cents": (reserved if cost is None else cost) / MICROS_PER_CENT}
