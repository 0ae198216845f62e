"""`postroom connector refused` and `retry`, `postroom account sync`: mail that was not ingested is listed and
retried."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.account_repair import repair_for
from postroom.mailboxes.following.refused import RefusedMail
from postroom.mailboxes.following.set_aside import ROUNDS, SetAside
from postroom.mailboxes.gmail.errors import ServerError
from postroom.mailboxes.gmail.oauth import GoogleAppRefused
from postroom.store.engine.database import Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from support.shell import Shell

ADA, BOB = "ada@example.com", "bob@example.com"
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)


@pytest.fixture
def folder(shell: Shell) -> Path:
    """Ada has an account, one message that was refused, and one that is set aside."""
    data = shell.folder / "postroom-data"

    async def account() -> None:
        database = await open_database(data, None)
        await database.run(keep_account(new_id(), "gmail", f"gmail:user:{ADA}", ADA, NOW))
        await database.close()

    asyncio.run(account())
    connector = data / "connectors" / f"gmail-{ADA}"
    RefusedMail(connector, lambda: NOW).remember("18c0", BadInput("payload", "is too large", "make it smaller"))
    aside = SetAside(connector, lambda: NOW)
    for _ in range(ROUNDS):
        aside.fail({"18c1": ServerError("messages.get", 503)})
    RefusedMail(data / "connectors" / f"gmail-{BOB}", lambda: NOW).remember("18c2", ValueError())
    return connector


def jobs(shell: Shell, type: str) -> list[dict[str, Any]]:
    assert shell("jobs", "list", "--type", type, "--json") == 0
    return shell.json()


def test_what_was_refused_and_what_is_set_aside_is_listed(shell: Shell, folder: Path) -> None:
    assert shell("connector", "refused", "--json") == 0
    first, second, third = shell.json()
    since, again_at = NOW.isoformat(), (NOW + timedelta(minutes=1)).isoformat()
    assert first == {
        "account": ADA,
        "message_id": "18c0",
        "state": "refused",
        "reason": "BadInput: payload",
        "since": since,
        "next_try_at": None,
    }
    assert (second["message_id"], second["state"], second["reason"]) == ("18c1", "set_aside", "ServerError: 503")
    assert (second["since"], second["next_try_at"]) == (since, again_at)
    assert third["account"] == BOB
    assert shell("connector", "refused") == 0
    assert shell.out.splitlines()[0].split()[:3] == ["ACCOUNT", "MESSAGE", "ID"]


def test_where_nothing_was_left_out_nothing_is_listed(shell: Shell) -> None:
    assert shell("connector", "refused", "--json") == 0
    assert shell.out == ""


def test_files_that_are_invalid_hide_no_others(shell: Shell, folder: Path) -> None:
    with (folder / "refused.jsonl").open("ab") as file:
        file.write(b'{"id": 1}\n[]\n{"id": "18c9", "reason": "x", "at": "yesterday"}\n{"id": "cut of')
    (folder / "set_aside.json").write_text('{"set_aside": [{"id": "18c1", "since": "2026-11-15"}], "failing": [1]}')
    assert shell("connector", "refused", "--json") == 0
    assert [each["message_id"] for each in shell.json()] == ["18c0", "18c9", "18c2"]


def test_all_of_an_account_are_asked_for_once_more(shell: Shell, folder: Path) -> None:
    assert shell("connector", "retry", "--account", ADA.upper(), "--all", "--json") == 0
    told = shell.json()
    assert [(each["message_id"], each["asked_before"]) for each in told] == [("18c0", False), ("18c1", False)]
    (asked,) = jobs(shell, "ingest.gmail")
    assert {each["job_id"] for each in told} == {asked["id"]}
    assert asked["payload"]["message_ids"] == ["18c0", "18c1"]
    assert shell("connector", "retry", "--account", ADA, "--all", "--json") == 0
    assert all(each["asked_before"] for each in shell.json())


def test_single_messages_are_asked_for_by_their_ids(shell: Shell, folder: Path) -> None:
    assert shell("connector", "retry", "--account", ADA, "--message", "18aa", "--message", "18bb") == 0
    assert [line.split()[0] for line in shell.out.splitlines()[1:]] == ["18aa", "18bb"]
    assert shell("connector", "retry", "--account", ADA, "--message", "18aa") == 0
    payloads = [each["payload"] for each in jobs(shell, "ingest.gmail")]
    assert sorted(str(each.get("message_id") or each["message_ids"]) for each in payloads) == [
        "18aa",
        "['18aa', '18bb']",
    ]


def test_asking_again_for_mail_and_syncing_is_audited(shell: Shell, folder: Path) -> None:
    assert shell("connector", "retry", "--account", ADA, "--all") == 0
    assert shell("account", "sync", ADA) == 0
    assert shell("audit", "list", "--json") == 0
    entries = [(row["action"], row["actor"].partition(":")[0]) for row in shell.json()]
    assert entries == [("account.sync", "cli"), ("account.retry_ingest", "cli")]


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ([], 2, "is missing, or combined with --all; give one of the two"),
        (["--all", "--message", "18c0"], 2, "is missing, or combined with --all; give one of the two"),
        (["--message", "../18c0"], 2, "is not the id of a message"),
        (["--account", BOB, "--all"], 1, "postroom account list"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    shell: Shell, folder: Path, options: list[str], code: int, told: str
) -> None:
    assert shell("connector", "retry", "--account", ADA, *options) == code
    assert told in shell.err
    assert jobs(shell, "ingest.gmail") == []


def test_nothing_is_asked_for_an_account_that_was_removed(shell: Shell, folder: Path) -> None:
    assert shell("account", "remove", ADA) == 0
    assert shell("connector", "retry", "--account", ADA, "--all") == 2
    assert "postroom account add gmail" in shell.err
    assert shell("account", "sync", ADA) == 2
    assert f"{ADA} was removed; run `postroom account add gmail --email {ADA}`" in shell.err


def test_a_look_at_a_mailbox_is_asked_for_once_at_a_time(shell: Shell, folder: Path) -> None:
    assert shell("account", "sync", ADA, "--json") == 0
    (first,) = shell.json()
    assert shell("account", "sync", ADA) == 0
    assert first["job_id"][-8:] in shell.out
    assert [each["id"] for each in jobs(shell, "history.sync.gmail")] == [first["job_id"]]


def test_a_mailbox_that_is_paused_is_not_looked_at_before_it_is_resumed(shell: Shell, folder: Path) -> None:
    assert shell("account", "pause", ADA) == 0
    assert shell("account", "sync", ADA) == 2
    assert f"{ADA} is paused; run `postroom account resume {ADA}` first" in shell.err
    assert shell("account", "resume", ADA) == 0
    assert len(jobs(shell, "history.sync.gmail")) == 1


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("Google ended it", f"needs your consent; run `postroom account add gmail --email {ADA}` first"),
        (
            repair_for(str(GoogleAppRefused("invalid_client")), ADA),
            "Google does not accept the app (invalid_client); check google.client_id and google.client_secret against "
            f"the app in the Google Cloud console, then run `postroom account resume {ADA}`",
        ),
    ],
)
def test_a_mailbox_that_cannot_be_opened_is_not_looked_at_before_what_helps_is_done(
    shell: Shell, folder: Path, reason: str, told: str
) -> None:
    async def lose() -> None:
        database = await open_database(shell.folder / "postroom-data", None)
        await database.run(_lost(reason))
        await database.close()

    asyncio.run(lose())
    assert shell("account", "sync", ADA) == 2
    assert told in shell.err


@transaction
def _lost(reason: str) -> Any:
    yield Text(f"UPDATE accounts SET state = 'needs_consent', state_reason = '{reason}'")
