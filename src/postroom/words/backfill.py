"""Words for backfills: their states, categories, money and lengths of time."""

from collections.abc import Mapping
from datetime import timedelta

from postroom.core.money import MICROS_PER_CENT

MICROS_PER_DOLLAR = 100 * MICROS_PER_CENT
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def dollars(micros: int) -> str:
    """Format an amount: `$3.72`; below a cent, so many digits that something is left."""
    amount = micros / MICROS_PER_DOLLAR
    return f"${amount:,.2f}" if amount >= 0.01 or not micros else f"${amount:.4f}"


def cents(amount: int) -> str:
    return dollars(amount * MICROS_PER_CENT)


def length(time: timedelta) -> str:
    """Format a length of time in the unit that suits it."""
    if time < HOUR:
        return f"{max(1, round(time / timedelta(minutes=1)))} min" if time else "0 min"
    return f"{time / HOUR:.1f} h" if time < 2 * DAY else f"{time / DAY:.1f} days"


def estimated_length(hours: float) -> str:
    """Write out about how long something takes: `33 minutes`, `2.5 hours`, `3 days`."""
    time = timedelta(hours=hours)
    if time < timedelta(minutes=1):
        return "a minute at most"
    unit, size = ("minute", HOUR / 60) if time < HOUR else ("hour", HOUR) if time < 2 * DAY else ("day", DAY)
    number = f"{time / size:.{0 if unit == 'minute' else 1}f}".removesuffix(".0")
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def price(micros: int, input_price_micros: int | None) -> str:
    """Say what a model costs: an amount, or why there is none."""
    if micros:
        return dollars(micros)
    return "free without a model" if input_price_micros is None else "free with this model"


def mailbox(endpoint_identity: str) -> str:
    """The address of a mailbox, from `gmail:user:ada@example.com`."""
    return endpoint_identity.rpartition(":")[2] or endpoint_identity


CATEGORY_WORDS = {
    "finance": "Finance",
    "health": "Health",
    "relationship": "People you write with",
    "travel": "Travel",
    "newsletters": "Newsletters",
}
WORDS: Mapping[str, object] = {
    "dollars": dollars,
    "cents": cents,
    "length": length,
    "estimated_length": estimated_length,
    "price": price,
    "mailbox": mailbox,
    "moods": {"active": "busy", "completed": "good", "cost_capped": "ask", "paused": "ask", "error": "bad"},
    "state_words": {
        "pending": "waits for its connector",
        "active": "at work",
        "paused": "paused",
        "cost_capped": "at the day's cap",
        "error": "failed",
        "completed": "completed",
        "cancelled": "canceled",
    },
    "category_words": CATEGORY_WORDS,
}
