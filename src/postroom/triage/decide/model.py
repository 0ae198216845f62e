"""Asks a language model what to do with one message, within the budget, and records every call.

The cost of a call is reserved before it and settled after it (`model_calls.py`). If the answer is not a decision,
the model is asked once more, with what was wrong. After a second bad answer the message is left alone: a confused
model, or mail that confuses it, costs two calls and no more. Nothing else is retried here. At most
`model.concurrency` calls are made at once; the others wait for their turn.

    ModelUnavailable    the job is retried, after the provider's own waiting time
    ModelRefused        the job is parked until the settings are fixed, and says which; a start of Postroom releases
                        it, and so does the first answer, which shows that the settings are right
    BudgetSpent         the job is parked until the next day, or until calls in progress have ended; when only a
                        setting helps, the message is left alone
    ShareSpent          the same; after two days the message is left alone
    BackfillHeld        the job is parked until the next day, or until the backfill is resumed; if that was canceled,
                        the message is left alone
    BadModelAnswer      the message is left alone; also when the provider refuses this one mail
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import structlog

from postroom.core.budget_shares import BudgetShares, Share, Spender, why_share_ended
from postroom.core.days import day_in, next_day
from postroom.core.errors import (
    BackfillHeld,
    BadModelAnswer,
    BudgetSpent,
    JobError,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Parked,
    Retryable,
    ShareSpent,
)
from postroom.core.lifecycle import ModelCallState
from postroom.core.money import MICROS_PER_CENT
from postroom.core.rules.model_decision import ModelDecision, decision_schema, read_decision
from postroom.store.actions.model_calls import CallEnd, Caps, NewCall, end_call, reserve_call
from postroom.store.backfill.backfill_spend import BackfillCharge, Held
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.jobs import unpark
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.decide.model_circuit_breaker import CircuitBreaker
from postroom.triage.decide.model_prices import Prices, most_tokens, prices_of
from postroom.triage.decide.model_replies import CallFailed, Client, Reply
from postroom.triage.decide.prompt import Prompt
from postroom.words.problems import HELD_BACKFILL

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

log = structlog.get_logger()

TRIES = 2
# Jobs are parked under this key until the model's settings are fixed.
WAITING = "model"
# Jobs are parked under this key until there is budget again.
BUDGET = "model:budget"
LONGEST_PAUSE = timedelta(minutes=5)
UTC = ZoneInfo("UTC")
# Allowance for what a provider adds to a request.
EXTRA_TOKENS = 500


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The message to decide about, and its prompt."""

    account_id: UUID
    message_id: UUID
    prompt: Prompt
    backfill_job_id: UUID | None = None
    spender: Spender | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A decision, the model that made it, and its cost: the sum of all tries."""

    decision: ModelDecision
    usage: Usage
    model: str
    prompt_version: str
    latency_ms: int


def connect(settings: "ModelSettings") -> Client:
    """Open a client."""
    from postroom.triage.decide.model_client import ProviderClient  # an HTTP client, which most commands do not need

    return ProviderClient(settings)


class Model:
    """The configured model. Without one there is no Model: see `configured_model`."""

    def __init__(
        self,
        database: Database,
        settings: "ModelSettings",
        clock: Clock = wall_clock,
        zone: ZoneInfo = UTC,
        day_zone: tzinfo = UTC,
    ) -> None:
        """`zone` is that of the days of a backfill, `day_zone` that of the owner's day."""
        self._database = database
        self._settings = settings
        self._clock = clock
        self._zone = zone
        self._client: Client | None = None
        self._prices: Prices | None = None
        self._opening = asyncio.Lock()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._breaker = CircuitBreaker(timedelta(seconds=settings.timeout_s))
        self._has_answered = False
        self._refused_untried = False
        self._caps = _caps_of(settings, day_zone)

    def limit(self, settings: "ModelSettings", day_zone: tzinfo) -> bool:
        """Keep to the limits of these settings from now on; return whether they are others than before."""
        before, self._caps = self._caps, _caps_of(settings, day_zone)
        return before != self._caps

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def decide(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model to decide about the message. Raises a ModelError when it makes no decision."""
        client, prices = await self._open()
        # The wait for a slot is over before the time of the call begins and before anything is reserved for it.
        async with self._slots:
            probe = self._breaker.before_asking(self._clock())
            try:
                return await self._decide(request, client, prices)
            finally:
                self._breaker.after_asking(probe)

    async def _decide(self, request: ModelRequest, client: Client, prices: Prices) -> ModelAnswer:
        problem, tokens, latency_ms = "", Usage(0, 0), 0
        others_wait = self._refused_untried
        for _ in range(TRIES):
            call = await self._reserve(request, problem, prices)
            began = time.monotonic()
            try:
                prompt = request.prompt
                reply = await client.ask(prompt.system, self._user_prompt(request, problem), prompt.labels)
            except CallFailed as failed:
                problem = await self._record_failure(call, failed, began)
                continue
            await self._on_answer(others_wait)
            latency_ms += _ms_since(began)
            tokens = Usage(tokens.input_tokens + reply.input_tokens, tokens.output_tokens + reply.output_tokens)
            try:
                decision = read_decision(reply.arguments(), request.prompt.labels)
            except BadModelAnswer as error:
                problem = str(error)
                await self._end(call, self._call_end(reply, "refused", prices, began, problem))
                continue
            await self._end(call, self._call_end(reply, "answered", prices, began))
            return ModelAnswer(decision, tokens, reply.model, request.prompt.version, latency_ms)
        raise BadModelAnswer(
            f"the model gave no usable answer in {TRIES} tries, and the message is left alone: {problem}"
        )

    async def _open(self) -> tuple[Client, Prices]:
        """The client and the prices, opened in a thread: importing the prices takes a third of a second."""
        async with self._opening:
            if self._prices is None:
                self._prices = await asyncio.to_thread(prices_of, self._settings)
            if self._client is None:
                self._client = await asyncio.to_thread(connect, self._settings)
            return self._client, self._prices

    def _user_prompt(self, request: ModelRequest, problem: str) -> str:
        """The prompt; on a second try with the problem, which never quotes the answer: mail may have dictated it."""
        if not problem:
            return request.prompt.user
        return (
            f"{request.prompt.user}\n\nYour last answer could not be used: {problem}. Call the tool as it is described."
        )

    async def _reserve(self, request: ModelRequest, problem: str, prices: Prices) -> NewCall:
        schema = orjson.dumps(decision_schema(("",))).decode()  # one empty label; the real names are counted below
        labels = orjson.dumps(request.prompt.labels).decode()
        sent = EXTRA_TOKENS + most_tokens(request.prompt.system + schema, self._user_prompt(request, problem) + labels)
        call = NewCall(
            new_id(),
            request.account_id,
            request.message_id,
            self._settings.provider,
            self._settings.name or "",
            request.prompt.version,
            prices.cost(sent, self._settings.max_output_tokens),
            self._charge(request.backfill_job_id),
            request.spender,
        )
        now = self._clock()
        held = await self._database.run(reserve_call(call, self._caps, now))
        if isinstance(held, Share) and request.spender is not None:
            raise ShareSpent(why_share_ended(held.kind, request.spender.tier), next_day(now, self._caps.zone))
        if isinstance(held, Held):
            raise BackfillHeld(HELD_BACKFILL[held.why], held.key)
        return call

    def _charge(self, backfill_job_id: UUID | None) -> BackfillCharge | None:
        if backfill_job_id is None:
            return None
        signed = Signature(new_id(), "process:classify", "worker")
        return BackfillCharge(backfill_job_id, day_in(self._clock(), self._zone).isoformat(), signed)

    async def _on_answer(self, others_wait: bool) -> None:
        """Release parked jobs. `others_wait`: when this call began, the settings were thought to be wrong."""
        self._breaker.after_an_answer()
        self._has_answered = True
        if others_wait and self._refused_untried:
            self._refused_untried = False
            await release_waiting(self._database, self._clock())

    async def _record_failure(self, call: NewCall, failed: CallFailed, began: float) -> str:
        """Record the failure and raise its error; or return the problem, if the model may be asked again at once."""
        cost = None if failed.charged else 0
        # Without a charge there was no answer, and the same question would get none either.
        ask_again = failed.charged and isinstance(failed.error, BadModelAnswer)
        state = "refused" if ask_again else "failed"
        if isinstance(failed.error, ModelRefused) and not self._has_answered:
            self._refused_untried = True
        await self._end(call, CallEnd(state, cost_micros=cost, latency_ms=_ms_since(began), error=str(failed.error)))
        if isinstance(failed.error, ModelUnavailable):
            self._breaker.after_failing(self._clock(), failed.error.after)
        else:
            self._breaker.after_an_answer()
        if ask_again:
            return str(failed.error)
        raise failed.error from None

    def _call_end(
        self, reply: Reply, state: ModelCallState, prices: Prices, began: float, error: str | None = None
    ) -> CallEnd:
        """The end of an answered call. If the server reports no usage, the reserved cost counts."""
        counted = reply.input_tokens > 0 or reply.output_tokens > 0
        cost = prices.cost(reply.input_tokens, reply.output_tokens) if counted else None
        return CallEnd(state, reply.input_tokens, reply.output_tokens, cost, _ms_since(began), error)

    async def _end(self, call: NewCall, end: CallEnd) -> None:
        await self._database.run(end_call(call.id, end, self._clock()))
        log.info("model.called", call=str(call.id), state=end.state, latency_ms=end.latency_ms)


def _caps_of(settings: "ModelSettings", day_zone: tzinfo) -> Caps:
    shares = BudgetShares(
        settings.sender_share, settings.domain_share, settings.kept_for_direct, settings.kept_for_contacts
    )
    day, message = settings.max_cents_per_day, settings.max_cents_per_message
    return Caps(int(day * MICROS_PER_CENT), int(message * MICROS_PER_CENT), shares, day_zone)


async def release_waiting(database: Database, now: datetime) -> None:
    """Release the jobs that waited for other settings, which are read when a process starts."""
    for key in (WAITING, BUDGET):
        await database.run(unpark(key, now))


def configured_model(
    database: Database,
    settings: "ModelSettings",
    clock: Clock = wall_clock,
    zone: ZoneInfo = UTC,
    day_zone: tzinfo = UTC,
) -> Model | None:
    """The model, or None when none is configured and rules alone decide."""
    return None if settings.provider == "none" else Model(database, settings, clock, zone=zone, day_zone=day_zone)


def job_error(error: ModelError, now: datetime, attempts: int = 0) -> JobError | None:
    """How a job ends when the model made no decision; None when it goes on and leaves the message alone.

    The pause grows with the attempts: a provider that keeps naming a short time would use them all up in minutes.
    """
    match error:
        case ModelUnavailable():
            grown = min(LONGEST_PAUSE, timedelta(seconds=2 ** min(attempts, 10)))
            return Retryable(str(error), None if error.after is None else max(error.after, grown))
        case ModelRefused():
            return Parked(WAITING, str(error))
        case BackfillHeld() if error.key is not None:
            return Parked(error.key, str(error))
        case BudgetSpent() if error.until is not None:
            return Parked(BUDGET, str(error), error.until - now)
        case _:
            return None


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
