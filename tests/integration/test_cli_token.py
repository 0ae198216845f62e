"""`postroom token` and `postroom audit`: a token is shown once, and everything done with it is audited."""

import asyncio
import getpass
import re
from datetime import UTC, datetime, timedelta

import pytest

from postroom.core.errors import BadInput
from postroom.core.moments import read_moment
from postroom.core.short_ids import short_id
from postroom.interfaces.cli.operator import operator_signature
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import Account, keep_account
from postroom.store.people.tokens import read_token
from support.shell import Shell, with_empty_database

TOKEN = re.compile(r"postroom_[0-9a-f]{32}_[\w-]{43}")
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)


def test_a_new_installation_can_have_a_token_before_its_first_start(shell: Shell):
    assert shell("token", "create", "--role", "agent") == 0
    assert TOKEN.fullmatch(shell.out.strip())
    assert "will not be shown again" in shell.err
    assert not TOKEN.search(shell.err)
    assert shell("migrate", "--check") == 0


def test_a_database_that_is_behind_is_not_migrated_on_the_side(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    from postroom.store.engine import migrate

    whole = migrate.migrations("sqlite")[0].text
    known = [migrate.Migration(1, "first", "SELECT 1")]
    monkeypatch.setattr(migrate, "migrations", lambda _dialect: tuple(known))  # type: ignore[reportUnknownLambdaType]
    assert shell("migrate") == 0
    known.append(migrate.Migration(2, "schema", whole))
    assert shell("token", "create", "--role", "agent") == 1
    assert "run `postroom migrate`" in shell.err
    assert shell.out == ""
    assert shell("migrate", "--check") == 1


def test_a_token_is_shown_once_and_listed_without_what_proves_it(shell: Shell):
    arguments = ("--role", "connector", "--identity", "gmail:user:a@b.example", "--name", "attic", "--expires", "30d")
    assert shell("token", "create", *arguments, "--json") == 0
    (made,) = shell.json()
    claimed = read_token(made["token"])
    assert claimed is not None
    assert str(claimed.id) == made["id"]
    assert shell("token", "list", "--json") == 0
    assert shell.json() == [{name: value for name, value in made.items() if name != "token"}]
    for arguments in (("token", "list"), ("token", "list", "--json"), ("audit", "list", "--json")):
        assert shell(*arguments) == 0
        assert made["id"][-8:] in shell.out
        assert claimed.secret_sha256 not in shell.out
        assert made["token"].split("_", 2)[2] not in shell.out
    span = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert span == timedelta(days=30)
    assert made["last_used_at"] is None


def test_a_token_is_revoked_and_revoking_it_again_is_harmless(shell: Shell):
    assert shell("token", "create", "--role", "admin", "--json") == 0
    id = shell.json()[0]["id"]
    assert shell("token", "revoke", id) == 0
    assert shell.out == f"{id[-8:]}  revoked\n"
    assert shell("token", "revoke", id, "--json") == 0
    assert shell.json() == [{"id": id, "result": "was revoked before", "withdrawn": 0, "canceled": 0, "stopping": 0}]
    assert shell("token", "list", "--json") == 0
    assert shell.json()[0]["revoked_at"] is not None


def test_revoking_what_is_not_token_says_where_to_look(shell: Shell):
    assert shell("migrate") == 0
    assert shell("token", "revoke", "01997000-0000-7000-8000-000000000000") == 1
    assert "`postroom token list`" in shell.err
    assert shell("token", "revoke", "not-an-id") == 2


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--role", "root"), "use one of connector, dashboard, agent, admin"),
        (("--role", "connector"), "identity: is missing"),
        (("--role", "agent", "--identity", "x"), "--role connector"),
        (("--role", "connector", "--identity", ""), "one line"),
        (("--role", "agent", "--name", "a\nb"), "one line"),
        (("--role", "agent", "--expires", "soon"), "30d, 12h"),
        (("--role", "agent", "--expires", "0d"), "in the future"),
        ((), "--role"),
    ],
)
def test_a_token_that_cannot_be_is_refused_and_nothing_is_made(shell: Shell, arguments: tuple[str, ...], remedy: str):
    assert shell("token", "create", *arguments) == 2
    assert remedy in shell.err
    assert shell.out == ""
    assert list(shell.folder.iterdir()) == []


