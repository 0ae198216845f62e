"""`postroom model`: says clearly that no model is configured, or what it costs and every call."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from postroom.store.actions.model_calls import CallEnd, end_call, reserve_call
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from support.clocks import ManualClock
from support.shell import Shell
from support.store.fault_cases_model import CAPS, new_call
from support.store.job_setup import JobSetup


@pytest.fixture
def configured(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name, value in {
        "PROVIDER": "openai",
        "NAME": "gpt-4o-mini",
        "API_KEY": "sk-canary-0123456789",
        "MAX_CENTS_PER_DAY": "1.5",
    }.items():
        monkeypatch.setenv(f"POSTROOM_MODEL_{name}", value)
    return shell


def called(shell: Shell, count: int = 1) -> str:
    """Calls that were made today about one message, of which the first was answered; the message's id."""

    async def call() -> str:
        database = await open_database(shell.folder / "postroom-data", None)
        clock = ManualClock()
        clock.now = datetime.now(UTC)
        setup = JobSetup(database, clock)
        made = await new_call(setup)
        for number in range(count):
            each = replace(made, id=new_id())
            await database.run(reserve_call(each, CAPS, clock()))
            if number == 0:
                await database.run(end_call(each.id, CallEnd("answered", 900, 50, 1_200, 800), clock()))
        await database.close()
        return str(made.message_id)

    found = asyncio.run(call())
    shell.capture.readouterr()
    return found


def test_without_a_model_it_is_told_that_rules_alone_decide(shell: Shell) -> None:
    assert shell("model", "status") == 0
    assert shell.out == "no model: only rules decide; mail that matches none stays where it is\n"
    assert shell("model", "status", "--json") == 0
    assert shell.json()[0]["configured"] is False


def test_the_status_tells_the_model_its_prices_and_what_today_has_cost(configured: Shell) -> None:
    called(configured)
    assert configured("model", "status", "--json") == 0
    [row] = configured.json()
    assert (row["provider"], row["model"], row["mode"]) == ("openai", "gpt-4o-mini", "full")
    assert (row["input_cents_per_million"], row["output_cents_per_million"]) == (15.0, 60.0)
    assert (row["spent_today_cents"], row["calls_today"], row["left_today_cents"]) == (0.12, 1, 1.38)
    assert "canary" not in configured.out


def test_nothing_is_left_of_a_budget_that_was_overdrawn(configured: Shell) -> None:
    called(configured, 3)
    assert configured("model", "status", "--json") == 0
    [row] = configured.json()
    assert (row["spent_today_cents"], row["left_today_cents"]) == (2.12, 0)


def test_a_model_of_unknown_price_is_reported_with_the_settings_to_write(
    configured: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_MODEL_NAME", "my-own")
    called(configured)
    assert configured("model", "status") == 0
    assert "model.input_cents_per_million" in configured.out


def test_calls_are_listed_with_their_cost_the_newest_first(configured: Shell) -> None:
    message = called(configured, 2)
    assert configured("model", "calls", "--json") == 0
    newest, oldest = configured.json()
    assert (newest["state"], newest["cost_cents"], newest["ended_at"]) == ("started", 1.0, None)
    assert (oldest["state"], oldest["cost_cents"], oldest["input_tokens"]) == ("answered", 0.12, 900)
    assert configured("model", "calls", "--message", message, "--limit", "1") == 0
    assert len(configured.out.splitlines()) == 3
