"""Identifying a caller by its token: refused with reason and remedy, cached for a second, never valid longer."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from postroom.core.errors import DatabaseFull, DatabaseUnavailable, Refused
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.token_check import MOST_KEPT, TokenCheck, TokenRefused
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from postroom.store.people.tokens import NewTokenText, create_token, list_tokens, mint, revoke_token
from support.clocks import ManualClock
from support.store.fault_cases_registry import signed

T = TypeVar("T")
ENDPOINT = "gmail:user:me@example.com"


class Watched:
    """A database that counts what it is asked, answers when it may, and fails at what it is told to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.open.set()
        self.reached = asyncio.Event()
        self.failing: dict[str, Exception] = {}

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        self.asked[transaction.name] += 1
        self.reached.set()
        await self.open.wait()
        if transaction.name in self.failing:
            raise self.failing[transaction.name]
        return await self._database.run(transaction)

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()


@pytest.fixture
def watched(database: Database) -> Watched:
    return Watched(database)


@pytest.fixture
async def check(watched: Watched, clock: ManualClock) -> AsyncIterator[TokenCheck]:
    made = TokenCheck(watched, clock)
    yield made
    watched.open.set()
    await made.close()


async def kept(database: Watched, clock: ManualClock, minted: NewTokenText) -> str:
    await database.run(create_token(minted.token, signed(), clock()))
    return minted.text


async def refused(check: TokenCheck, text: str | None) -> TokenRefused:
    with pytest.raises(TokenRefused) as raised:
        await check.check(text)
    assert "`postroom token create --role" in str(raised.value)
    assert text is None or len(text) < 10 or text not in str(raised.value)
    return raised.value


async def test_a_token_tells_role_identity_and_id(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    connector, agent = mint(Role.CONNECTOR, ENDPOINT), mint(Role.AGENT)
    for minted in (connector, agent):
        await kept(watched, clock, minted)
    bound = Principal(Role.CONNECTOR, ENDPOINT, connector.token.id, channels=frozenset({"email"}))
    assert await check.check(connector.text) == bound
    assert await check.check(agent.text) == Principal(Role.AGENT, None, agent.token.id)


@pytest.mark.parametrize("text", [None, ""])
async def test_no_token_is_refused_without_asking_the_database(
    check: TokenCheck, watched: Watched, text: str | None
) -> None:
    error = await refused(check, text)
    assert error.reason == "no_token"
    assert isinstance(error, Refused)
    assert watched.asked == {}


@pytest.mark.parametrize("text", ["x", "Bearer x", "postroom_1_2", "\0" * 100, "é" * 84], ids=ascii)
async def test_what_is_not_token_is_refused_without_asking_the_database(
    check: TokenCheck, watched: Watched, text: str
) -> None:
    assert (await refused(check, text)).reason == "bad_token"
    assert watched.asked == {}


async def test_an_unknown_token_and_a_wrong_secret_are_refused_in_the_same_words(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.ADMIN))
    forged = text[:-43] + mint(Role.ADMIN).text[-43:]
    unknown, wrong = await refused(check, mint(Role.ADMIN).text), await refused(check, forged)
    assert (unknown.reason, wrong.reason) == ("bad_token", "bad_token")
    assert str(unknown) == str(wrong)
    assert await check.check(text)


