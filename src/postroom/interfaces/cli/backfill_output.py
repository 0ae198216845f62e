"""How `postroom backfill` shows estimates, jobs and their progress."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from postroom.core.backfill.standing import Standing
from postroom.interfaces.cli.output import show_json, show_one
from postroom.interfaces.cli.progress import drawn_bar
from postroom.operations.backfill.backfills import job_row
from postroom.words.backfill import cents, dollars, estimated_length, length

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postroom.core.backfill.job import BackfillJob, FoundMail
    from postroom.interfaces.cli.session import Session
    from postroom.operations.backfill.backfill_estimate import BackfillOutcome, MadeEstimate, RangeForm
    from postroom.operations.backfill.backfill_progress import BackfillDetail


def estimate_row(made: "MadeEstimate") -> dict[str, object]:
    """An estimate as JSON."""
    new = made.backfill
    return {
        "estimate_id": made.id,
        "endpoint_identity": new.endpoint_identity,
        "target_categories": list(new.target_categories),
        "date_from": new.date_from,
        "date_to": new.date_to,
        "rate_limit_per_hour": new.rate_limit_per_hour,
        "daily_cost_cap_cents": new.daily_cost_cap_cents,
        **asdict(made.form),
    }


def estimate_lines(made: "MadeEstimate") -> dict[str, object]:
    """An estimate as a person reads it."""
    new, form = made.backfill, made.form
    naive, on_demand, cost = form.naive, form.on_demand, form.cost_cents
    found = ", ".join(f"{name} {count.about:,}" for name, count in form.categories.items())
    cap = cents(new.daily_cost_cap_cents)
    at_rate, at_quota = form.hours_at_rate, form.hours_at_quota
    return {
        "mailbox": new.endpoint_identity,
        "what": f"{', '.join(new.target_categories)}, from {new.date_from} to {new.date_to}",
        "in_the_window": f"{form.total.about:,} messages",
        "to_read": f"{form.to_read.expected:,} messages ({found})",
        "ingested": _spread(form.ingested),
        "read_by_a_model": "none, since no model is set"
        if form.basis.input_price_micros is None
        else _spread(form.classified),
        "cost": f"{cents(cost.expected)}, from {cents(cost.low)} to {cents(cost.high)}",
        "instead_of": f"{cents(naive.cost_cents)} for everything ({form.saved_percent} % saved), or "
        f"{cents(on_demand.cost_cents)} for 200 searches ({on_demand.saved_percent} % saved)",
        "time": f"About {estimated_length(at_rate)} at {new.rate_limit_per_hour:,} messages an hour"
        + (f"; the quota alone would allow it in {estimated_length(at_quota)}" if at_quota else ""),
        "days": f"{form.days:,}" + (f", since a day may cost {cap}" if form.days_at_cap == form.days > 1 else ""),
        "based_on": "; ".join(form.notes),
    }


def show_backfill(session: "Session", found: "BackfillDetail") -> None:
    if session.as_json:
        mail = [each._asdict() for each in found.found]
        show_json({**job_row(found.line.job), "estimated": _comparison(found.outcome), "found": mail})
    else:
        show_one(_lines(found))


def _lines(found: "BackfillDetail") -> dict[str, object]:
    """A job as a person reads it."""
    job, outcome = found.line.job, found.outcome
    mode = ["background" if job.mode == "background" else "batch"]
    mode += ["continues by itself after a capped day"] if job.resume_daily else []
    mode += ["decisions are carried out" if job.acts else "decisions are only recorded"]
    categories = ", ".join(f"{name} {count:,}" for name, count in job.categories.items())
    row: dict[str, object] = {
        "id": job.id,
        "status": job.status,
        "mailbox": job.endpoint_identity,
        "what": f"{', '.join(job.target_categories)}, from {job.date_from} to {job.date_to}",
        "mode": "; ".join(mode),
        "limits": f"{job.rate_limit_per_hour:,} messages an hour, {cents(job.daily_cost_cap_cents)} a day",
        "progress": progress_line(job, found.line.standing, bar=False),
        "ingested": f"{job.rows_processed:,}" + (f" ({categories})" if categories else ""),
        "found": "; ".join(_found_lines(found.found)) or None,
        "skipped": f"{job.rows_skipped:,}, of which {job.rows_failed:,} failed",
        "waiting_for_a_decision": job.messages_waiting,
        "spent": f"{dollars(job.spent_micros)}, today {dollars(job.spent_today_micros)}",
        "expected": f"{dollars(job.expected_micros)} more for the messages that wait",
        "error": job.error,
        "created": job.created_at,
        "started": job.started_at,
        "ended": job.completed_at,
    }
    if (compared := _comparison(outcome)) is not None:
        row["estimated"] = (
            f"{compared['ingested']:,} ingested (now {outcome.rows_processed:,}), {compared['classified']:,} read by a "
            f"model (now {outcome.read_by_model:,}), {dollars(compared['cost_micros'])} "
            f"(now {dollars(outcome.spent_micros)})"
        )
    return row


def _found_lines(mail: "Sequence[FoundMail]") -> "Iterator[str]":
    """Each category with its years: `finance 2025: 12, 2024: 30`."""
    for name in sorted({each.category for each in mail}):
        years = ", ".join(f"{each.year}: {each.messages:,}" for each in mail if each.category == name)
        yield f"{name} {years}"


def progress_line(job: "BackfillJob", at: Standing, *, bar: bool = True) -> str:
    """How far a job is, in one line."""
    parts = [drawn_bar(at.share, at.percent) if bar else f"{at.percent} %"]
    parts.append(f"{at.read:,} read" if at.expected is None else f"{at.read:,} of about {at.expected:,} read")
    parts.append(f"{at.per_hour:,.0f} an hour")
    today = f"today {dollars(job.spent_today_micros)} of {cents(job.daily_cost_cap_cents)}"
    expected = f", {dollars(job.expected_micros)} expected" if job.expected_micros else ""
    parts.append(f"{dollars(job.spent_micros)} spent{expected}, {today}")
    if at.left:
        parts.append(f"about {length(at.left)} left")
    return "  ".join([*parts, job.status])


def ended_line(job: "BackfillJob") -> str:
    """The remedy for a job that does not go on by itself."""
    resume = f"`postroom backfill resume {job.id}` continues it"
    match job.status:
        case "completed":
            waiting = f"; {job.messages_waiting:,} messages wait for a decision" if job.messages_waiting else ""
            return f"Completed: {job.rows_processed:,} ingested for {dollars(job.spent_micros)}{waiting}."
        case "cancelled":
            return f"Cancelled: {job.rows_processed:,} messages were ingested, and stay."
        case "cost_capped":
            return f"The cap of {cents(job.daily_cost_cap_cents)} a day is reached; tomorrow, {resume}."
        case "error":
            from postroom.telemetry.logs import one_line

            return f"It failed: {one_line(job.error or 'no reason was given')}; {resume}."
        case _:
            return f"It is {job.status}; {resume}."


def _spread(of: "RangeForm") -> str:
    return f"{of.expected:,} messages, from {of.low:,} to {of.high:,}"


def _comparison(outcome: "BackfillOutcome") -> dict[str, int] | None:
    if outcome.estimate is None:
        return None
    names = ("to_read", "ingested", "classified", "cost_micros")
    return {name: int(outcome.estimate[name]["expected"]) for name in names}
