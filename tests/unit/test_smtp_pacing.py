"""How many transactions a destination has at once: more while it takes them, fewer when it complains or slows down."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.pacing import DestinationPace, Feedback, PaceLimits
from postroom.core.outbound.replies import Phase, Reply
from postroom.core.outbound.transport import RecipientOutcome, decided
from postroom.outbound.smtp.pacing import Pacing, Turn
from postroom.outbound.smtp.transport import feedback_of

LIMITS = PaceLimits(first=4, most=10, slow_s=30, first_rest_s=1, longest_rest_s=8)


def run(pace: DestinationPace, now: float, feedback: Feedback, took: float = 0.1) -> float:
    """As many transactions at once as the window allows, all ended in the same way."""
    begun = int(pace.window)
    for _ in range(begun):
        pace.begin(now)
    for _ in range(begun):
        pace.end(now, now + took, feedback)
    return now + took


def test_the_window_grows_by_one_a_round_up_to_its_limit():
    pace, now = DestinationPace(LIMITS), 0.0
    for least in (4, 4.8, 5.6, 6.5):
        assert least <= pace.window <= least + 0.5
        now = run(pace, now, "taken")
    for _ in range(10):
        now = run(pace, now, "taken")
    assert pace.window == 10


def test_a_window_that_is_not_used_does_not_grow():
    pace = DestinationPace(LIMITS)
    for now in range(100):
        pace.begin(now)
        pace.end(now, now + 0.1, "taken")
    assert pace.window == 4


def test_one_complaint_halves_the_window_and_those_that_began_before_it_do_not_count():
    pace = DestinationPace(LIMITS, window=8)
    now = run(pace, 0.0, "congested")
    assert pace.window == 4
    run(pace, now, "congested")
    assert pace.window == 2


def test_a_destination_that_refuses_even_one_is_left_alone_for_longer_and_longer():
    pace, now, rests = DestinationPace(LIMITS, window=1), 0.0, []
    for _ in range(6):
        pace.begin(now)
        pace.end(now, now + 0.1, "congested")
        assert not pace.may_begin(now + 0.1)
        rests.append(round(pace.rests_until - now - 0.1, 3))
        now = pace.rests_until
        assert pace.may_begin(now)
    assert rests == [1, 2, 4, 8, 8, 8]
    run(pace, now, "taken")
    assert pace.rest_s == 0


def test_a_destination_that_becomes_slow_has_fewer():
    pace = DestinationPace(LIMITS, window=9)
    run(pace, 0.0, "taken", took=31)
    assert pace.window == 6


def test_a_refused_recipient_says_nothing_about_the_pace():
    pace = DestinationPace(LIMITS)
    run(pace, 0.0, "neither")
    assert pace.window == 4


@given(st.lists(st.tuples(st.sampled_from(["taken", "congested", "neither"]), st.floats(0, 100)), max_size=60))
def test_the_window_stays_within_its_bounds(rounds: list[tuple[Feedback, float]]):
    pace, now = DestinationPace(LIMITS), 0.0
    for feedback, took in rounds:
        now = max(run(pace, now, feedback, took), pace.rests_until)
        assert 1 <= pace.window <= LIMITS.most
        assert pace.may_begin(now)
        assert pace.wait(0, now) > 0


def test_the_wait_follows_those_ahead_and_how_long_they_take():
    pace = DestinationPace(LIMITS, usual_s=2.0)
    assert pace.wait(0, 0.0) == 0.5
    assert pace.wait(7, 0.0) == 4.0
    for _ in range(4):
        pace.begin(0.0)
    assert pace.wait(0, 60.0) == 15.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def begun(pacing: Pacing, how_many: int) -> list[Turn]:
    turns = [await pacing.begin("example.org") for _ in range(how_many)]
    assert all(isinstance(turn, Turn) for turn in turns)
    return [turn for turn in turns if isinstance(turn, Turn)]


async def test_turns_are_given_in_order_and_no_more_than_the_window_has():
    pacing = Pacing(LIMITS, 1.0, Clock())
    turns = await begun(pacing, 4)
    order: list[int] = []

    async def wait(number: int) -> None:
        turn = await pacing.begin("example.org")
        assert isinstance(turn, Turn)
        order.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert order == []
    for turn in turns[:3]:
        turn.end("neither")
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2]


async def test_a_slow_destination_sends_mail_back_at_once_and_another_is_not_concerned():
    clock = Clock()
    pacing = Pacing(LIMITS, 1.0, clock)
    await begun(pacing, 4)
    clock.now = 60.0
    assert await pacing.begin("example.org") == 15.0
    assert isinstance(await pacing.begin("other.example"), Turn)


async def test_those_that_wait_are_sent_away_when_the_destination_is_left_alone():
    pacing = Pacing(PaceLimits(first=1), 1.0, Clock())
    [turn] = await begun(pacing, 1)
    waiting = asyncio.create_task(pacing.begin("example.org"))
    await asyncio.sleep(0)
    turn.end("congested")
    assert await waiting == 1.0
    assert await pacing.begin("example.org") == 1.0


async def test_one_that_stops_waiting_loses_no_turn():
    pacing = Pacing(PaceLimits(first=1), 1.0, Clock())
    [turn] = await begun(pacing, 1)
    first, second = (asyncio.create_task(pacing.begin("example.org")) for _ in range(2))
    await asyncio.sleep(0)
    turn.end("neither")
    first.cancel()
    assert isinstance(await second, Turn)
    with pytest.raises(asyncio.CancelledError):
        await first


@pytest.mark.parametrize(
    ("phase", "code", "text", "feedback"),
    [
        ("content", 250, "Ok", "taken"),
        ("content", 421, "busy", "congested"),
        ("content", 451, "unusual rate of unsolicited mail from your address", "congested"),
        ("content", 451, "this looks like spam, try later", "neither"),
        ("content", 452, "out of storage space", "neither"),
        ("connect", None, "refused", "congested"),
        ("mail", 451, "server busy, try later", "congested"),
        ("mail", 451, "the domain of the sender does not resolve", "neither"),
        ("rcpt", 450, "Greylisted", "neither"),
        ("rcpt", 451, "local error", "neither"),
        ("rcpt", 451, "too many messages from you", "congested"),
        ("rcpt", 550, "no such user", "neither"),
        ("route", None, "the DNS failed", "neither"),
        ("local", None, "cannot sign", "neither"),
    ],
)
def test_what_an_outcome_says_about_the_pace(phase: Phase, code: int | None, text: str, feedback: str):
    assert feedback_of([decided(0, Reply(code, None if code else "4.4.1", text, "mx", phase))]) == feedback


def test_an_unknown_outcome_is_a_complaint():
    lost = RecipientOutcome(0, "unknown", Reply(None, "4.4.2", "lost", "mx", "content"))
    assert feedback_of([lost]) == "congested"
