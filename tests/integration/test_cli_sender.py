"""`postroom tenant` and `postroom sender`: what they show, what they refuse, and that no password is shown."""

import asyncio
import io
from datetime import UTC, datetime, timedelta

import pytest

from postroom.core.errors import BadInput
from postroom.operations.outbound.senders import WantedSender
from postroom.operations.outbound.tenants import checked_domain, checked_name, checked_weight
from postroom.store.engine.opening import open_database
from postroom.store.outbound.senders import SenderLogin, sender_by_login
from postroom.vault.passwords import is_password
from support.shell import Shell

SECRET = "correct horse battery"


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


async def login_of(shell: Shell, username: str) -> SenderLogin | None:
    database = await open_database(shell.folder / "postroom-data")
    try:
        return await database.run(sender_by_login(username))
    finally:
        await database.close()


# tenants


def test_a_tenant_is_added_before_the_first_start_weighed_paused_and_resumed(shell: Shell) -> None:
    assert shell("tenant", "add", "Acme", "--domain", "Acme.example", "--domain", "acme.test", "--weight", "2") == 0
    assert shell.out == "acme  active, weight 2\n"
    assert shell("tenant", "weight", "acme", "0.5", "--json") == 0
    assert shell.json()[0]["weight"] == 0.5
    assert shell("tenant", "pause", "acme", "--reason", "unpaid") == 0
    assert shell("tenant", "show", "acme", "--json") == 0
    (shown,) = shell.json()
    assert (shown["domains"], shown["state"], shown["state_reason"]) == (
        ["acme.example", "acme.test"],
        "paused",
        "unpaid",
    )
    assert shell("tenant", "resume", "acme") == 0
    assert shell("tenant", "list") == 0
    assert "acme.example, acme.test" in shell.out
    assert shell("audit", "list", "--json") == 0
    assert [entry["action"] for entry in shell.json()] == [
        "tenant.resume",
        "tenant.pause",
        "tenant.weight",
        "tenant.add",
    ]


def test_a_tenant_that_is_taken_or_unknown_is_refused(shell: Shell) -> None:
    assert shell("tenant", "add", "acme") == 0
    assert shell("tenant", "add", "acme") == 2
    assert "there is already a tenant acme" in shell.err
    assert shell("tenant", "show", "nobody") == 1
    assert "there is no tenant nobody; `postroom tenant list` lists them" in shell.err
    assert shell("tenant", "weight", "acme", "0") == 2
    assert "use a number from 0.01 to 100" in shell.err


@pytest.mark.parametrize("name", ["", "two words", "../x", "system", "x" * 129, "a\nb"])
def test_a_name_that_cannot_be_a_tenants_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        checked_name(name)


@pytest.mark.parametrize("domain", ["", "a b", "a@b", "[127.0.0.1]", "system", "x." * 200])
def test_what_is_no_domain_is_refused(domain: str) -> None:
    with pytest.raises(BadInput):
        checked_domain(domain)


@pytest.mark.parametrize("weight", [0.0, -1.0, 101.0, float("nan"), float("inf")])
def test_a_weight_has_bounds(weight: float) -> None:
    with pytest.raises(BadInput):
        checked_weight(weight)


# senders


def test_a_sender_has_a_password_that_no_command_shows(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, f"{SECRET}\r\n")
    assert shell("sender", "add", "Ada@example.com", "--plan", "team", "--limit", "1000", "--password") == 0
    assert shell.out == "ada@example.com  added to the tenant example.com, plan team\n"
    shown = ""
    for arguments in (("sender", "list"), ("sender", "show", "ada@example.com"), ("audit", "list")):
        for more in ((), ("--json",)):
            assert shell(*arguments, *more) == 0
            shown += shell.out + shell.err
    assert "argon2" not in shown
    assert "correct horse" not in shown
    typed(monkeypatch, "another long secret\n")
    assert shell("sender", "password", "ada@example.com", "--json") == 0
    assert shell.json() == [{"username": "ada@example.com", "result": "password set"}]
    login = asyncio.run(login_of(shell, "ada@example.com"))
    assert login is not None
    assert login.password_hash is not None
    assert is_password("another long secret", login.password_hash)
    assert (login.addresses, login.daily_limit) == (("ada@example.com",), 1000)


def test_a_password_is_asked_for_twice_at_a_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def prompt(_text: str, **options: object) -> str:
        asked.append(options)
        return SECRET

    typed(monkeypatch, "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", prompt)
    assert shell("sender", "add", "ada@example.com", "--password") == 0
    assert asked == [{"hide_input": True, "confirmation_prompt": "Once more", "err": True}]


@pytest.mark.parametrize(("text", "problem"), [("", "has no line left"), ("short\n", "has 5 characters")])
def test_a_missing_or_short_password_is_refused_and_nobody_is_added(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    typed(monkeypatch, text)
    assert shell("sender", "add", "ada@example.com", "--password") == 2
    assert problem in shell.err
    assert shell("tenant", "add", "acme") == 0
    assert shell("sender", "list", "--json") == 0
    assert shell.json() == []


def test_a_sender_is_throttled_released_disabled_and_enabled(shell: Shell) -> None:
    assert shell("sender", "add", "ada", "--domain", "example.com", "--tenant", "acme") == 0
    begun = datetime.now(UTC)
    assert shell("sender", "throttle", "ada", "--until", "2h", "--reason", "a complaint", "--json") == 0
    assert shell("sender", "show", "ada", "--json") == 0
    (shown,) = shell.json()
    assert (shown["lane"], shown["throttle_reason"], shown["addresses"]) == (
        "throttled",
        "a complaint",
        ["*@example.com"],
    )
    span = datetime.fromisoformat(shown["throttled_until"]) - begun
    assert timedelta(hours=2) <= span < timedelta(hours=3)
    assert shell("sender", "release", "ada") == 0
    assert shell.out == "ada is released: its mail goes on, and what was counted is forgotten.\n"
    assert shell("sender", "release", "ada") == 0
    assert shell.out == "ada was not throttled.\n"
    for command, results in (
        ("disable", ("is disabled", "was disabled before")),
        ("enable", ("is enabled", "was enabled before")),
    ):
        for result in results:
            assert shell("sender", command, "ada") == 0
            assert shell.out == f"ada {result}.\n"
    assert shell("sender", "list", "--tenant", "acme") == 0
    assert "ada" in shell.out
    assert shell("sender", "list", "--tenant", "other", "--json") == 0
    assert shell.out == ""


def test_a_throttle_that_is_over_and_an_unknown_sender_are_refused(shell: Shell) -> None:
    assert shell("sender", "add", "ada@example.com") == 0
    assert shell("sender", "throttle", "ada@example.com", "--until", "2020-01-01T00:00:00Z") == 2
    assert "is over" in shell.err
    assert shell("sender", "show", "nobody") == 1
    assert "there is no sender nobody; `postroom sender list` lists them" in shell.err


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (WantedSender("ada"), "domain"),
        (WantedSender("two words", "example.com"), "username"),
        (WantedSender("system", "example.com"), "username"),
        (WantedSender("ada@example.com", plan="taem"), "plan"),
        (WantedSender("ada@example.com", daily_limit=0), "limit"),
        (WantedSender("ada@example.com", weight=0), "weight"),
        (WantedSender("ada@example.com", addresses=["**@example.com"]), "address"),
        (WantedSender("ada@example.com", tenant="two words"), "tenant"),
    ],
)
def test_what_a_sender_cannot_have_is_named(wanted: WantedSender, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        wanted.checked()
    assert refused.value.field == field
    assert refused.value.remedy
