"""Asking a model over real HTTP, through each provider's real client: decisions, faults, budgets, records."""

import asyncio
import logging
import re
import tracemalloc
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from postroom.core.errors import (
    BadModelAnswer,
    BudgetSpent,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Parked,
    Retryable,
)
from postroom.settings.sections import ModelSettings
from postroom.store.actions.model_calls import LEFT_AFTER, fail_left_calls
from postroom.store.engine.database import Database
from postroom.triage.decide.model import Usage, configured_model, job_error
from postroom.triage.decide.model_client import LONGEST_REPLY
from postroom.triage.decide.prompt import PROMPT_VERSION
from postroom_sandbox.faults import Fault, FaultKind
from postroom_sandbox.model_api import ModelApi, Raw, running_model_api
from postroom_sandbox.model_moods import FakeAnswer, FakeToolCall, decides
from support.clocks import ManualClock
from support.model_setup import KEY, ModelSetup, opened_model_setup

CANARY = "kumquat-canary-77"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(params=["openai", "anthropic"])
async def setup(request: pytest.FixtureRequest, sqlite: Database, clock: ManualClock) -> AsyncIterator[ModelSetup]:
    async with opened_model_setup(request.param, sqlite, clock) as opened:
        yield opened


async def test_a_decision_comes_back_and_the_call_is_kept(setup: ModelSetup) -> None:
    setup.api.say(FakeAnswer(decides("apply_label", 0.8, "a bill", label="Receipts").calls, tokens=(1_000, 100)))
    answer = await setup.decide()
    assert (answer.decision.action_type, answer.decision.parameters) == ("apply_label", {"label": "Receipts"})
    assert (answer.decision.confidence, answer.decision.rationale) == (0.8, "a bill")
    assert (answer.usage, answer.prompt_version) == (Usage(1_000, 100), PROMPT_VERSION)
    [call] = await setup.calls()
    assert (call.state, call.provider, call.model, call.prompt_version) == (
        "answered",
        setup.provider,
        answer.model,
        PROMPT_VERSION,
    )
    # 1,000 tokens at 100 cents a million and 100 at 500, in millionths of a dollar.
    assert (call.input_tokens, call.output_tokens, call.cost_micros) == (1_000, 100, 1_500)
    assert call.latency_ms is not None
    assert (await setup.spent()).micros == 1_500


async def test_the_model_is_forced_to_call_the_one_tool_at_a_low_temperature(setup: ModelSetup) -> None:
    await setup.decide()
    [asked] = setup.api.asked
    assert asked.forced
    assert (asked.tool, asked.labels) == ("record_decision", ("Receipts", "Travel"))
    assert asked.body["temperature"] == 0.2
    assert len(asked.body["tools"]) == 1
    assert "Keep my inbox tidy." in asked.user
    assert asked.system.startswith("You sort the mail")
    assert "Thanks." in asked.mail


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (FakeAnswer(text="I would archive this."), "not a call of record_decision"),
        (FakeAnswer(text="I cannot help with that.", refuses=True), "not a call of record_decision"),
        (FakeAnswer((FakeToolCall("{'not': json"),)), r"the arguments are not JSON|fields that do not exist"),
        (FakeAnswer((FakeToolCall("[1, 2]"),)), r"not an object|fields that do not exist"),
        (FakeAnswer((FakeToolCall({"action": "archive"}, "delete_everything"),)), "a tool that does not exist"),
        (FakeAnswer((*decides("archive").calls, *decides("trash").calls)), "calls 2 tools"),
        (FakeAnswer(decides("archive").calls, cut_off=True), "cut off"),
        (decides("archive", confidence=7), "confidence: is not from 0 to 1"),
        (decides("explode"), "action: is not one of"),
        (decides("forward", to="x@evil.example"), "action: is not one of"),
        (decides("apply_label", label="Invented"), "parameters.label"),
        (decides("auto_reply", text="x" * 200_000), r"longer than 65,536|more than 4000"),
    ],
)
async def test_a_bad_answer_is_asked_for_once_more_with_the_problem(
    setup: ModelSetup, answer: FakeAnswer, problem: str
) -> None:
    setup.api.say(answer, decides("star"))
    found = await setup.decide()
    assert found.decision.action_type == "star"
    assert await setup.states() == ["refused", "answered"]
    first, second = setup.api.asked
    assert "Your last answer could not be used: " in second.user
    assert second.user.startswith(first.user)
    kept = (await setup.calls())[0].error
    assert kept is not None
    assert re.search(problem, kept)
    assert kept in second.user


