"""Requests that the provider refuses, because of the settings or of one mail; and the probe after a failure."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from postroom.core.errors import BadModelAnswer, BudgetSpent, ModelRefused, ModelUnavailable
from postroom.store.engine.database import Database
from postroom_sandbox.faults import Fault
from postroom_sandbox.model_api import Raw
from support.clocks import ManualClock
from support.model_setup import ModelSetup, opened_model_setup

CANARY = "kumquat-canary-77"


@pytest.fixture(params=["openai", "anthropic"])
async def setup(request: pytest.FixtureRequest, sqlite: Database, clock: ManualClock) -> AsyncIterator[ModelSetup]:
    async with opened_model_setup(request.param, sqlite, clock) as opened:
        yield opened


def refusing(status: int, said: str, code: str | None = None, kind: str = "invalid_request_error") -> Raw:
    error = {"type": kind, "message": f"{said} {CANARY}", "code": code}
    return Raw(orjson.dumps({"type": "error", "error": error}), status)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_mail_that_is_refused_where_others_were_answered_is_left_alone(setup: ModelSetup, status: int) -> None:
    await setup.decide()
    setup.api.say(refusing(status, "no"))
    with pytest.raises(BadModelAnswer, match=str(status)) as raised:
        await setup.decide()
    assert setup.api.requests == 2  # the same question would be refused again
    _, call = await setup.calls()
    assert (call.state, call.cost_micros, call.error) == ("failed", 0, str(raised.value))
    assert CANARY not in str(raised.value)


@pytest.mark.parametrize("status", [400, 422])
async def test_while_nothing_was_ever_answered_the_settings_are_taken_for_wrong(setup: ModelSetup, status: int) -> None:
    setup.api.say(refusing(status, "max_tokens is too large"))
    with pytest.raises(ModelRefused, match=rf"{status}.*model\.name"):
        await setup.decide()


@pytest.mark.parametrize(
    "raw",
    [
        refusing(400, "This model's maximum context length is 4097 tokens.", "context_length_exceeded"),
        refusing(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        refusing(400, "Output blocked by content filtering policy: content filter"),
        refusing(400, "Your request was rejected.", "content_policy_violation"),
        refusing(413, "Request exceeds the maximum size", kind="request_too_large"),
        refusing(400, "the request exceeds the available context size", kind="exceed_context_size_error"),
        refusing(500, "This model's maximum context length is 4097 tokens."),
    ],
)
async def test_a_refusal_for_content_or_length_is_of_the_mail_from_the_first_call(setup: ModelSetup, raw: Raw) -> None:
    setup.api.say(raw)
    with pytest.raises(BadModelAnswer, match=r"content|long"):
        await setup.decide()
    assert (setup.api.requests, (await setup.spent()).micros) == (1, 0)


@pytest.mark.parametrize(
    ("raw", "remedy"),
    [
        (refusing(401, "Incorrect API key", kind="authentication_error"), r"model\.api_key"),
        (refusing(404, "no such model", "model_not_found", "not_found_error"), r"model\.name"),
        (refusing(400, "You have reached your specified API usage limits."), "top it up"),
        (refusing(429, "You exceeded your current quota.", "insufficient_quota"), "top it up"),
        (refusing(402, "Your balance is too low.", kind="billing_error"), "top it up"),
        (refusing(400, "API key not valid.", "invalid_api_key"), r"model\.api_key"),
        (refusing(400, "no such model", "model_not_found"), r"model\.name"),
    ],
)
async def test_a_key_a_model_or_credit_that_is_gone_is_never_taken_for_a_bad_mail(
    setup: ModelSetup, raw: Raw, remedy: str
) -> None:
    await setup.decide()
    setup.api.say(raw)
    with pytest.raises(ModelRefused, match=remedy):
        await setup.decide()


async def failed_and_rested(setup: ModelSetup) -> None:
    """The next call is the one that finds out whether the provider is back."""
    setup.api.faults.order(Fault(code=503, path="/v1/"))
    with pytest.raises(ModelUnavailable, match="503"):
        await setup.decide()
    setup.clock.forward(2)


async def test_when_the_one_who_asks_for_all_has_no_budget_the_next_one_asks(setup: ModelSetup) -> None:
    setup.model = setup.with_settings(max_cents_per_message=1.5)
    await failed_and_rested(setup)
    with pytest.raises(BudgetSpent):
        await setup.decide("\u4f60\u597d" * 4_000)
    assert (await setup.decide()).decision.action_type == "none"


async def test_when_the_one_who_asks_for_all_is_canceled_the_next_one_asks(setup: ModelSetup) -> None:
    await failed_and_rested(setup)
    setup.api.faults.order(Fault(kind="delay", path="/v1/", delay_s=30))
    asking = asyncio.create_task(setup.decide())
    while len(await setup.calls()) < 2:
        pass
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    setup.api.faults.clear()
    assert (await setup.decide()).decision.action_type == "none"


@pytest.mark.parametrize(("provider", "name"), [("openai", "gpt-4o"), ("anthropic", "claude-sonnet-4-6")])
async def test_a_mail_of_full_length_fits_the_cap_that_comes_with_postroom(
    provider: str, name: str, sqlite: Database, clock: ManualClock
) -> None:
    async with opened_model_setup(provider, sqlite, clock) as setup:
        published = {"input_cents_per_million": None, "output_cents_per_million": None}
        setup.model = setup.with_settings(name=name, max_cents_per_message=5, **published)
        await setup.decide("Dear Mara, as we said on Tuesday. " * 300)
        assert await setup.states() == ["answered"]
