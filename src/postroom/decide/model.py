"""Asks a language model what is to be done with one message, within the budget, and writes down every call.

A call is reserved before it is made and settled after it (store/model_calls.py). An answer that is no decision is asked
for once more, with what was wrong; after the second the message is left where it is: a model that talks in circles, or
mail that makes it do so, costs two calls and no more. Nothing else is tried again here.

    ModelUnavailable    the job is tried again, after the provider's own waiting time
    ModelRefused        the job waits for other settings, and says which to mend; a start of Postroom releases it, and
                        so does the first answer, which shows that the settings are right
    BudgetSpent         the job waits until the next day; when only a setting helps, the message is left where it is
    BadModelAnswer      the message is left where it is; also when the provider refuses this one mail, unanswered
"""

import asyncio
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import orjson
import structlog

from postroom.core.errors import (
    BadModelAnswer,
    BudgetSpent,
    JobError,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Parked,
    Retryable,
)
from postroom.core.lifecycle import ModelCallState
from postroom.core.money import MICROS_PER_CENT
from postroom.core.rules.model_decision import ModelDecision, decision_schema, read_decision
from postroom.decide.model_circuit_breaker import CircuitBreaker
from postroom.decide.model_prices import Prices, most_tokens, prices_of
from postroom.decide.model_replies import CallFailed, Client, Reply
from postroom.decide.prompt import Prompt
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import unpark
from postroom.store.model_calls import CallEnd, Caps, NewCall, end_call, reserve_call

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

log = structlog.get_logger()

TRIES = 2
# Jobs that only other settings of the model can help wait under this key.
WAITING = "model"
LONGEST_PAUSE = timedelta(minutes=5)
# What a provider adds of its own to a request.
EXTRA_TOKENS = 500


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is to be decided, and what the model is told about it."""

    account_id: UUID
    message_id: UUID
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A decision, by whom it was made, and what it took: the sum of the tries."""

    decision: ModelDecision
    usage: Usage
    model: str
    prompt_version: str
    latency_ms: int


def connect(settings: "ModelSettings") -> Client:
    """Takes seconds the first time, for what is imported."""
    client = importlib.import_module("postroom.decide.model_client")
    return client.ProviderClient(settings)


