"""Scoring: abuse is throttled within one period, honest senders are not, and throttles end."""

from datetime import timedelta
from typing import Any

import pytest

from postroom.core.jobs.types import CATALOGUE
from postroom.core.outbound.abuse import AbusePolicy
from postroom.core.outbound.limits import DailyLimits
from postroom.outbound.queue.scoring import Channel, Detection, Scored, Scoring
from postroom.store.outbound import sender_counts, senders
from postroom.store.outbound.sender_counts import SenderCount
from postroom.store.outbound.sender_notices import report_sender
from postroom.store.outbound.senders import SenderView
from postroom.store.people.audit import list_audit
from support.smtp_sending import new_mail, queue_mail
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import ADA, added, admitted, count, counted, throttled
from support.store.job_setup import JobSetup

PERIOD = timedelta(minutes=5)
DAY = 86_400
WIDE = DailyLimits(sender=100_000)


def scoring(setup: JobSetup, detection: Detection = "on", channels: tuple[Channel, ...] = ()) -> Scoring:
    return Scoring(setup.database, AbusePolicy(), detection, channels, PERIOD, setup.clock)


async def show(setup: JobSetup, username: str = ADA) -> SenderView:
    return await setup.database.run(senders.load_sender(username, setup.clock()))


async def old_sender(setup: JobSetup, daily: int = 10, days: int = 10) -> SenderView:
    """A sender with some days of history."""
    ada = await added(setup)
    for _ in range(days):
        await admitted(setup, ada.id, daily, WIDE)
        setup.clock.forward(DAY)
    return ada


# what is throttled within one period


async def test_a_bounce_storm_is_throttled_within_one_period(setup: JobSetup) -> None:
    ada = await old_sender(setup)
    await admitted(setup, ada.id, 90)
    await counted(setup, ada.id, delivered=50, bounced=40)
    setup.clock.forward(PERIOD.total_seconds())
    assert await scoring(setup).score() == Scored(1, 1, 0)
    shown = await show(setup)
    assert (shown.abuse_score, shown.lane) == (60, "throttled")
    assert shown.throttled_until == setup.clock() + timedelta(hours=8)
    assert shown.throttle_reason == "40 of 90 bounced"


async def test_reports_that_bounce_do_not_hold_back_those_to_others(setup: JobSetup) -> None:
    """A sender whose own address does not exist would otherwise stop the reports to everybody, and the notices."""
    reports = [new_mail(f"gone{place}@example.net", sender=report_sender("example.com")) for place in range(100)]
    await setup.database.run(queue_mail(reports, setup.clock()))
    own = await show(setup, "reports for example.com")
    await counted(setup, own.id, delivered=0, bounced=100)
    setup.clock.forward(PERIOD.total_seconds())
    assert await scoring(setup).score() == Scored(1, 0, 0)
    assert (await show(setup, own.username)).throttled_until is None


async def test_a_burst_of_a_new_sender_is_throttled_within_one_period(setup: JobSetup) -> None:
    ada = await added(setup)
    await admitted(setup, ada.id, 301, WIDE)
    setup.clock.forward(PERIOD.total_seconds())
    assert (await scoring(setup).score()).throttled == 1
    assert (await show(setup)).throttle_reason == "301 in a day from a new sender"


async def test_a_volume_spike_is_throttled_within_one_period(setup: JobSetup) -> None:
    ada = await old_sender(setup)
    await admitted(setup, ada.id, 400, WIDE)
    setup.clock.forward(PERIOD.total_seconds())
    assert (await scoring(setup).score()).throttled == 1
    assert (await show(setup)).throttle_reason == "400 in a day, 10.0 on average"


async def test_one_bounce_of_one_message_is_not_throttled(setup: JobSetup) -> None:
    ada = await added(setup)
    await admitted(setup, ada.id)
    await counted(setup, ada.id, bounced=1)
    before = await dump(setup.database)
    assert await scoring(setup).score() == Scored(1, 0, 0)
    assert await dump(setup.database) == before


async def test_a_first_day_is_no_spike(setup: JobSetup) -> None:
    ada = await added(setup)
    setup.clock.forward(30 * DAY)
    await admitted(setup, ada.id, 400, WIDE)
    assert (await scoring(setup).score()).throttled == 0
    assert (await show(setup)).abuse_score == 0


async def test_counts_of_the_day_before_yesterday_are_history_and_not_part_of_the_score(setup: JobSetup) -> None:
    ada = await added(setup)
    await counted(setup, ada.id, bounced=100)
    setup.clock.forward(DAY + 3600)
    await admitted(setup, ada.id)
    await scoring(setup).score()
    assert (await show(setup)).abuse_score == 0


# throttles begin and end


async def test_a_throttle_is_audited_and_a_notice_is_asked_for_on_every_channel_once(setup: JobSetup) -> None:
    ada = await added(setup)
    await counted(setup, ada.id, bounced=100)
    for _ in range(2):
        await scoring(setup, channels=("mail", "webhook")).score()
        setup.clock.forward(60)
    entries = [each for each in await setup.database.run(list_audit(10)) if each.action == "sender.throttle"]
    (entry,) = entries
    assert (entry.actor, entry.role, entry.object_id) == ("process:scoring", "worker", str(ada.id))
    assert entry.after is not None
    assert entry.after["score"] == 60
    jobs = await setup.claim()
    assert sorted(job.payload["channel"] for job in jobs) == ["mail", "webhook"]
    assert {job.type for job in jobs} == {"sender.notify"} <= set(CATALOGUE)
    assert jobs[0].payload["username"] == ADA
    assert jobs[0].payload["reason"] == "100 of 100 bounced"


