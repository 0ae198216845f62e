"""Access tokens: shared, renewed early, replaced when refused."""

import asyncio
from datetime import timedelta

import pytest

from postroom.mailboxes.gmail.errors import ConsentLost, GmailError, GmailTokenUnavailable
from postroom.mailboxes.gmail.tokens import GmailAccessToken, Tokens
from support.clocks import ManualClock

HOUR = timedelta(hours=1)


class Endpoint:
    """Gives out numbered tokens that live an hour; with `gate`, only once it is opened."""

    def __init__(self, clock: ManualClock, gate: asyncio.Event | None = None) -> None:
        self.given = 0
        self.told: list[str | None] = []
        self.asked = asyncio.Event()
        self.failure: GmailError | None = None
        self._clock = clock
        self._gate = gate

    async def __call__(self, refused: str | None) -> GmailAccessToken:
        self.told.append(refused)
        self.given += 1
        self.asked.set()
        if self._gate is not None:
            await self._gate.wait()
        if self.failure is not None:
            raise self.failure
        return GmailAccessToken(f"token-{self.given}", self._clock() + HOUR)


async def test_a_token_is_kept_until_shortly_before_it_ends(clock: ManualClock) -> None:
    tokens = Tokens(Endpoint(clock), clock)
    assert await tokens.token() == "token-1"
    clock.forward(54 * 60)
    assert await tokens.token() == "token-1"
    clock.forward(60)
    assert await tokens.token() == "token-2"


async def test_all_who_ask_at_once_share_one_fetch(clock: ManualClock) -> None:
    gate = asyncio.Event()
    endpoint = Endpoint(clock, gate)
    tokens = Tokens(endpoint, clock)
    asking = [asyncio.create_task(tokens.token()) for _ in range(50)]
    await endpoint.asked.wait()
    gate.set()
    assert set(await asyncio.gather(*asking)) == {"token-1"}
    assert endpoint.given == 1


async def test_who_gives_up_does_not_take_the_fetch_from_the_others(clock: ManualClock) -> None:
    gate = asyncio.Event()
    endpoint = Endpoint(clock, gate)
    tokens = Tokens(endpoint, clock)
    first, second = asyncio.create_task(tokens.token()), asyncio.create_task(tokens.token())
    await endpoint.asked.wait()
    first.cancel()
    await asyncio.wait({first})
    gate.set()
    assert await second == "token-1"
    assert first.cancelled()


async def test_a_refused_token_is_replaced_once_however_many_calls_it_was_refused_to(clock: ManualClock) -> None:
    endpoint = Endpoint(clock)
    tokens = Tokens(endpoint, clock)
    refused = await tokens.token()
    for _ in range(10):
        tokens.refused(refused)
        assert await tokens.token() == "token-2"
    clock.forward(3600)
    await tokens.token()
    assert endpoint.told == [None, "token-1", None]


async def test_a_failure_while_the_old_token_still_lives_is_not_felt(clock: ManualClock) -> None:
    endpoint = Endpoint(clock)
    tokens = Tokens(endpoint, clock)
    await tokens.token()
    endpoint.failure = GmailTokenUnavailable("Google answered 503")
    clock.forward(57 * 60)
    assert await tokens.token() == "token-1"
    clock.forward(4 * 60)
    with pytest.raises(GmailTokenUnavailable):
        await tokens.token()


async def test_a_failure_is_not_kept(clock: ManualClock) -> None:
    endpoint = Endpoint(clock)
    endpoint.failure = GmailTokenUnavailable("Google answered 503")
    tokens = Tokens(endpoint, clock)
    with pytest.raises(GmailTokenUnavailable):
        await tokens.token()
    endpoint.failure = None
    assert await tokens.token() == "token-2"


async def test_a_lost_consent_is_reported_even_while_the_old_token_lives(clock: ManualClock) -> None:
    endpoint = Endpoint(clock)
    tokens = Tokens(endpoint, clock)
    await tokens.token()
    endpoint.failure = ConsentLost("mara@lindqvist.example")
    clock.forward(57 * 60)
    with pytest.raises(ConsentLost):
        await tokens.token()


def test_a_token_that_is_printed_stays_secret(clock: ManualClock) -> None:
    assert "ya29" not in repr(GmailAccessToken("ya29.secret", clock()))
