"""Google's quota as emulated: prices, limits, reasons, and counters that tests can read."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from postroom.mailboxes.gmail import terms
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import METHODS, PRICES
from postroom_sandbox.quota import NEW_PROJECT, Limits
from support.clocks import ManualClock
from support.sandbox import DOCUMENTED, OTHER, OWNER, Sandbox, running_sandbox

SMALL = Limits(per_user_minute=100)


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, limits=SMALL) as running:
        yield running


async def test_every_method_has_the_scopes_that_google_documents() -> None:
    for name, method in METHODS.items():
        scopes = {scope for scope in DOCUMENTED[name]["scopes"] if "addons" not in scope}
        assert set(method.scopes) == scopes, name
        assert DOCUMENTED[name]["path"] == f"gmail/v1/users/{{userId}}{method.path}"
        assert DOCUMENTED[name]["httpMethod"] == method.verb
        assert method.uploads == ("mediaUpload" in DOCUMENTED[name])


def test_the_methods_that_are_missing_are_settings_only() -> None:
    assert all(name.startswith("settings.") for name in DOCUMENTED.keys() - METHODS.keys())


@pytest.mark.parametrize(
    ("method", "units"),
    [
        ("messages.get", 20),
        ("messages.list", 5),
        ("messages.modify", 5),
        ("messages.batchModify", 50),
        ("messages.trash", 20),
        ("history.list", 2),
        ("labels.list", 1),
        ("messages.send", 100),
        ("drafts.create", 10),
        ("drafts.send", 100),
        ("messages.delete", 10),
    ],
)
def test_prices_are_googles(method: str, units: int) -> None:
    assert NEW_PROJECT.prices[method] == units
    assert NEW_PROJECT.per_user_minute == 6000


def test_our_client_reckons_with_the_same_prices() -> None:
    assert {name: PRICES[name] for name in terms.PRICES} == terms.PRICES


async def test_a_user_who_has_spent_their_minute_is_refused_until_it_has_passed(sandbox: Sandbox) -> None:
    for _ in range(20):
        await sandbox.json("GET", "/messages")
    answer = await sandbox.ask("GET", "/labels")
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["message"] == (
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' "
        "of service 'gmail.googleapis.com' for consumer 'project_number:1'."
    )
    assert error["errors"] == [{"message": error["message"], "domain": "usageLimits", "reason": "rateLimitExceeded"}]
    sandbox.clock.forward(60)
    await sandbox.json("GET", "/labels")


async def test_the_window_slides(sandbox: Sandbox) -> None:
    for _ in range(10):
        await sandbox.json("GET", "/messages")
    sandbox.clock.forward(30)
    for _ in range(10):
        await sandbox.json("GET", "/messages")
    sandbox.clock.forward(30)
    assert sandbox.emulator.quota.spent(OWNER) == 50
    for _ in range(10):
        await sandbox.json("GET", "/messages")
    assert (await sandbox.ask("GET", "/messages")).status_code == 403
    assert sandbox.emulator.quota.most_in_a_minute(OWNER) == 100


async def test_the_other_form_tells_when_to_come_back(sandbox: Sandbox) -> None:
    sandbox.emulator.quota.limits = replace(SMALL, user_refusal="429")
    for _ in range(20):
        await sandbox.json("GET", "/messages")
        sandbox.clock.forward(1)
    answer = await sandbox.ask("GET", "/messages")
    assert answer.status_code == 429
    assert answer.json()["error"]["message"] == "User-rate limit exceeded.  Retry after 2026-11-15T08:01:00.000Z"
    assert answer.json()["error"]["errors"][0]["reason"] == "rateLimitExceeded"


async def test_one_user_does_not_pay_for_another(sandbox: Sandbox, clock: ManualClock) -> None:
    sandbox.emulator.add(Mailbox(OTHER, sandbox.mailbox.rng, clock), "token-of-ida")
    for _ in range(20):
        await sandbox.json("GET", "/messages")
    assert (await sandbox.ask("GET", "/messages")).status_code == 403
    await sandbox.json("GET", "/messages", token="token-of-ida")


async def test_the_project_and_the_day_have_limits_too(sandbox: Sandbox) -> None:
    sandbox.emulator.quota.limits = Limits(per_project_minute=5)
    await sandbox.json("GET", "/messages")
    answer = await sandbox.ask("GET", "/labels")
    assert (answer.status_code, answer.json()["error"]["errors"][0]["reason"]) == (429, "rateLimitExceeded")
    sandbox.emulator.quota.limits = Limits(per_day=6)
    sandbox.clock.forward(3600)
    await sandbox.json("GET", "/labels")
    answer = await sandbox.ask("GET", "/labels")
    assert (answer.status_code, answer.json()["error"]["errors"][0]["reason"]) == (403, "dailyLimitExceeded")
    sandbox.clock.forward(86400)
    await sandbox.json("GET", "/labels")


async def test_counters_tell_what_was_asked_paid_and_refused(sandbox: Sandbox) -> None:
    for _ in range(21):
        await sandbox.ask("GET", "/messages")
    counters = sandbox.emulator.quota.counters
    assert counters.calls == {"messages.list": 21}
    assert counters.units == {"messages.list": 100}
    assert counters.refused == {"rateLimitExceeded": 1}
    assert counters.answers == {200: 20, 403: 1}
    shown = (await sandbox.raw("GET", "/sandbox/counters")).json()
    assert shown["totalCalls"] == 21
    assert shown["users"][OWNER] == {"spent": 100, "most": 100}
    await sandbox.raw("DELETE", "/sandbox/counters")
    assert sandbox.emulator.quota.counters.calls == {}
    await sandbox.json("GET", "/messages")


async def test_limits_and_prices_are_set_from_outside(sandbox: Sandbox) -> None:
    change = {"perUserMinute": 7, "prices": {"labels.list": 4}, "userRefusal": "429"}
    assert (await sandbox.raw("POST", "/sandbox/quota", json=change)).status_code == 200
    await sandbox.json("GET", "/labels")
    assert (await sandbox.ask("GET", "/labels")).status_code == 429
    await sandbox.raw("POST", "/sandbox/quota", json={"perUserMinute": None})
    await sandbox.json("GET", "/labels")
    wrong = await sandbox.raw("POST", "/sandbox/quota", json={"prices": {"labels.eat": 4}})
    assert wrong.status_code == 400