class Model:
    """The model of the settings. Without one configured there is no Model: see `configured_model`."""

    def __init__(
        self,
        database: Database,
        settings: "ModelSettings",
        clock: Clock = wall_clock,
        connect: "Callable[[ModelSettings], Client]" = connect,
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._connect = connect
        self._client: Client | None = None
        self._prices: Prices | None = None
        self._opening = asyncio.Lock()
        self._breaker = CircuitBreaker(timedelta(seconds=settings.timeout_s))
        self._has_answered = False
        self._refused_untried = False
        self._caps = Caps(
            int(settings.max_cents_per_day * MICROS_PER_CENT), int(settings.max_cents_per_message * MICROS_PER_CENT)
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def decide(self, request: ModelRequest) -> ModelAnswer:
        """What the model decides about the message. Raises a ModelError when it decides nothing."""
        client, prices = await self._opened()
        probe = self._breaker.before_asking(self._clock())
        try:
            return await self._decided(request, client, prices)
        finally:
            self._breaker.after_asking(probe)

    async def _decided(self, request: ModelRequest, client: Client, prices: Prices) -> ModelAnswer:
        problem, tokens, latency_ms = "", Usage(0, 0), 0
        others_wait = self._refused_untried
        for _ in range(TRIES):
            call = await self._reserve(request, problem, prices)
            began = time.monotonic()
            try:
                reply = await client.ask(request.prompt.system, self._told(request, problem), request.prompt.labels)
            except CallFailed as failed:
                problem = await self._failed(call, failed, began)
                continue
            await self._answered(others_wait)
            latency_ms += _ms_since(began)
            tokens = Usage(tokens.input_tokens + reply.input_tokens, tokens.output_tokens + reply.output_tokens)
            try:
                decision = read_decision(reply.arguments(), request.prompt.labels)
            except BadModelAnswer as error:
                problem = str(error)
                await self._end(call, self._paid(reply, "refused", prices, began, problem))
                continue
            await self._end(call, self._paid(reply, "answered", prices, began))
            return ModelAnswer(decision, tokens, reply.model, request.prompt.version, latency_ms)
        raise BadModelAnswer(
            f"the model gave no usable answer in {TRIES} tries, and the message is left alone: {problem}"
        )

    async def _opened(self) -> tuple[Client, Prices]:
        """In a thread, since importing the libraries takes seconds in which other jobs have to go on."""
        async with self._opening:
            if self._prices is None:
                self._prices = await asyncio.to_thread(prices_of, self._settings)
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect, self._settings)
            return self._client, self._prices

    def _told(self, request: ModelRequest, problem: str) -> str:
        """The problem quotes nothing of the first answer, which mail may have dictated."""
        if not problem:
            return request.prompt.user
        return (
            f"{request.prompt.user}\n\nYour last answer could not be used: {problem}. Call the tool as it is described."
        )

    async def _reserve(self, request: ModelRequest, problem: str, prices: Prices) -> NewCall:
        schema = orjson.dumps(decision_schema(("",))).decode()  # with one label of no length: the names are the user's
        labels = orjson.dumps(request.prompt.labels).decode()
        sent = EXTRA_TOKENS + most_tokens(request.prompt.system + schema, self._told(request, problem) + labels)
        call = NewCall(
            new_id(),
            request.account_id,
            request.message_id,
            self._settings.provider,
            self._settings.name or "",
            request.prompt.version,
            prices.cost(sent, self._settings.max_output_tokens),
        )
        await self._database.run(reserve_call(call, self._caps, self._clock()))
        return call

    async def _answered(self, others_wait: bool) -> None:
        """`others_wait`: before this call began, the settings were taken for wrong, which they are not."""
        self._breaker.after_an_answer()
        self._has_answered = True
        if others_wait and self._refused_untried:
            self._refused_untried = False
            await release_waiting(self._database, self._clock())

    async def _failed(self, call: NewCall, failed: CallFailed, began: float) -> str:
        """Writes it down. Raises what it means, unless it may be asked again at once: then returns the problem."""
        cost = None if failed.charged else 0
        # Without a charge nothing was answered, and nothing else would be to the same question.
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

    def _paid(
        self, reply: Reply, state: ModelCallState, prices: Prices, began: float, error: str | None = None
    ) -> CallEnd:
        """A server that counts nothing has used nobody knows what: then what was reserved counts."""
        counted = reply.input_tokens > 0 or reply.output_tokens > 0
        cost = prices.cost(reply.input_tokens, reply.output_tokens) if counted else None
        return CallEnd(state, reply.input_tokens, reply.output_tokens, cost, _ms_since(began), error)

    async def _end(self, call: NewCall, end: CallEnd) -> None:
        await self._database.run(end_call(call.id, end, self._clock()))
        log.info("model.called", call=str(call.id), state=end.state, latency_ms=end.latency_ms)


async def release_waiting(database: Database, now: datetime) -> None:
    """Jobs that waited for other settings go on: settings are read when a process starts."""
    await database.run(unpark(WAITING, now))


def configured_model(database: Database, settings: "ModelSettings", clock: Clock = wall_clock) -> Model | None:
    """The model, or None when none is configured: then rules alone decide."""
    return None if settings.provider == "none" else Model(database, settings, clock)


def job_error(error: ModelError, now: datetime, attempts: int = 0) -> JobError | None:
    """How a job ends for which the model decided nothing; None when it goes on and leaves the message where it is.

    A provider that names a short time again and again would use up all attempts in minutes: hence a time that grows.
    """
    match error:
        case ModelUnavailable():
            grown = min(LONGEST_PAUSE, timedelta(seconds=2 ** min(attempts, 10)))
            return Retryable(str(error), None if error.after is None else max(error.after, grown))
        case ModelRefused():
            return Parked(WAITING, str(error))
        case BudgetSpent() if error.until is not None:
            return Retryable(str(error), error.until - now)
        case _:
            return None


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
