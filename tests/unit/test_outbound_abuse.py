"""The abuse score: what counts, what does not, and how long a throttle lasts."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.abuse import (
    HIGHEST_SCORE,
    HISTORY_DAYS,
    LEAST_MESSAGES,
    WEEK_DAYS,
    AbusePolicy,
    Activity,
    Score,
    abuse_score,
)
from postroom.core.outbound.limits import DAILY_LIMIT
from postroom.core.outbound.priority import Throttle, lane_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OLD, NEW = NOW - timedelta(days=60), NOW - timedelta(days=2)
POLICY = AbusePolicy()
counts = st.integers(0, 20_000)
activities = st.builds(
    Activity,
    st.sampled_from([OLD, NEW]),
    accepted=counts,
    delivered=counts,
    bounced=counts,
    rejected=counts,
    history=counts,
    history_days=st.integers(0, HISTORY_DAYS),
)


def points(activity: Activity) -> int:
    return abuse_score(activity, NOW).points


def sent(delivered: int, bounced: int = 0, rejected: int = 0, **more: int) -> Activity:
    """Mail of an old sender without history; all of it has ended."""
    accepted = delivered + bounced + rejected
    return Activity(OLD, accepted, delivered, bounced, rejected, **more)


# each sign, at its limit and beyond


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        (sent(90, 10), 0),
        (sent(89, 11), 30),
        (sent(70, 30), 30),
        (sent(69, 31), 60),
        (sent(95, 0, 5), 0),
        (sent(94, 0, 6), 20),
        (sent(85, 0, 15), 20),
        (sent(84, 0, 16), 40),
        (sent(500, history=2800, history_days=28), 0),
        (sent(501, history=2800, history_days=28), 25),
        (sent(1500, history=2800, history_days=28), 25),
        (sent(1501, history=2800, history_days=28), 50),
    ],
)
def test_a_sign_counts_beyond_its_limit_and_double_beyond_three_times_the_limit(
    activity: Activity, expected: int
) -> None:
    assert points(activity) == expected


@pytest.mark.parametrize(("accepted", "expected"), [(100, 0), (101, 40), (300, 40), (301, 80)])
def test_a_new_sender_has_a_limit_of_its_own(accepted: int, expected: int) -> None:
    new = Activity(NEW, accepted)
    assert points(new) == expected
    assert points(replace(new, created_at=NOW - timedelta(days=7))) == 0


def test_signs_are_added_and_the_reason_names_them() -> None:
    score = abuse_score(replace(sent(80, 30, 10), created_at=NEW), NOW)
    assert score.points == 30 + 20 + 40
    assert score.reason == "30 of 120 bounced; 10 of 120 were rejected; 120 in a day from a new sender"
    assert abuse_score(replace(sent(100, 300, 300), created_at=NEW), NOW).points == HIGHEST_SCORE


def test_rates_are_shares_of_what_has_ended_so_that_a_flood_does_not_hide_its_bounces() -> None:
    flood = Activity(OLD, accepted=10_000, delivered=10, bounced=20)
    assert points(flood) == 60


# the promises


def test_one_bounce_of_one_message_is_no_sign() -> None:
    assert points(sent(0, 1)) == 0


@given(st.integers(0, LEAST_MESSAGES - 1), st.data())
def test_fewer_than_twenty_messages_tell_nothing(total: int, data: st.DataObject) -> None:
    bounced = data.draw(st.integers(0, total))
    rejected = data.draw(st.integers(0, total - bounced))
    delivered = total - bounced - rejected
    assert points(Activity(NEW, total, delivered, bounced, rejected, history_days=HISTORY_DAYS)) == 0


@given(st.integers(0, 100_000), st.integers(0, WEEK_DAYS - 1))
def test_a_volume_spike_needs_a_week_of_history(accepted: int, days: int) -> None:
    assert points(sent(accepted, history=0, history_days=days)) == 0


def test_the_first_hundred_messages_after_a_quiet_month_are_no_spike() -> None:
    assert points(sent(100, history=0, history_days=28)) == 0
    assert points(sent(101, history=0, history_days=28)) == 25


@pytest.mark.parametrize(
    "activity",
    [
        pytest.param(sent(200, 100), id="a bounce storm"),
        pytest.param(sent(170, 22, 11), id="a stolen list: bounces and rejections"),
        pytest.param(Activity(NEW, DAILY_LIMIT + 1), id="a burst of a new sender with a higher limit"),
        pytest.param(replace(sent(100, 20), created_at=NEW), id="a new sender with a bought list"),
        pytest.param(sent(DAILY_LIMIT + 1, history=40, history_days=28), id="a volume spike of a small sender"),
        pytest.param(sent(5000, history=2800, history_days=28), id="a volume spike of a large sender"),
        pytest.param(sent(110, 15, history=140, history_days=28), id="a volume spike with bounces"),
    ],
)
def test_abuse_is_throttled(activity: Activity) -> None:
    score = abuse_score(activity, NOW)
    assert POLICY.verdict(score.points, None, NOW) == "begin"
    assert score.reason


@pytest.mark.parametrize("created_at", [OLD, NEW])
@given(accepted=st.integers(0, DAILY_LIMIT), history=counts, days=st.integers(0, HISTORY_DAYS))
def test_nobody_within_the_usual_daily_limit_is_throttled_for_the_number_alone(
    created_at: datetime, accepted: int, history: int, days: int
) -> None:
    days = 0 if created_at == NEW else days
    clean = Activity(created_at, accepted, delivered=accepted, history=history, history_days=days)
    assert POLICY.verdict(points(clean), None, NOW) == "none"


def honest_sender(rng: Random) -> Activity:
    """A day of an honest sender. Volumes are spread widely, bounce rates lie around 2 % and now and then well above,
    rejections are rarer, one in twenty senders is new, and one in twenty writes many times as much as usual."""
    usual = rng.lognormvariate(math.log(12), 1.2)
    burst = rng.uniform(3, 8) if rng.random() < 0.05 else 1.0
    accepted = min(int(rng.expovariate(1 / (usual * burst))), DAILY_LIMIT)
    bounce_rate, reject_rate = rng.betavariate(1.2, 58), rng.betavariate(0.5, 100)
    drawn = [rng.random() for _ in range(accepted)]
    bounced = sum(each < bounce_rate for each in drawn)
    rejected = sum(bounce_rate <= each < bounce_rate + reject_rate for each in drawn)
    is_new = rng.random() < 0.05
    days = rng.randint(0, 6) if is_new else rng.randint(7, HISTORY_DAYS)
    history = sum(min(int(rng.expovariate(1 / usual)), DAILY_LIMIT) for _ in range(days))
    delivered = accepted - bounced - rejected
    return Activity(NEW if is_new else OLD, accepted, delivered, bounced, rejected, history, days)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_of_ten_thousand_honest_senders_fewer_than_one_in_a_thousand_is_throttled(seed: int) -> None:
    rng = Random(seed)
    scores = [abuse_score(honest_sender(rng), NOW) for _ in range(10_000)]
    throttled = [score for score in scores if POLICY.verdict(score.points, None, NOW) == "begin"]
    shown = [score.reason for score in throttled]
    print(f"seed {seed}: {len(throttled)} of 10,000 honest senders throttled: {shown}")
    assert len(throttled) < 10, f"seed {seed}: {shown}"
    assert any(score.points for score in scores), "the senders must be varied enough to show a sign"


# properties


@given(activities)
def test_a_score_lies_between_0_and_100_and_is_the_sum_of_its_signs(activity: Activity) -> None:
    score = abuse_score(activity, NOW)
    assert score.points == min(sum(sign.points for sign in score.signs), HIGHEST_SCORE)
    assert (score.points > 0) == bool(score.signs) == bool(score.reason)
    assert all(sign.points > 0 for sign in score.signs)


@given(activities, st.data())
def test_a_message_that_bounces_instead_of_being_delivered_never_lowers_the_score(
    activity: Activity, data: st.DataObject
) -> None:
    moved = data.draw(st.integers(0, activity.delivered))
    bounced = replace(activity, delivered=activity.delivered - moved, bounced=activity.bounced + moved)
    rejected = replace(activity, delivered=activity.delivered - moved, rejected=activity.rejected + moved)
    assert min(points(bounced), points(rejected)) >= points(activity)


@given(activities, counts)
def test_more_mail_never_lowers_the_score_and_more_history_never_raises_it(activity: Activity, more: int) -> None:
    assert points(replace(activity, accepted=activity.accepted + more)) >= points(activity)
    assert points(replace(activity, history=activity.history + more)) <= points(activity)


# throttles


@pytest.mark.parametrize(
    ("score", "hours"), [(0, 1), (19, 1), (20, 2), (50, 4), (60, 8), (80, 16), (99, 16), (100, 24)]
)
def test_a_throttle_lasts_an_hour_doubled_for_every_twenty_points_and_at_most_a_day(score: int, hours: int) -> None:
    assert POLICY.throttle_time(score) == timedelta(hours=hours)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 200_000))
def test_a_worse_score_never_throttles_for_less_and_never_for_longer_than_allowed(
    one: int, other: int, longest_s: int
) -> None:
    policy = AbusePolicy(longest=timedelta(seconds=longest_s))
    less, more = sorted((one, other))
    assert policy.throttle_time(less) <= policy.throttle_time(more) <= policy.longest


def test_a_score_of_fifty_is_throttled_and_of_forty_nine_is_not() -> None:
    assert POLICY.verdict(50, None, NOW) == "begin"
    assert POLICY.verdict(49, None, NOW) == "none"


@given(st.integers(0, 100), st.timedeltas(timedelta(days=-2), timedelta(days=2)))
def test_a_throttle_ends_when_it_is_over_and_the_score_has_fallen(score: int, ahead: timedelta) -> None:
    throttle = Throttle(NOW + ahead, "bounces")
    ends = ahead <= timedelta(0) and score < POLICY.threshold
    assert POLICY.verdict(score, throttle, NOW) == ("end" if ends else "keep")


def test_the_throttle_of_a_score_has_its_reason_and_its_end() -> None:
    score = abuse_score(sent(69, 31), NOW)
    assert POLICY.throttle(score, NOW) == Throttle(NOW + timedelta(hours=8), "31 of 100 bounced")


@given(st.lists(st.tuples(st.integers(1, 600), st.integers(0, 100)), max_size=60))
def test_over_any_course_of_scores_a_throttle_is_never_shorter_than_it_says_and_ends_with_a_low_score(
    course: list[tuple[int, int]],
) -> None:
    now, throttle, begun = NOW, None, NOW
    for minutes, points in course:
        now += timedelta(minutes=minutes)
        match POLICY.verdict(points, throttle, now):
            case "begin":
                assert throttle is None
                assert points >= POLICY.threshold
                throttle, begun = POLICY.throttle(Score(points), now), now
            case "end":
                assert throttle is not None
                assert now - begun >= throttle.until - begun >= timedelta(hours=4)
                assert points < POLICY.threshold
                throttle = None
            case "keep":
                assert throttle is not None
            case "none":
                assert throttle is None
                assert points < POLICY.threshold
        lane = lane_of("team", OLD, throttle, now)
        assert lane == ("high" if throttle is None else "throttled")