async def test_a_model_that_refuses_again_and_again_is_asked_twice(setup: ModelSetup) -> None:
    setup.api.say(*[FakeAnswer(text="I cannot help with that.", refuses=True)] * 10)
    with pytest.raises(
        BadModelAnswer, match=r"in 2 tries, and the message is left alone.*not a call of record_decision"
    ):
        await setup.decide()
    assert setup.api.requests == 2
    assert await setup.states() == ["refused", "refused"]
    assert (await setup.spent()).micros == sum(call.cost_micros or 0 for call in await setup.calls()) > 0


@pytest.mark.parametrize(
    "raw",
    [
        Raw(b""),
        Raw(b"\xff\xfe garbage"),
        Raw(b"<html>Sign in to the hotel</html>", headers={"Content-Type": "text/html"}),
        Raw(b"{}"),
        Raw(b"null"),
        Raw(b'[{"choices": 1}]'),
        Raw(b'{"choices": [], "content": [], "id": 7, "usage": "none"}'),
        Raw(b'{"choices": [{"message": 7}], "content": [{"type": 7}]}'),
        Raw(b"[" * 100_000),
    ],
)
async def test_garbage_is_a_bad_answer_and_no_crash(setup: ModelSetup, raw: Raw) -> None:
    setup.api.say(raw, raw)
    with pytest.raises(BadModelAnswer):
        await setup.decide()
    assert await setup.states() == ["refused", "refused"]


@pytest.mark.parametrize("headers", [JSON, {**JSON, "Content-Length": str(64 << 20)}])
async def test_an_answer_of_64_megabytes_is_given_up_early(setup: ModelSetup, headers: dict[str, str]) -> None:
    await setup.decide()  # whatever is loaded the first time is loaded
    setup.api.sent_bytes = 0
    piece = b" " * (1 << 16)
    setup.api.say(*[Raw(piece, headers=headers, repeat=1 << 10)] * 2)
    tracemalloc.start()
    with pytest.raises(BadModelAnswer, match=f"longer than {LONGEST_REPLY:,} bytes"):
        await setup.decide()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    assert setup.api.sent_bytes < 40 << 20


async def test_an_answer_that_unpacks_to_gigabytes_is_not_unpacked(setup: ModelSetup) -> None:
    setup.api.faults.order(Fault(kind="gzip_bomb", path="/v1/", times=2, size=64 << 20))
    with pytest.raises(BadModelAnswer, match="compressed"):
        await setup.decide()


@pytest.mark.parametrize(("code", "after"), [(429, 7), (500, None), (503, 120), (408, None), (529, None)])
async def test_a_provider_that_is_busy_or_broken_is_asked_again_later(
    setup: ModelSetup, code: int, after: int | None
) -> None:
    setup.api.faults.order(Fault(code=code, path="/v1/", retry_after=after))
    with pytest.raises(ModelUnavailable, match=str(code)) as raised:
        await setup.decide()
    assert raised.value.after == (None if after is None else timedelta(seconds=after))
    assert setup.api.requests == 1
    [call] = await setup.calls()
    assert (call.state, call.cost_micros) == ("failed", 0)
    assert (await setup.spent()).micros == 0