def test_an_agents_token_is_bound_to_an_account_by_its_address(shell: Shell):
    assert shell("migrate") == 0
    assert shell("token", "create", "--role", "agent", "--account", "eve@example.com") == 1
    assert "no account eve@example.com" in shell.err

    async def keep() -> Account:
        database = await open_database(shell.folder / "postroom-data")
        try:
            return await database.run(keep_account(new_id(), "gmail", "gmail:user:a@b.example", "a@b.example", NOW))
        finally:
            await database.close()

    account = asyncio.run(keep())
    assert shell("token", "create", "--role", "agent", "--account", "A@b.example", "--json") == 0
    (made,) = shell.json()
    assert made["account_id"] == str(account.id)
    assert shell("token", "create", "--role", "admin", "--account", "a@b.example") == 2
    assert "--role agent" in shell.err
    assert shell("token", "list") == 0
    assert short_id(account.id) in shell.out


def test_what_was_done_is_listed_newest_first_and_by_actor_and_action(shell: Shell):
    assert shell("token", "create", "--role", "admin", "--json") == 0
    id = shell.json()[0]["id"]
    assert shell("token", "revoke", id) == 0
    assert shell("audit", "list", "--json") == 0
    revoked, created = shell.json()
    assert [revoked["action"], created["action"]] == ["token.revoke", "token.create"]
    assert created["object_id"] == id
    assert created["actor"] == f"cli:{getpass.getuser()}"
    assert created["after"]["role"] == created["role"] == "admin"
    assert shell("audit", "list", "--json", "--limit", "1") == 0
    assert shell.json() == [revoked]
    assert shell("audit", "list", "--json", "--action", "token.create", "--actor", created["actor"]) == 0
    assert shell.json() == [created]
    assert shell("audit", "list", "--actor", "nobody") == 0
    assert " ".join(shell.out.split()) == "SEQ AT ACTOR ROLE ACTION OBJECT TYPE OBJECT ID REASON"


def test_lists_of_a_database_without_a_schema_ask_for_the_migration(shell: Shell):
    with_empty_database(shell)
    for command in (("token", "list"), ("audit", "list")):
        assert shell(*command) == 1
        assert "run `postroom migrate`" in shell.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", NOW + timedelta(days=30)),
        ("12h", NOW + timedelta(hours=12)),
        ("2027-01-31T12:00:00+01:00", datetime(2027, 1, 31, 11, tzinfo=UTC)),
        ("2027-01-31T12:00:00Z", datetime(2027, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_when_a_token_ends_is_a_span_or_a_moment(text: str, expected: datetime):
    assert read_moment("--expires", text, NOW, ahead=True) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a time"),
        ("30", "is not a time"),
        ("-1d", "is not a time"),
        ("1.5d", "is not a time"),
        ("٣d", "is not a time"),
        ("0h", "is over"),
        ("2026-11-15T08:00:00Z", "is over"),
        ("2020-01-01T00:00:00Z", "is over"),
        ("2027-01-31T12:00:00", "has no time zone"),
        ("2027-01-31", "has no time zone"),
        ("999999999d", "is out of range"),
        ("9999999999d", "is not a time"),
        ("0001-01-01T00:00:00+14:00", "is out of range"),
    ],
)
def test_a_wrong_end_is_refused_with_what_may_be_written(text: str, problem: str):
    with pytest.raises(BadInput, match=problem) as refused:
        read_moment("--expires", text, NOW, ahead=True)
    assert "30d" in refused.value.remedy


def test_whoever_has_no_name_is_unknown(monkeypatch: pytest.MonkeyPatch):
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert operator_signature().actor == "cli:unknown"
