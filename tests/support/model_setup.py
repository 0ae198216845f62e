"""A model behind real HTTP: a provider's stand-in, the real client, and a database that counts."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from postroom.core.rules.facts import MessageFacts
from postroom.settings.sections import ModelSettings
from postroom.store.actions.model_calls import CallView, DaySpend, calls_of, day_of, spend_of
from postroom.store.engine.database import Database
from postroom.store.mail.labels import LabelView
from postroom.store.rules.guidance import Direction
from postroom.triage.decide.model import Model, ModelAnswer, ModelRequest
from postroom.triage.decide.prompt import build_prompt
from postroom_sandbox.model_api import ModelApi, running_model_api
from support.clocks import ManualClock
from support.store.fault_cases_model import new_call
from support.store.job_setup import JobSetup

KEY = "sk-canary-0123456789abcdef"
NAMES = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}
LABELS = (LabelView("L1", "Receipts", "user", "bills", True), LabelView("L2", "Travel", "user", "", True))


class ModelSetup:
    """Everything a test does with a model of one provider."""

    def __init__(self, provider: str, url: str, api: ModelApi, database: Database, clock: ManualClock) -> None:
        self.provider = provider
        self.url = url
        self.api = api
        self.database = database
        self.clock = clock
        self.message_id = UUID(int=0)
        self.account_id = UUID(int=0)
        self.model = self.with_settings()

    async def store_message(self) -> None:
        call = await new_call(JobSetup(self.database, self.clock))
        self.message_id, self.account_id = call.message_id, call.account_id

    def with_settings(self, **changes: Any) -> Model:
        """A model whose settings differ by these from the usual ones."""
        return Model(self.database, self.settings(**changes), self.clock)

    def settings(self, **changes: Any) -> ModelSettings:
        base = f"{self.url}/v1" if self.provider == "openai" else self.url
        usual = {
            "provider": self.provider,
            "name": NAMES[self.provider],
            "base_url": base,
            "api_key": KEY,
            "timeout_s": 20,
            "max_cents_per_message": 100,
            "input_cents_per_million": 100,
            "output_cents_per_million": 500,
        }
        return ModelSettings.model_validate({**usual, **changes})

    def request(self, body: str = "Thanks.", subject: str = "Hello", *, labelled: bool = True) -> ModelRequest:
        headers = (("From", "ann@shop.example"), ("Subject", subject))
        facts = MessageFacts("ann@shop.example", subject, headers, frozenset(), body)
        directions = [Direction("Keep my inbox tidy.")]
        prompt = build_prompt(self.message_id, facts, directions, [], LABELS if labelled else ())
        return ModelRequest(self.account_id, self.message_id, prompt)

    async def decide(self, body: str = "Thanks.", model: Model | None = None) -> ModelAnswer:
        return await (model or self.model).decide(self.request(body))

    async def calls(self) -> list[CallView]:
        return await self.database.run(calls_of(self.message_id))

    async def spent(self) -> DaySpend:
        return await self.database.run(spend_of(day_of(self.clock())))

    async def states(self) -> list[str]:
        return [call.state for call in await self.calls()]


@asynccontextmanager
async def opened_model_setup(provider: str, database: Database, clock: ManualClock) -> AsyncGenerator[ModelSetup]:
    over = asyncio.Event()

    async def until_over(_: float) -> None:
        await over.wait()

    api = ModelApi(key=KEY, clock=clock, sleep=until_over)
    async with running_model_api(api) as url:
        setup = ModelSetup(provider, url, api, database, clock)
        await setup.store_message()
        try:
            yield setup
        finally:
            over.set()
            await setup.model.close()
