"""Tokens: created with an audit entry, found by id, revoked once, and never stored in plain text."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from postroom.core.errors import BadInput, ConstraintBroken, NotFound
from postroom.core.roles import Role
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import list_audit
from postroom.store.people.tokens import (
    NewToken,
    NewTokenText,
    create_token,
    find_token,
    list_tokens,
    mint,
    note_token_use,
    read_token,
    revoke_token,
)
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.submission import added_sender

ENDPOINT = "gmail:user:me@example.com"


async def keep(database: Database, clock: ManualClock, minted: NewTokenText) -> None:
    await database.run(create_token(minted.token, signed(), clock()))


@pytest.mark.parametrize("role", list(Role))
async def test_a_token_of_every_role_is_kept_and_found(database: Database, clock: ManualClock, role: Role) -> None:
    identity = ENDPOINT if role is Role.CONNECTOR else None
    expires_at = clock() + timedelta(days=30)
    sender_id = (await added_sender(database, clock=clock)).id if role is Role.SENDER else None
    minted = mint(role, identity, "the laptop", expires_at, sender_id=sender_id)
    shown = await database.run(create_token(minted.token, signed(), clock()))
    found = await database.run(find_token(minted.token.id))
    assert found is not None
    assert found.token == shown
    assert (shown.role, shown.identity, shown.name, shown.sender_id) == (role, identity, "the laptop", sender_id)
    assert (shown.created_at, shown.expires_at, shown.revoked_at, shown.last_used_at) == (
        clock(),
        expires_at,
        None,
        None,
    )


async def test_nothing_in_the_database_is_the_secret_or_the_token(database: Database, clock: ManualClock) -> None:
    minted = mint(Role.ADMIN)
    secret = minted.text.split("_", 2)[2]
    await keep(database, clock, minted)
    rows = repr(await dump(database))
    assert hashlib.sha256(secret.encode()).hexdigest() in rows
    assert secret not in rows
    assert minted.text not in rows


def test_the_text_of_a_token_names_its_id_and_a_secret_of_256_bits() -> None:
    minted = mint(Role.AGENT)
    prefix, id, secret = minted.text.split("_", 2)
    assert (prefix, id) == ("postroom", minted.token.id.hex)
    assert len(secret) == 43
    assert read_token(minted.text) == (minted.token.id, minted.token.secret_sha256)
    assert secret not in repr(minted.token)
    assert minted.token.secret_sha256 not in repr(minted.token)


def test_no_two_tokens_have_the_same_secret() -> None:
    assert len({mint(Role.AGENT).token.secret_sha256 for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "postroom",
        "postroom__",
        mint(Role.AGENT).text[:-1],
        mint(Role.AGENT).text + "x",
        mint(Role.AGENT).text + "\n",
        " " + mint(Role.AGENT).text,
        mint(Role.AGENT).text.replace("postroom", "Postroom"),
        f"postroom_{'g' * 32}_{'a' * 43}",
        f"postroom_{'a' * 32}_{'é' * 43}",
        f"postroom_{'٣' * 32}_{'a' * 43}",
        "x" * 1_000_000,
    ],
    ids=range(12),
)
def test_what_is_not_token_is_read_as_none(text: str) -> None:
    assert read_token(text) is None


async def test_an_agent_may_be_bound_to_an_account_and_nobody_else(database: Database, clock: ManualClock) -> None:
    account = await database.run(keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", clock()))
    minted = mint(Role.AGENT, account_id=account.id)
    await keep(database, clock, minted)
    found = await database.run(find_token(minted.token.id))
    assert found is not None
    assert found.token.account_id == account.id
    assert [each.account_id for each in await database.run(list_tokens())] == [account.id]
    (created,) = await database.run(list_audit(10))
    assert created.after is not None
    assert created.after["account_id"] == str(account.id)
    with pytest.raises(BadInput, match="--role agent"):
        mint(Role.ADMIN, account_id=account.id)
    for forged in (replace(mint(Role.ADMIN).token, account_id=account.id), mint(Role.AGENT, account_id=new_id()).token):
        with pytest.raises(ConstraintBroken):
            await database.run(create_token(forged, signed(), clock()))


async def test_creation_and_revocation_are_in_the_audit_log(database: Database, clock: ManualClock) -> None:
    minted = mint(Role.CONNECTOR, ENDPOINT, "attic")
    await keep(database, clock, minted)
    revoked_at = clock.forward(60)
    await database.run(revoke_token(minted.token.id, signed(), revoked_at))
    revoked, created = await database.run(list_audit(10))
    assert (created.action, created.object_type, created.object_id) == ("token.create", "token", str(minted.token.id))
    assert (created.actor, created.role, created.before) == ("cli:ada", "admin", None)
    assert created.after == {
        "role": "connector",
        "identity": ENDPOINT,
        "channels": "email",
        "name": "attic",
        "expires_at": None,
    }
    assert (revoked.action, revoked.object_id, revoked.at) == ("token.revoke", str(minted.token.id), revoked_at)
    assert (revoked.before, revoked.after) == ({"revoked_at": None}, {"revoked_at": revoked_at.isoformat()})


async def test_revoking_twice_changes_nothing_the_second_time(database: Database, clock: ManualClock) -> None:
    minted = mint(Role.AGENT)
    await keep(database, clock, minted)
    assert (await database.run(revoke_token(minted.token.id, signed(), clock.forward(1)))).revoked
    before = await dump(database)
    assert not (await database.run(revoke_token(minted.token.id, signed(), clock.forward(1)))).revoked
    assert await dump(database) == before


async def test_revoking_what_does_not_exist_says_where_to_look(database: Database, clock: ManualClock) -> None:
    before = await dump(database)
    with pytest.raises(NotFound, match="postroom token list"):
        await database.run(revoke_token(new_id(), signed(), clock()))
    assert await dump(database) == before


async def test_a_token_that_does_not_exist_is_not_found(database: Database) -> None:
    assert await database.run(find_token(new_id())) is None


async def test_tokens_are_listed_newest_first_with_the_revoked_ones(database: Database, clock: ManualClock) -> None:
    assert await database.run(list_tokens()) == []
    minted = [mint(Role.AGENT, name=f"{n}") for n in range(3)]
    for each in minted:
        await keep(database, clock, each)
        clock.forward(1)
    await database.run(revoke_token(minted[1].token.id, signed(), clock()))
    found = await database.run(list_tokens())
    assert [token.name for token in found] == ["2", "1", "0"]
    assert [token.revoked_at for token in found] == [None, clock(), None]


async def test_use_is_noted_at_most_once_a_minute(database: Database, clock: ManualClock) -> None:
    minted = mint(Role.AGENT)
    await keep(database, clock, minted)
    first = clock()
    assert await database.run(note_token_use(minted.token.id, first))
    assert not await database.run(note_token_use(minted.token.id, clock.forward(59)))
    assert [token.last_used_at for token in await database.run(list_tokens())] == [first]
    assert await database.run(note_token_use(minted.token.id, clock.forward(1)))
    assert [token.last_used_at for token in await database.run(list_tokens())] == [clock()]


@pytest.mark.parametrize(
    ("role", "identity", "name", "field"),
    [
        (Role.CONNECTOR, None, None, "identity"),
        (Role.AGENT, ENDPOINT, None, "identity"),
        (Role.CONNECTOR, " ", None, "identity"),
        (Role.CONNECTOR, "a\nb", None, "identity"),
        (Role.CONNECTOR, "\udcff", None, "identity"),
        (Role.CONNECTOR, "a" * 513, None, "identity"),
        (Role.AGENT, None, "", "name"),
        (Role.AGENT, None, "n" * 129, "name"),
    ],
)
def test_a_token_that_cannot_be_is_refused(role: Role, identity: str | None, name: str | None, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        mint(role, identity, name)
    assert refused.value.field == field


async def test_the_schema_itself_refuses_a_token_that_cannot_be(database: Database, clock: ManualClock) -> None:
    hash = "a" * 64
    for token in (
        NewToken(new_id(), Role.CONNECTOR, hash),
        NewToken(new_id(), Role.AGENT, hash, identity=ENDPOINT),
        NewToken(new_id(), Role.AGENT, "not a hash"),
        NewToken(new_id(), Role.AGENT, hash, expires_at=clock()),
    ):
        with pytest.raises(ConstraintBroken):
            await database.run(create_token(token, signed(), clock()))
    assert await database.run(list_tokens()) == []
    assert await database.run(list_audit(10)) == []