async def test_a_provider_may_not_send_us_away_for_longer_than_a_day(setup: ModelSetup) -> None:
    setup.api.faults.order(Fault(code=503, path="/v1/", retry_after=10**9))
    with pytest.raises(ModelUnavailable) as raised:
        await setup.decide()
    assert raised.value.after == timedelta(days=1)


@pytest.mark.parametrize("kind", ["reset", "truncate", "drop_reply"])
async def test_a_connection_that_breaks_is_tried_again_later(setup: ModelSetup, kind: FaultKind) -> None:
    setup.api.faults.order(Fault(kind=kind, path="/v1/"))
    with pytest.raises(ModelUnavailable, match=r"cannot be reached \(\w+\); check the network"):
        await setup.decide()
    assert await setup.states() == ["failed"]
    setup.clock.forward(2)
    assert (await setup.decide()).decision.action_type == "none"


async def test_a_provider_that_is_not_there_costs_nothing(setup: ModelSetup) -> None:
    model = setup.with_settings(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailable, match=r"http://127\.0\.0\.1:9/v1 cannot be reached"):
        await setup.decide(model=model)
    assert (await setup.spent()).micros == 0
    await model.close()


async def test_an_answer_that_does_not_come_is_given_up_and_counts_as_reserved(setup: ModelSetup) -> None:
    """The provider may have worked on it, and nobody knows for how much."""
    setup.api.faults.order(Fault(kind="delay", path="/v1/", delay_s=30))
    model = setup.with_settings(timeout_s=0.3)
    with pytest.raises(ModelUnavailable, match=r"within 0\.3 s \(model\.timeout_s\)"):
        await setup.decide(model=model)
    [call] = await setup.calls()
    assert (call.state, call.cost_micros) == ("failed", call.reserved_micros)
    await model.close()


async def test_a_provider_down_for_an_hour_is_asked_once_by_each_try_and_then_answers(setup: ModelSetup) -> None:
    setup.api.faults.order(Fault(code=503, path="/v1/", seconds=3600))
    for _ in range(12):
        with pytest.raises(ModelUnavailable):
            await setup.decide()
        setup.clock.forward(300)
    assert (await setup.decide()).decision.action_type == "none"
    assert setup.api.requests == 13
    assert (await setup.states()).count("failed") == 12


@pytest.mark.parametrize(
    ("code", "setting"), [(401, "model.api_key"), (403, "model.api_key"), (404, "model.name"), (400, "model.name")]
)
async def test_a_refusal_names_the_setting_to_fix(setup: ModelSetup, code: int, setting: str) -> None:
    setup.api.faults.order(Fault(code=code, path="/v1/"))
    with pytest.raises(ModelRefused, match=f"{code}.*{setting}"):
        await setup.decide()
    assert setup.api.requests == 1
    assert (await setup.spent()).micros == 0


async def test_a_wrong_key_is_refused_and_told_nowhere(setup: ModelSetup, caplog: pytest.LogCaptureFixture) -> None:
    model = setup.with_settings(api_key=f"{KEY}-wrong")
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelRefused, match=r"model\.api_key") as raised:
        await setup.decide(model=model)
    await model.close()
    [call] = await setup.calls()
    told = f"{raised.value!r} {raised.value.__cause__!r} {call} {caplog.text} {model!r}"
    assert "canary" not in told


async def test_an_unknown_model_is_refused_by_name(setup: ModelSetup) -> None:
    setup.api._models = frozenset({"another"})
    with pytest.raises(ModelRefused, match=r"there is no model '.*' at http.*model\.name"):
        await setup.decide()


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/elsewhere", "/v1/other"])
async def test_a_redirection_is_not_followed(setup: ModelSetup, place: str) -> None:
    setup.api.say(Raw(b"", 307, {"Location": place}))
    with pytest.raises(ModelRefused, match=r"redirects elsewhere \(307\)"):
        await setup.decide()
    assert setup.api.requests == 1


