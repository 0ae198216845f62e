"""Calls of language models: what was reserved for each, what it cost, and what each day has cost.

**Caps without races.** A call is made only after `reserve_call` has added its highest possible cost to the day, in one
transaction with a row that records its start. The statement that adds to the day refuses to exceed the cap, and holds
the day's row until the commit; so however many workers reserve at once, on either database, their sum stays under the
cap. `end_call` replaces the reservation with the real cost. If a process dies between the two, the reservation counts
as the cost, since the real one is unknown; `fail_left_calls` later marks such a call as failed.

Calls about mail of a backfill are charged to that, under its own cap (store/backfill_spend.py), and not to the day.

In state `answered` the answer was a decision; in `refused` it was not (but was paid for); in `failed` there was none.
Costs are in millionths of a dollar, and days are those of UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

from postroom.core.backfill.estimate import TokenUse
from postroom.core.errors import BudgetSpent
from postroom.core.lifecycle import MODEL_CALL, ModelCallState
from postroom.core.money import MICROS_PER_CENT
from postroom.store.backfill_spend import BackfillCharge, Held, reserving, settling
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows

# More than any call may take: its time-out is at most ten minutes.
LEFT_AFTER = timedelta(minutes=15)
MEASURED = 1000
FEWEST_MEASURED = 20
LEFT_BEHIND = "the process ended during the call; what was reserved counts as its cost"


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call about to be made. `reserve_micros` is the most it can cost."""

    id: UUID
    account_id: UUID
    message_id: UUID
    provider: str
    model: str
    prompt_version: str
    reserve_micros: int
    backfill: BackfillCharge | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a day, and all calls about one message, may cost."""

    day_micros: int
    message_micros: int


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended. Without a cost the reservation counts, since the provider's charge is unknown."""

    state: ModelCallState
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None
    latency_ms: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as it is shown."""

    id: UUID
    account_id: UUID
    message_id: UUID
    provider: str
    model: str
    prompt_version: str
    state: ModelCallState
    input_tokens: int
    output_tokens: int
    reserved_micros: int
    cost_micros: int | None
    latency_ms: int | None
    error: str | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class DaySpend:
    """The cost of a day so far, including reservations, and the number of calls started."""

    day: str
    micros: int
    calls: int


def day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def next_day(now: datetime) -> datetime:
    """When the next day's budget begins."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)


@transaction
def reserve_call(call: NewCall, caps: Caps, now: datetime) -> Script[Held | None]:
    """Add the most the call can cost to the day, and record its start. Raises BudgetSpent.

    Returns why a call about mail of a backfill is not made, if that has reached its own cap or was stopped.
    """
    day, backfill = day_of(now), call.backfill
    if backfill is not None:
        if (held := (yield from reserving(backfill, call.reserve_micros, now))) is not None:
            return held
    else:
        yield from _reserving_day(day, call, caps, now)
    # The day's row, or that of the backfill, is locked by now: no other call about this message is reserved meanwhile.
    [[spent]] = yield sql("sum_message_cost", call.message_id)
    if int(spent) + call.reserve_micros > caps.message_micros:
        cents = caps.message_micros / MICROS_PER_CENT
        raise BudgetSpent(
            f"one more call about this message could cost more than the {cents:g} cents of "
            "model.max_cents_per_message; raise it, or lower model.max_output_tokens"
        )
    yield sql(
        "insert_model_call",
        call.id,
        call.account_id,
        call.message_id,
        call.provider,
        call.model,
        call.prompt_version,
        day,
        call.reserve_micros,
        None if backfill is None else backfill.job_id,
        None if backfill is None else backfill.day,
        now,
    )
    return None


def _reserving_day(day: str, call: NewCall, caps: Caps, now: datetime) -> Script[None]:
    yield sql("open_model_day", day)
    added = yield sql("reserve_model_spend", day, call.reserve_micros, caps.day_micros)
    if not added:
        cents = caps.day_micros / MICROS_PER_CENT
        raise BudgetSpent(
            f"the language model's budget of {cents:g} cents for {day} is spent; calls continue at midnight UTC, or "
            "when model.max_cents_per_day is raised",
            next_day(now),
        )


@transaction
def end_call(id: UUID, end: CallEnd, now: datetime) -> Script[bool]:
    """End a started call, and replace the reservation with its real cost. False if it had ended before."""
    MODEL_CALL.check("started", end.state)
    rows = yield sql(
        "end_model_call",
        id,
        end.state,
        end.input_tokens,
        end.output_tokens,
        end.cost_micros,
        end.latency_ms,
        end.error,
        now,
    )
    if not rows:
        return False
    day, reserved, cost, job_id, backfill_day = rows[0]
    if job_id is not None:
        yield from settling(as_uuid(job_id), backfill_day, int(cost) - int(reserved), now)
    else:
        yield sql("settle_model_spend", day, int(cost) - int(reserved))
    return True


@transaction
def fail_left_calls(now: datetime) -> Script[int]:
    """Mark calls as failed that were started long ago and never ended. Their reservations stay spent."""
    return len((yield sql("fail_left_model_calls", now - LEFT_AFTER, LEFT_BEHIND, now)))


@query
def average_tokens() -> Script[TokenUse | None]:
    """The tokens sent and received for a message, on average of the last calls that made a decision; None without."""
    ((count, sent, received),) = yield sql("average_model_tokens", MEASURED)
    return None if count < FEWEST_MEASURED else TokenUse(round(sent), round(received), int(count))


@query
def calls_of(message_id: UUID) -> Script[list[CallView]]:
    """Every call about a message, oldest first."""
    return read_rows(CallView, (yield sql("select_model_calls_of", message_id)))


@query
def last_calls(most: int) -> Script[list[CallView]]:
    """The most recent calls, newest first."""
    return read_rows(CallView, (yield sql("select_last_model_calls", most)))


@query
def spend_of(day: str) -> Script[DaySpend]:
    """The cost of a day, such as `2026-11-15`; zero without calls."""
    rows = yield sql("select_model_spend", day)
    return read_first(DaySpend, rows, day=day) or DaySpend(day, 0, 0)
