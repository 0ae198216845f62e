"""How far a backfill has come: by the estimate if there is one, else by the days of its window."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from postroom.core.backfill.job import BackfillJob
from postroom.core.backfill.standing import standing
from postroom.interfaces.cli.backfill_output import ended_line, progress_line
from postroom.interfaces.cli.backfill_watch import RecentSpeed
from postroom.store.engine.ids import new_id
from postroom.words.backfill import length

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def job_with(**changes: Any) -> BackfillJob:
    job = BackfillJob(
        id=new_id(),
        connector_type="gmail",
        endpoint_identity="gmail:user:ada@example.com",
        target_categories=("finance",),
        date_from=date(2026, 1, 1),
        date_to=date(2026, 4, 10),
        rate_limit_per_hour=100,
        daily_cost_cap_cents=500,
        status="active",
        cursor=None,
        rows_processed=0,
        rows_skipped=0,
        cost_spent_cents=0,
        error=None,
        created_at=NOW - timedelta(hours=3),
        started_at=None,
        completed_at=None,
        updated_at=NOW,
        mode="batch",
        resume_daily=False,
        acts=False,
        message_cost_micros=30_000,
        estimate_id=None,
        lease_token=None,
        lease_until=None,
        lease_holder=None,
        batch_seq=0,
        paced_until=None,
        accepted=0,
        accepted_new=0,
        covered=0,
        rows_failed=0,
        spent_micros=0,
        categories={},
        capped_on=None,
        spent_today_micros=0,
        messages_waiting=0,
    )
    return replace(job, **changes)


def test_one_that_has_not_begun_is_at_zero_and_takes_as_long_as_its_rate_says():
    found = standing(job_with(), 200, None, NOW)
    assert (found.read, found.percent, found.per_hour, found.left) == (0, 0, 0, timedelta(hours=2))


def test_its_speed_is_that_of_its_life_until_a_recent_one_is_known():
    job = job_with(rows_processed=60, rows_skipped=20, started_at=NOW - timedelta(hours=2))
    found = standing(job, 200, None, NOW)
    assert (found.read, found.percent, found.per_hour, found.left) == (80, 40, 40, timedelta(hours=3))
    assert standing(job, 200, 120.0, NOW).left == timedelta(hours=1)


@pytest.mark.parametrize("status", ["completed", "cancelled", "paused", "cost_capped", "error"])
def test_the_speed_of_one_that_is_not_at_work_does_not_fall_any_more(status: str):
    ended = NOW - timedelta(hours=1)
    is_over = status in {"completed", "cancelled"}
    job = job_with(rows_processed=80, status=status, started_at=NOW - timedelta(hours=3), updated_at=ended,
        completed_at=ended if is_over else None)  # fmt: skip
    speeds = {standing(job, 200, None, NOW + timedelta(days=days)).per_hour for days in (0, 1, 30)}
    assert speeds == {40.0}


def test_without_an_estimate_the_days_that_are_done_count():
    job = job_with(cursor={"day": "2026-03-01", "since": "2026-02-01", "id": "18c"})
    found = standing(job, None, None, NOW)
    assert (found.percent, found.expected, found.left) == (40, None, None)


def test_only_one_that_is_completed_is_at_a_hundred_percent():
    assert standing(job_with(rows_processed=300), 200, None, NOW).percent == 99
    assert standing(job_with(), 0, None, NOW).percent == 99
    assert standing(job_with(rows_processed=180, status="completed"), 200, None, NOW).percent == 100


def test_the_line_has_bar_counts_speed_spend_and_time_left():
    job = job_with(
        rows_processed=60,
        rows_skipped=20,
        started_at=NOW - timedelta(hours=2),
        cost_spent_cents=180,
        spent_micros=1_500_000,
        messages_waiting=10,
        spent_today_micros=1_230_000,
    )
    assert progress_line(job, standing(job, 200, None, NOW)) == (
        "[########------------] 40 %  80 of about 200 read  40 an hour  $1.50 spent, $0.30 expected, "
        "today $1.23 of $5.00  about 3.0 h left  active"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "completed", "rows_processed": 5, "messages_waiting": 2}, "2 messages wait for a decision"),
        ({"status": "cancelled"}, "and stay"),
        ({"status": "cost_capped"}, "The cap of $5.00 a day is reached; tomorrow"),
        ({"status": "error", "error": "the mailbox refuses the search"}, "It failed: the mailbox refuses the search"),
        ({"status": "error", "error": "\x1b[2J\u202eno\nyes"}, "It failed: \\x1b[2J\\u202eno\\nyes; "),
        ({"status": "paused"}, "postroom backfill resume"),
    ],
)
def test_how_it_ended_says_what_to_do(changes: dict[str, Any], words: str):
    assert words in ended_line(job_with(**changes))


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (timedelta(0), "0 min"),
        (timedelta(seconds=5), "1 min"),
        (timedelta(minutes=59), "59 min"),
        (timedelta(hours=5), "5.0 h"),
        (timedelta(days=3), "3.0 days"),
    ],
)
def test_a_length_of_time_has_the_unit_that_suits_it(time: timedelta, shown: str):
    assert length(time) == shown


def test_the_recent_speed_is_that_of_the_last_minutes():
    speed = RecentSpeed()
    assert speed.per_hour(0, NOW) is None
    assert speed.per_hour(5, NOW + timedelta(seconds=10)) is None
    assert speed.per_hour(10, NOW + timedelta(seconds=60)) == 600
    assert speed.per_hour(10, NOW + timedelta(seconds=350)) == 0