async def test_nothing_of_the_mail_or_the_key_is_logged_or_kept(
    setup: ModelSetup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    setup.api.say(decides(CANARY), decides("apply_label", label=CANARY))
    with pytest.raises(BadModelAnswer) as raised:
        await setup.decide(f"this is secret: {CANARY}")
    for fault in (Fault(code=500, path="/v1/"), Fault(kind="reset", path="/v1/")):
        setup.api.faults.order(fault)
        with pytest.raises(ModelUnavailable):
            await setup.decide(f"this is secret: {CANARY}")
        setup.clock.forward(60)
    told = f"{raised.value} {await setup.calls()} {caplog.text}"
    assert "canary" not in told


async def test_at_the_cap_of_the_day_no_call_is_made(setup: ModelSetup) -> None:
    model = setup.with_settings(max_cents_per_day=0.01)
    with pytest.raises(BudgetSpent, match=r"model\.max_cents_per_day") as raised:
        await setup.decide(model=model)
    assert raised.value.until == datetime(2026, 11, 16, tzinfo=UTC)
    assert (setup.api.requests, await setup.calls()) == (0, [])
    await model.close()


async def test_a_message_that_costs_too_much_is_not_asked_about_again(setup: ModelSetup) -> None:
    setup.api.say(*[FakeAnswer(text="Hm.", tokens=(1_000, 1_000))] * 3)
    model = setup.with_settings(max_cents_per_message=1.5)
    with pytest.raises(BadModelAnswer):
        await setup.decide(model=model)
    with pytest.raises(BudgetSpent, match=r"model\.max_cents_per_message") as raised:
        await setup.decide(model=model)
    assert raised.value.until is None
    assert setup.api.requests == 2
    await model.close()


async def test_what_was_reserved_is_more_than_what_it_costs(setup: ModelSetup) -> None:
    for body in ("Hello there, how are you? " * 400, "\u4f60\u597d\u4e16\u754c" * 2_000, "Zm9vYmFy" * 1_000):
        await setup.decide(body)
    for call in await setup.calls():
        assert (call.cost_micros or 0) < call.reserved_micros


async def test_a_server_that_counts_no_tokens_has_used_what_was_reserved(setup: ModelSetup) -> None:
    setup.api.say(FakeAnswer(decides("star").calls, tokens=(0, 0)))
    await setup.decide()
    [call] = await setup.calls()
    assert call.cost_micros == call.reserved_micros


async def test_an_answer_without_token_counts_is_a_decision_whose_reservation_counts(setup: ModelSetup) -> None:
    setup.api.say(FakeAnswer(decides("star").calls, has_usage=False))
    answer = await setup.decide()
    assert answer.decision.action_type == "star"
    [call] = await setup.calls()
    assert (call.state, call.cost_micros) == ("answered", call.reserved_micros)


class Slots:
    """A server that answers slowly, and counts how many requests it has at once."""

    def __init__(self) -> None:
        self.at_once = 0
        self.most = 0
        self.arrived = asyncio.Semaphore(0)
        self.over = asyncio.Event()

    async def hold(self, _seconds: float) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.arrived.release()
        await self.over.wait()
        self.at_once -= 1


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_calls_are_made_at_once_than_the_settings_say(
    setup: ModelSetup, sqlite: Database, clock: ManualClock, concurrency: int
) -> None:
    """The others wait without a reservation, so no time of theirs runs out and no attempt is used up."""
    slots = Slots()
    api = ModelApi(key=KEY, clock=clock, sleep=slots.hold)
    async with running_model_api(api) as url:
        base = f"{url}/v1" if setup.provider == "openai" else url
        model = setup.with_settings(concurrency=concurrency, base_url=base)
        api.faults.order(Fault(kind="delay", path="/v1/", delay_s=2, times=40))
        asking = [asyncio.create_task(setup.decide(model=model)) for _ in range(8)]
        for _ in range(concurrency):
            await slots.arrived.acquire()
        for _ in range(2_000):  # all of them would have arrived by then
            await asyncio.sleep(0)
        assert (slots.most, len(await setup.calls())) == (concurrency, concurrency)
        slots.over.set()
        assert len(await asyncio.gather(*asking)) == 8
        await model.close()
    assert await setup.states() == ["answered"] * 8


async def test_many_messages_at_once_share_one_client(setup: ModelSetup) -> None:
    answers = await asyncio.gather(*(setup.decide() for _ in range(10)))
    assert len(answers) == 10
    assert await setup.states() == ["answered"] * 10


async def test_without_a_model_in_the_settings_there_is_none(sqlite: Database) -> None:
    assert configured_model(sqlite, ModelSettings.model_validate({})) is None


async def test_a_model_of_unknown_price_is_not_asked_before_its_price_is_set(setup: ModelSetup) -> None:
    model = setup.with_settings(name="my-own", input_cents_per_million=None, output_cents_per_million=None)
    with pytest.raises(ModelRefused, match=r"'my-own' is not known.*model\.input_cents_per_million"):
        await setup.decide(model=model)
    assert setup.api.requests == 0


@pytest.mark.parametrize(
    ("error", "ending", "after"),
    [
        (ModelUnavailable("down", timedelta(seconds=9)), Retryable, timedelta(seconds=9)),
        (ModelUnavailable("down"), Retryable, None),
        (ModelRefused("the key"), Parked, None),
        (BudgetSpent("spent", datetime(2026, 11, 16, tzinfo=UTC)), Parked, timedelta(hours=16)),
    ],
)
def test_an_error_of_the_model_ends_the_job_in_its_way(
    error: ModelError, ending: type[Exception], after: timedelta | None, clock: ManualClock
) -> None:
    found = job_error(error, clock())
    assert type(found) is ending
    assert str(found) == str(error)
    assert getattr(found, "after", None) == after


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 9), (3, 9), (4, 16), (8, 256), (40, 300)])
def test_a_short_waiting_time_grows_with_the_attempts(attempts: int, seconds: int, clock: ManualClock) -> None:
    """So that the attempts of a job outlast an hour."""
    found = job_error(ModelUnavailable("busy", timedelta(seconds=9)), clock(), attempts)
    assert isinstance(found, Retryable)
    assert found.after == timedelta(seconds=seconds)


