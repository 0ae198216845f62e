"""When snoozed mail comes back: at a given time or after a span of time, at most a year from now."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from postroom.core.errors import BadInput

LONGEST = timedelta(days=365)
UNITS: Mapping[str, timedelta] = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
}
MOST_MINUTES = LONGEST / UNITS["minutes"]


def check_snooze(parameters: Mapping[str, Any]) -> None:
    """Check what does not depend on the current time: exactly one way of saying when, well formed."""
    has_until, has_amount = parameters.get("until") is not None, parameters.get("amount") is not None
    if has_until and (has_amount or parameters.get("units") is not None):
        raise BadInput(
            "parameters.until", "is given together with amount and units", "give either until, or amount and units"
        )
    if not has_until and not has_amount:
        raise BadInput("parameters.until", "is missing", "give a time in the future, or amount and units")
    if has_until:
        _moment(parameters["until"])
    else:
        _amount(parameters)


def wake_time(parameters: Mapping[str, Any], now: datetime) -> datetime:
    """When a message that is snoozed now comes back. Raises BadInput for a time that is past or too far away."""
    check_snooze(parameters)
    until = _moment(parameters["until"]) if parameters.get("until") is not None else now + _amount(parameters)
    if until <= now:
        raise BadInput("parameters.until", f"{until.isoformat()} is in the past", "choose a time in the future")
    if until > now + LONGEST:
        raise BadInput(
            "parameters.until", f"{until.isoformat()} is too far away", f"choose at most {LONGEST.days} days"
        )
    return until


def _moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise BadInput("parameters.until", "is not a text", "write it as 2027-01-31T08:00:00Z")
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise BadInput("parameters.until", f"{value} has no time zone", "add one, such as Z or +01:00")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput("parameters.until", "is not a time", "write it as 2027-01-31T08:00:00Z") from None


def _amount(parameters: Mapping[str, Any]) -> timedelta:
    amount, units = parameters.get("amount"), parameters.get("units")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount <= MOST_MINUTES:
        raise BadInput("parameters.amount", f"is {amount!r}", "use a number above 0")
    if not isinstance(units, str) or units not in UNITS:
        raise BadInput("parameters.units", f"is {units!r}", f"use one of {', '.join(UNITS)}")
    span = UNITS[units] * amount
    if span > LONGEST:
        raise BadInput(
            "parameters.amount", f"{amount:g} {units} is too far away", f"choose at most {LONGEST.days} days"
        )
    return span
