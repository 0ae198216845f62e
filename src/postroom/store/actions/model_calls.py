"""Calls of language models: what was reserved for each, what it cost, and what each day has cost.

**Caps without races.** A call is made only after `reserve_call` has added its highest possible cost to the day, in one
transaction with a row that records its start. The statement that adds to the day refuses to exceed the cap, and holds
the day's row until the commit; so however many workers reserve at once, on either database, their sum stays under the
cap. `end_call` replaces the reservation with the real cost. If a process dies between the two, the reservation counts
as the cost, since the real one is unknown; `fail_left_calls` later marks such a call as failed.

Calls about mail of a backfill are charged to that, under its own cap, and not to the day (`store/backfill/`).

**Shares.** Within the day, a sender, a domain and a tier have shares (core/budget_shares.py). They are summed up over
the calls of the day while its row is held, so the same holds for them. What waits for a share is recorded. If only
calls in progress stand in the way, which may cost less than was reserved, the caller comes back soon.

In state `answered` the answer was a decision; in `refused` it was not (but was paid for); in `failed` there was none.
Costs are in millionths of a dollar, and days are those of the owner.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from uuid import UUID

from postroom.core.backfill.estimate import TokenUse
from postroom.core.budget_shares import BudgetShares, Share, ShareKind, Spender, shares_of
from postroom.core.days import day_in, next_day
from postroom.core.errors import BudgetSpent
from postroom.core.lifecycle import MODEL_CALL, ModelCallState
from postroom.core.money import MICROS_PER_CENT
from postroom.core.queue.envelope import PolicyTier
from postroom.store.backfill.backfill_spend import BackfillCharge, Held, reserving, settling
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows

# More than any call may take: its time-out is at most ten minutes.
LEFT_AFTER = timedelta(minutes=15)
MEASURED = 1000
FEWEST_MEASURED = 20
IN_PROGRESS = timedelta(seconds=10)
"""When to come back if calls in progress hold what is left."""
SHARES_KEPT = timedelta(days=7)
LEFT_BEHIND = "the process ended during the call; what was reserved counts as its cost"


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call about to be made. `reserved_micros` is the most it can cost."""

    id: UUID
    account_id: UUID
    message_id: UUID
    provider: str
    model: str
    prompt_version: str
    reserved_micros: int
    backfill: BackfillCharge | None = None
    spender: Spender | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a day, and all calls about one message, may cost; the shares of the day, and its time zone."""

    day_micros: int
    message_micros: int
    shares: BudgetShares | None = None
    zone: tzinfo = UTC


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


@dataclass(frozen=True, slots=True)
class EndedShare:
    """A share of a day that has ended: a sender and the tier of mail that waits for it, what was spent of it, and how
    many messages wait.
    """

    kind: ShareKind
    sender: str
    policy_tier: PolicyTier
    spent_micros: int
    cap_micros: int
    messages: int
    first_at: datetime


def day_of(now: datetime, zone: tzinfo = UTC) -> str:
    return day_in(now, zone).isoformat()


@transaction
def reserve_call(call: NewCall, caps: Caps, now: datetime) -> Script[Held | Share | None]:
    """Add the most the call can cost to the day, and record its start. Raises BudgetSpent.

    Returns why the call is not made, if a backfill has reached its own cap or was stopped, or if a share has ended.
    """
    day, backfill = day_of(now, caps.zone), call.backfill
    if backfill is not None:
        if (held := (yield from reserving(backfill, call.reserved_micros, now))) is not None:
            return held
    elif (ended := (yield from _reserving_day(day, call, caps, now))) is not None:
        return ended
    # The day's row, or that of the backfill, is locked by now: no other call about this message is reserved meanwhile.
    [[spent]] = yield sql("sum_message_cost", call.message_id)
    if int(spent) + call.reserved_micros > caps.message_micros:
        cents = caps.message_micros / MICROS_PER_CENT
        raise BudgetSpent(
            f"one more call about this message could cost more than the {cents:g} cents of "
            "model.max_cents_per_message; raise it, or lower model.max_output_tokens"
        )
    spender = call.spender if backfill is None else None
    yield fill(
        "insert_model_call",
        call,
        day=day,
        backfill_job_id=None if backfill is None else backfill.job_id,
        backfill_day=None if backfill is None else backfill.day,
        share_sender=None if spender is None else spender.sender,
        share_domain=None if spender is None else spender.domain,
        now=now,
    )
    return None


def _reserving_day(day: str, call: NewCall, caps: Caps, now: datetime) -> Script[Share | None]:
    yield sql("open_model_day", day)
    ((spent,),) = yield sql("lock_model_day", day)
    if call.reserved_micros:
        ((held,),) = yield sql("sum_held", day)
        whole = _Spent(int(spent) - int(held), int(held))
        if whole.exceeds(caps.day_micros, call.reserved_micros):
            _come_back_if_held(whole, caps.day_micros, call, now)
            raise _day_is_spent(day, caps, now)
        if (ended := (yield from _ended_share(day, call, caps, whole, now))) is not None:
            return ended
    yield sql("reserve_model_spend", day, call.reserved_micros, caps.day_micros)
    return None


class _Spent(NamedTuple):
    """The cost of ended calls, and what is reserved for those in progress."""

    settled: int
    held: int

    def exceeds(self, cap: int, more: int) -> bool:
        return self.settled + self.held + more > cap


def _day_is_spent(day: str, caps: Caps, now: datetime) -> BudgetSpent:
    cents = caps.day_micros / MICROS_PER_CENT
    return BudgetSpent(
        f"the language model's budget of {cents:g} cents for {day} is spent; calls continue at midnight, or when "
        "model.max_cents_per_day is raised",
        next_day(now, caps.zone),
    )


def _come_back_if_held(spent: _Spent, cap: int, call: NewCall, now: datetime) -> None:
    """Raise BudgetSpent until soon, if the calls in progress may leave enough."""
    if spent.held and not _Spent(spent.settled, 0).exceeds(cap, call.reserved_micros):
        raise BudgetSpent("calls in progress hold what is left of the language model's budget", now + IN_PROGRESS)


def _ended_share(day: str, call: NewCall, caps: Caps, whole: _Spent, now: datetime) -> Script[Share | None]:
    """Return the first share that has no room for the call, and record that its message waits for it."""
    if caps.shares is None or call.spender is None:
        return None
    for share in shares_of(call.spender, caps.shares, caps.day_micros):
        spent = whole if share.kind == "tier" else (yield from _spent_of(day, share))
        if any(spent) and spent.exceeds(share.cap_micros, call.reserved_micros):
            _come_back_if_held(spent, share.cap_micros, call, now)
            yield sql("upsert_model_wait", call.message_id, day, *share[:2], spent.settled, share.cap_micros, now)
            return share
    return None


def _spent_of(day: str, share: Share) -> Script[_Spent]:
    statement = "sum_sender_share" if share.kind == "sender" else "sum_domain_share"
    ((settled, held),) = yield sql(statement, day, share.key)
    return _Spent(int(settled), int(held))


@transaction
def end_call(id: UUID, end: CallEnd, now: datetime) -> Script[bool]:
    """End a started call, and replace the reservation with its real cost. False if it had ended before."""
    MODEL_CALL.check("started", end.state)
    rows = yield fill("end_model_call", end, id=id, now=now)
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


@transaction
def forget_shares(now: datetime) -> Script[int]:
    """Forget whose shares calls have used, and what waited, a week later."""
    before = day_of(now - SHARES_KEPT)
    waits = yield sql("delete_model_waits", before)
    return len(waits) + len((yield sql("forget_model_spenders", before)))


@query
def ended_shares(day: str) -> Script[list[EndedShare]]:
    """The shares of a day for which messages wait, or have waited; those with most messages first."""
    return read_rows(EndedShare, (yield sql("select_ended_shares", day)))


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