@pytest.mark.parametrize("error", [BadModelAnswer("no"), BudgetSpent("too dear")])
def test_some_errors_leave_the_message_where_it_is(error: ModelError, clock: ManualClock) -> None:
    assert job_error(error, clock()) is None


async def test_a_call_that_is_broken_off_stays_reserved_until_it_is_cleared_up(setup: ModelSetup) -> None:
    setup.api.faults.order(Fault(kind="delay", path="/v1/", delay_s=30))
    asking = asyncio.create_task(setup.decide())
    while not await setup.calls():
        pass
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await setup.states() == ["started"]
    setup.clock.forward(LEFT_AFTER.total_seconds() + 1)
    assert await setup.database.run(fail_left_calls(setup.clock())) == 1
    assert await setup.states() == ["failed"]


async def test_a_provider_that_fails_is_left_alone_and_then_asked_by_one(setup: ModelSetup) -> None:
    setup.api.faults.order(Fault(code=503, path="/v1/"))
    with pytest.raises(ModelUnavailable, match="503"):
        await setup.decide()
    for _ in range(5):
        with pytest.raises(ModelUnavailable, match="is left alone"):
            await setup.decide()
    assert (setup.api.requests, await setup.states()) == (1, ["failed"])
    setup.clock.forward(2)
    ends = await asyncio.gather(*(setup.decide() for _ in range(5)), return_exceptions=True)
    assert [isinstance(end, ModelUnavailable) for end in ends].count(False) == 1
    assert setup.api.requests == 2
    assert len(await asyncio.gather(*(setup.decide() for _ in range(5)))) == 5