async def test_a_wrong_secret_does_not_learn_that_a_token_was_revoked(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    minted = mint(Role.ADMIN)
    text = await kept(watched, clock, minted)
    await watched.run(revoke_token(minted.token.id, signed(), clock()))
    assert (await refused(check, text[:-43] + "a" * 43)).reason == "bad_token"
    error = await refused(check, text)
    assert error.reason == "revoked"
    assert "--role admin" in str(error)


async def test_a_token_ends_on_time_even_while_it_is_kept(
    watched: Watched, clock: ManualClock, check: TokenCheck
) -> None:
    text = await kept(watched, clock, mint(Role.CONNECTOR, ENDPOINT, expires_at=clock() + timedelta(milliseconds=900)))
    assert await check.check(text)
    clock.forward(0.899999)
    assert await check.check(text)
    clock.forward(0.000001)
    error = await refused(check, text)
    assert error.reason == "expired"
    assert f"--identity {ENDPOINT}" in str(error)
    assert watched.asked["find_token"] == 1


async def test_a_revoked_token_opens_nothing_a_second_later(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    minted = mint(Role.AGENT)
    text = await kept(watched, clock, minted)
    assert await check.check(text)
    await watched.run(revoke_token(minted.token.id, signed(), clock()))
    clock.forward(1)
    assert (await refused(check, text)).reason == "revoked"


async def test_a_thousand_requests_of_one_second_read_the_database_once(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    for _ in range(1000):
        await check.check(text)
        clock.forward(0.0009)
    assert watched.asked["find_token"] == 1
    clock.forward(0.1)
    await check.check(text)
    assert watched.asked["find_token"] == 2


async def test_what_was_kept_by_a_clock_that_went_back_is_read_again(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    await check.check(text)
    clock.forward(-3600)
    await check.check(text)
    assert watched.asked["find_token"] == 2


async def test_those_who_miss_together_share_one_read(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    unknown = mint(Role.AGENT).text
    watched.open.clear()
    good = [asyncio.create_task(check.check(text)) for _ in range(50)]
    bad = [asyncio.create_task(refused(check, unknown)) for _ in range(50)]
    await watched.reached.wait()
    watched.open.set()
    assert len({await each for each in good}) == 1
    assert {error.reason for error in await asyncio.gather(*bad)} == {"bad_token"}
    assert watched.asked["find_token"] == 2


async def test_one_that_goes_away_does_not_take_the_others_with_it(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    watched.open.clear()
    watched.reached.clear()
    first, second = (asyncio.create_task(check.check(text)) for _ in range(2))
    await watched.reached.wait()
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert first.cancelled()
    watched.open.set()
    assert (await second).role is Role.AGENT


async def test_a_database_that_fails_is_no_refusal_and_is_asked_again(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    watched.failing["find_token"] = DatabaseUnavailable("it is away")
    with pytest.raises(DatabaseUnavailable):
        await check.check(text)
    watched.failing.clear()
    assert await check.check(text)


async def test_garbage_takes_no_memory(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    await check.check(text)
    for _ in range(50):
        await refused(check, mint(Role.AGENT).text)
        await refused(check, "x" * 100)
    assert len(check._known) == 1
    assert check._reading == {}


async def test_no_more_tokens_are_kept_than_a_bound(
    check: TokenCheck, watched: Watched, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_KEPT == 1024
    monkeypatch.setattr("postroom.interfaces.http.token_check.MOST_KEPT", 3)
    texts = [await kept(watched, clock, mint(Role.AGENT)) for _ in range(5)]
    for text in texts:
        await check.check(text)
    assert len(check._known) == 3
    assert len(check._noted) <= 3
    await check.check(texts[-1])
    assert watched.asked["find_token"] == 5


async def test_use_is_noted_once_a_minute(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    first = clock()
    for _ in range(60):
        await check.check(text)
        clock.forward(0.999)
    await check.close()
    assert watched.asked["note_token_use"] == 1
    assert [token.last_used_at for token in await watched.run(list_tokens())] == [first]
    clock.forward(1)
    await check.check(text)
    await check.close()
    assert [token.last_used_at for token in await watched.run(list_tokens())] == [clock()]


async def test_another_process_that_noted_the_use_is_heeded(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    await check.check(text)
    await check.close()
    clock.forward(30)
    other = TokenCheck(watched, clock)
    await other.check(text)
    await other.close()
    assert watched.asked["note_token_use"] == 1


async def test_a_refused_token_counts_as_no_use(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    text = await kept(watched, clock, mint(Role.AGENT, expires_at=clock() + timedelta(seconds=1)))
    clock.forward(1)
    await refused(check, text)
    await check.close()
    assert [token.last_used_at for token in await watched.run(list_tokens())] == [None]


async def test_a_use_that_cannot_be_noted_fails_no_request(
    check: TokenCheck, watched: Watched, clock: ManualClock
) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    watched.failing["note_token_use"] = DatabaseFull("no space left")
    assert await check.check(text)
    await check.close()
    assert await check.check(text)


async def test_a_request_does_not_wait_for_its_note(check: TokenCheck, watched: Watched, clock: ManualClock) -> None:
    text = await kept(watched, clock, mint(Role.AGENT))
    assert await check.check(text)  # the note is begun, and not awaited
    assert watched.asked["note_token_use"] == 0
    await check.close()
    assert watched.asked["note_token_use"] == 1