async def test_a_throttle_is_kept_until_it_is_over_then_mail_drains_and_then_the_lane_is_back(setup: JobSetup) -> None:
    ada = await old_sender(setup)
    await counted(setup, ada.id, bounced=100)
    assert (await scoring(setup).score()).throttled == 1
    setup.clock.forward(7 * 3600)
    assert await scoring(setup).score() == Scored(1, 0, 0)
    setup.clock.forward(3600)
    await admitted(setup, ada.id)
    assert await scoring(setup).score() == Scored(1, 0, 0)
    assert (await show(setup)).lane == "throttled"
    setup.clock.forward(17 * 3600)
    assert await scoring(setup).score() == Scored(1, 0, 1)
    shown = await show(setup)
    assert (shown.lane, shown.abuse_score, shown.throttled_until) == ("normal", 0, None)
    assert await scoring(setup).score() == Scored()


async def test_who_was_released_by_hand_is_not_throttled_again_for_the_same_counts(setup: JobSetup) -> None:
    ada = await old_sender(setup)
    await counted(setup, ada.id, bounced=100)
    await scoring(setup).score()
    await setup.database.run(senders.release_sender(ADA, signed(), setup.clock()))
    for _ in range(5):
        assert (await scoring(setup).score()).throttled == 0
        setup.clock.forward(1800)
    await counted(setup, ada.id, bounced=100)
    assert (await scoring(setup).score()).throttled == 1


async def test_a_throttle_by_hand_ends_by_itself(setup: JobSetup) -> None:
    await throttled(setup)
    assert await scoring(setup, "off").score() == Scored(1, 0, 0)
    setup.clock.forward(4 * 3600)
    assert await scoring(setup, "off").score() == Scored(1, 0, 1)


async def test_who_only_observes_writes_scores_and_throttles_nobody(setup: JobSetup) -> None:
    ada = await added(setup)
    await counted(setup, ada.id, bounced=100)
    assert await scoring(setup, "observe", ("mail",)).score() == Scored(1, 0, 0)
    shown = await show(setup)
    assert (shown.abuse_score, shown.throttled_until) == (60, None)
    assert await setup.claim() == []


async def test_with_detection_off_nobody_is_scored(setup: JobSetup) -> None:
    ada = await added(setup)
    await counted(setup, ada.id, bounced=100)
    assert await scoring(setup, "off").score() == Scored(1, 0, 0)
    assert (await show(setup)).abuse_score == 0


async def test_all_pages_are_scored_and_only_senders_with_something_new(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.outbound.queue.scoring.PAGE", 3)
    made = [await added(setup, f"user{number}@example.com") for number in range(8)]
    await setup.database.run(count([SenderCount(each.id, bounced=50) for each in made[:7]], setup.clock()))
    assert await scoring(setup).score() == Scored(7, 7, 0)
    assert [each.abuse_score for each in await setup.database.run(senders.list_senders(setup.clock()))] == [60] * 7 + [
        0
    ]


# counts and figures


async def test_the_time_to_detect_counts_from_the_first_mail_that_failed(setup: JobSetup) -> None:
    """Not from the beginning of its hour, and not from mail that was delivered hours before."""
    ada = await added(setup)
    await counted(setup, ada.id, delivered=5)
    setup.clock.forward(5 * 3600 + 1700)
    await counted(setup, ada.id, delivered=5, bounced=60)
    setup.clock.forward(40)
    await counted(setup, ada.id, bounced=60)
    setup.clock.forward(80)
    assert (await scoring(setup).score()).throttled == 1
    figures = await setup.database.run(
        sender_counts.throttle_figures(setup.clock() - timedelta(hours=1), setup.clock())
    )
    assert figures.detection_s == (120.0,)


async def test_the_time_to_detect_volume_alone_counts_from_the_first_mail(setup: JobSetup) -> None:
    setup.clock.forward(1000)
    ada = await added(setup)
    await admitted(setup, ada.id, 301, WIDE)
    setup.clock.forward(90)
    assert (await scoring(setup).score()).throttled == 1
    figures = await setup.database.run(
        sender_counts.throttle_figures(setup.clock() - timedelta(hours=1), setup.clock())
    )
    assert figures.detection_s == (90.0,)


async def test_counts_of_one_sender_are_summed_and_those_of_a_month_ago_forgotten(setup: JobSetup) -> None:
    ada = await added(setup)
    both = [SenderCount(ada.id, delivered=1), SenderCount(ada.id, delivered=2, rejected=3)]
    await setup.database.run(count(both, setup.clock()))
    await setup.database.run(count([], setup.clock()))
    (found,) = await setup.database.run(sender_counts.scored_senders(setup.clock(), 0, 10, setup.clock()))
    assert (found.delivered, found.rejected, found.active_since) == (3, 3, setup.clock())
    setup.clock.forward(36 * DAY)
    await admitted(setup, ada.id)
    await scoring(setup).score()
    rows: dict[str, Any] = await dump(setup.database)
    (hours,) = [each for name, each in rows.items() if name.endswith("sender_hours")]
    assert len(hours) == 1


async def test_the_figures_say_how_many_were_throttled_released_by_hand_and_how_soon(setup: JobSetup) -> None:
    since = setup.clock()
    for name in ("a", "b"):
        sender = await added(setup, f"{name}@example.com")
        await counted(setup, sender.id, bounced=100)
    setup.clock.forward(600)
    await scoring(setup).score()
    await setup.database.run(senders.release_sender("a@example.com", signed(), setup.clock()))
    figures = await setup.database.run(sender_counts.throttle_figures(since, setup.clock()))
    assert figures == (1, 0, 2, 1, (600.0, 600.0))
    later = setup.clock.forward(8 * 3600)
    assert (await setup.database.run(sender_counts.throttle_figures(later, later)))[:4] == (0, 1, 0, 0)
