"""The walk of a backfill: its order, what it ingests and counts, and how it stops."""

import asyncio
from datetime import date, timedelta
from itertools import pairwise

import pytest

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.window import Window
from postroom.core.days import zone_named
from postroom.core.errors import (
    AccountUnusable,
    BadInput,
    Conflict,
    IntakeRefused,
    MailboxBusy,
    MailboxFailed,
    MailboxUnreachable,
    NeedsPerson,
    RequestRefused,
    SwitchboardUnavailable,
)
from postroom.core.mail.ingestion import IngestionPolicy, IngestionRule
from support.backfill import (
    ENDPOINT,
    UNTIL_2025,
    BackfillSetup,
    at,
    backfill_setup,
    deliver,
    walk,
)
from support.jumping_loop import now, run


def read_ids(setup: BackfillSetup) -> list[str]:
    return [id for _, ids in setup.source.read for id in ids]


def test_mail_is_walked_backward_span_by_span_in_the_order_of_ids() -> None:
    setup = backfill_setup()
    ids = deliver(setup, *(at(month, day) for month in (1, 2, 3) for day in (1, 15, 28)))
    assert run(walk(setup)) == "completed"
    assert read_ids(setup) == sorted(ids, key=lambda id: (len(id), id), reverse=True)
    assert (setup.board.processed, setup.board.skipped) == (9, 0)
    assert setup.board.by_category == {"finance": 9}
    assert set(setup.source.uses) == {"bulk"}


def test_envelopes_have_the_key_of_live_mail_and_name_the_job() -> None:
    setup = backfill_setup()
    (id,) = deliver(setup, at(2, 1))
    run(walk(setup))
    control = setup.board.envelopes[id]["control"]
    assert control["idempotency_key"] == f"gmail:{ENDPOINT}:{id}"
    assert control["backfill_job_id"] == str(setup.board.job_id)


def test_spans_of_many_pages_are_listed_in_full() -> None:
    setup = backfill_setup()
    ids = deliver(setup, *(at(2, 10) + timedelta(seconds=number) for number in range(1_203)))
    run(walk(setup))
    assert set(setup.board.envelopes) == set(ids)
    assert setup.board.processed == 1_203


def test_both_end_days_are_included_and_nothing_beyond_them() -> None:
    zone = zone_named("America/New_York")
    window = Window(at(3, 1).date(), at(3, 31).date(), zone)
    setup = backfill_setup(window=window)
    second = timedelta(seconds=1)
    inside = deliver(setup, window.start, window.end - second)
    deliver(setup, window.start - second, window.start - timedelta(days=1), window.end, window.end + second)
    assert run(walk(setup)) == "completed"
    assert set(setup.board.envelopes) == set(inside)
    assert (setup.board.processed, setup.board.skipped) == (2, 0)


def test_mail_at_the_border_of_two_spans_is_counted_once() -> None:
    setup = backfill_setup()
    border = at(3, 1, 0)
    assert border in {UNTIL_2025.end - timedelta(days=31)}
    ids = deliver(setup, border, border - timedelta(seconds=1), border + timedelta(seconds=1))
    run(walk(setup))
    assert set(setup.board.envelopes) == set(ids)
    assert setup.board.processed == 3


def test_mail_in_no_category_and_mail_that_did_not_come_in_are_skipped() -> None:
    setup = backfill_setup(window=Window(at(2, 1).date(), at(2, 28).date(), zone_named("UTC")))
    deliver(setup, at(2, 1), labels=("SENT",))
    deliver(setup, at(2, 2), labels=("DRAFT",))
    deliver(setup, at(2, 3), subject="Lunch?")
    setup.source.found_too = deliver(setup, at(2, 4), subject="Found, and in no category")
    run(walk(setup))
    assert setup.board.envelopes == {}
    assert (setup.board.processed, setup.board.skipped) == (0, 3)


def test_the_ingestion_policy_applies_as_for_live_mail() -> None:
    rules = (
        IngestionRule(1, "unwanted", "header_equals", "skip", "no", "x-wanted"),
        IngestionRule(2, "hardly wanted", "header_equals", "metadata", "hardly", "x-wanted"),
    )
    setup = backfill_setup(message_cost_micros=30_000)
    setup.policy = lambda: IngestionPolicy(rules)
    deliver(setup, at(2, 1), more="X-Wanted: no\r\n")
    (part,) = deliver(setup, at(2, 2), more="X-Wanted: hardly\r\n")
    (whole,) = deliver(setup, at(2, 3))
    run(walk(setup))
    tiers = {id: envelope["control"]["ingestion_tier"] for id, envelope in setup.board.envelopes.items()}
    assert tiers == {part: "metadata", whole: "full"}
    assert (setup.board.processed, setup.board.skipped, setup.board.spent_micros) == (2, 1, 30_000)


def test_duplicates_are_processed_and_cost_nothing() -> None:
    setup = backfill_setup(message_cost_micros=30_000)
    ids = deliver(setup, at(2, 1), at(2, 2))
    setup.board.envelopes[ids[0]] = {"control": {}}
    run(walk(setup))
    assert (setup.board.processed, setup.board.spent_micros) == (2, 30_000)


def test_progress_is_reported_every_so_many_messages_and_every_30_s() -> None:
    setup = backfill_setup(rate_limit_per_hour=7_200)
    setup.interval = 10
    deliver(setup, *(at(2, 10, minute=number % 60, hour=number // 60) for number in range(45)))
    run(walk(setup))
    sizes = [report.processed for _, report in setup.board.reports]
    assert max(sizes) == 10
    assert sum(sizes) == 45
    assert [report.batch_seq for _, report in setup.board.reports] == list(range(1, len(sizes) + 1))

    slow = backfill_setup(rate_limit_per_hour=10)
    deliver(slow, at(2, 1), at(2, 2), at(2, 3))
    run(walk(slow))
    times = [moment for moment, _ in slow.board.reports]
    assert times[-1] >= 2 * 360
    assert max(after - before for before, after in pairwise(times)) <= 30


def test_the_rate_is_smooth_and_holds_across_restarts() -> None:
    setup = backfill_setup(rate_limit_per_hour=100, wait_s=20.0)
    deliver(setup, *(at(2, day) for day in range(1, 11)))
    run(walk(setup))
    times = [moment for moment, _ in setup.source.read]
    assert times[0] == 20
    assert [after - before for before, after in pairwise(times)] == pytest.approx([36.0] * 9)


@pytest.mark.parametrize("status", ["paused", "cancelled", "cost_capped", "error", "completed"])
def test_it_stops_at_once_in_the_middle_of_a_wait(status: str) -> None:
    setup = backfill_setup(rate_limit_per_hour=1)
    deliver(setup, at(2, 1), at(2, 2))

    async def told() -> float:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(100)
        setup.board.status = status
        assert await working == status
        return now()

    assert run(told()) <= 130
    assert len(setup.board.envelopes) == 1


def test_a_refusal_of_the_intake_stops_the_walk_and_counts_nothing() -> None:
    setup = backfill_setup()
    setup.interval = 1
    ids = sorted(deliver(setup, *(at(2, day) for day in range(1, 6))), reverse=True)

    def pause_after_two(step: str) -> None:
        if step == "ingest" and len(setup.board.envelopes) == 2:
            setup.board.status = "paused"

    setup.step_with(pause_after_two)
    assert run(walk(setup)) == "paused"
    assert set(setup.board.envelopes) == set(ids[:2])
    assert setup.board.processed <= 2
    setup.step_with(lambda _step: None)
    setup.board.status = "pending"
    assert run(walk(setup)) == "completed"
    assert setup.board.processed == 5


def test_a_message_that_always_fails_is_recorded_and_passed() -> None:
    setup = backfill_setup()
    ids = deliver(setup, *(at(2, day) for day in range(1, 6)))
    setup.source.errors[ids[2]] = MailboxFailed("500")
    setup.board.refuse[ids[3]] = BadInput("payload", "is bad", "do not")
    assert run(walk(setup)) == "completed"
    assert (setup.board.processed, setup.board.skipped) == (3, 2)
    assert dict(setup.board.failed) == {ids[2]: "MailboxFailed", ids[3]: "BadInput: payload"}


def test_a_message_that_fails_for_now_is_tried_again() -> None:
    setup = backfill_setup()
    ids = deliver(setup, at(2, 1), at(2, 2))
    setup.source.errors[ids[0]] = MailboxFailed("500")

    async def recovers() -> str:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(3)
        del setup.source.errors[ids[0]]
        return await working

    assert run(recovers()) == "completed"
    assert (setup.board.processed, setup.board.failed) == (2, [])


def test_the_only_message_of_a_mailbox_that_fails_is_passed_too() -> None:
    setup = backfill_setup()
    (id,) = deliver(setup, at(2, 1))
    setup.source.errors[id] = MailboxFailed("500")
    assert run(walk(setup)) == "completed"
    assert dict(setup.board.failed) == {id: "MailboxFailed"}


@pytest.mark.parametrize("error", [MailboxFailed("503"), MailboxUnreachable("gone"), MailboxBusy("429"), OSError()])
def test_a_mailbox_that_fails_is_waited_for_and_nothing_is_skipped(error: Exception) -> None:
    setup = backfill_setup()
    ids = deliver(setup, *(at(2, day) for day in range(1, 6)))
    until = 400.0

    def outage(step: str) -> None:
        if step in ("read", "search", "sync") and now() < until:
            raise error

    setup.step_with(outage)
    assert run(walk(setup)) == "completed"
    assert set(setup.board.envelopes) == set(ids)
    assert (setup.board.processed, setup.board.skipped) == (5, 0)
    times = [moment for moment, _ in setup.board.reports]
    assert max(after - before for before, after in pairwise(times)) <= 30.001


def test_every_message_failing_is_a_failing_mailbox() -> None:
    setup = backfill_setup()
    ids = deliver(setup, *(at(2, day) for day in range(1, 6)))
    setup.source.errors = dict.fromkeys(ids, MailboxFailed("500"))

    async def recovers() -> str:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(500)
        assert setup.board.skipped == 0
        setup.source.errors.clear()
        return await working

    assert run(recovers()) == "completed"
    assert (setup.board.processed, setup.board.failed) == (5, [])


@pytest.mark.parametrize("error", [NeedsPerson("consent lost"), AccountUnusable("paused", "it is paused", "resume it")])
def test_a_mailbox_that_needs_a_person_ends_the_work_and_leaves_the_job_as_it_is(error: Exception) -> None:
    setup = backfill_setup()
    setup.board.rate_limit_per_hour = 3_600
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    def lost(step: str) -> None:
        if step == "read" and len(setup.source.read) == 2:
            raise error

    setup.step_with(lost)
    with pytest.raises(type(error)):
        run(walk(setup))
    assert setup.board.status == "active"
    assert (setup.board.processed, setup.board.skipped) == (2, 0)


def test_a_search_that_is_refused_ends_the_job_with_the_reason() -> None:
    setup = backfill_setup()

    def refuse(step: str) -> None:
        if step == "search":
            raise RequestRefused("400: bad query")

    setup.step_with(refuse)
    assert run(walk(setup)) == "error"
    assert setup.board.error is not None
    assert "RequestRefused" in setup.board.error


def test_nothing_is_read_or_ingested_while_progress_does_not_get_through() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    setup.interval = 5
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))
    outage = (12.0, 300.0)
    seen: list[tuple[float, str]] = []

    def away(step: str) -> None:
        seen.append((now(), step))
        if step == "report" and outage[0] <= now() < outage[1]:
            raise SwitchboardUnavailable("away")

    setup.step_with(away)
    assert run(walk(setup)) == "completed"
    first_failed = next(moment for moment, step in seen if step == "report" and moment >= outage[0])
    blind = [step for moment, step in seen if first_failed < moment < outage[1]]
    assert set(blind) == {"report"}
    assert setup.board.processed == 40
    assert len(setup.board.envelopes) == 40


def test_a_report_whose_answer_was_lost_is_repeated_unchanged() -> None:
    setup = backfill_setup()
    setup.interval = 5
    deliver(setup, *(at(2, 10, minute=number) for number in range(20)))
    setup.board.lose_answers = [SwitchboardUnavailable("lost"), SwitchboardUnavailable("lost")]
    setup.board.fail_reports = [SwitchboardUnavailable("away")]
    assert run(walk(setup)) == "completed"
    assert setup.board.processed == 20
    reports = [report for _, report in setup.board.reports]
    assert reports[0] == reports[1] == reports[2]


def test_intake_without_room_is_waited_for_and_counted_once() -> None:
    setup = backfill_setup(message_cost_micros=1_000)
    ids = deliver(setup, *(at(2, day) for day in range(1, 6)))
    setup.board.refuse = {ids[1]: IntakeRefused("no room", timedelta(seconds=7))}

    async def recovers() -> str:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(100)
        assert len(setup.board.envelopes) == 4
        setup.board.refuse.clear()
        return await working

    assert run(recovers()) == "completed"
    assert (setup.board.processed, setup.board.spent_micros) == (5, 5_000)


@pytest.mark.parametrize("error", [Conflict("batch_seq", "is 3", "use 2"), BadInput("cursor", "is bad", "fix it")])
def test_a_report_that_is_refused_ends_the_work(error: BadInput) -> None:
    setup = backfill_setup()
    deliver(setup, at(2, 1))
    setup.board.fail_reports = [error]
    assert run(walk(setup)) == "lost"
    assert setup.source.read == []


def test_a_lost_lease_ends_the_work() -> None:
    setup = backfill_setup(rate_limit_per_hour=60)
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    async def taken_over() -> str:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(70)
        setup.board.lease_token = "another"
        return await working

    assert run(taken_over()) == "lost"
    assert len(setup.source.read) == 2


def test_the_cap_is_exceeded_by_less_than_one_message() -> None:
    setup = backfill_setup(message_cost_micros=30_000, cap_micros=100_000)
    deliver(setup, *(at(2, day) for day in range(1, 20)))
    assert run(walk(setup)) == "cost_capped"
    assert setup.board.spent_micros == 120_000
    assert len(setup.board.envelopes) == 4


def test_live_mail_is_brought_up_to_date_before_a_span_is_ingested() -> None:
    setup = backfill_setup()
    (id,) = deliver(setup, at(3, 31))
    setup.live.on_sync = lambda: setup.board.envelopes.setdefault(id, {"control": {"live": True}})
    run(walk(setup))
    assert setup.board.envelopes[id] == {"control": {"live": True}}
    assert setup.board.processed == 1
    assert setup.live.rounds == 1


def test_in_background_it_waits_while_live_mail_waits_or_is_being_ingested() -> None:
    setup = backfill_setup(in_background=True, rate_limit_per_hour=3_600, live_backlog=True)
    deliver(setup, *(at(2, day) for day in range(1, 6)))
    rounds = asyncio.Lock()
    setup.live.waits = lambda: _passed(rounds)

    async def busy() -> None:
        working = asyncio.create_task(walk(setup))
        await asyncio.sleep(200)
        assert setup.source.read == []
        async with rounds:
            setup.board.live_backlog = False
            await asyncio.sleep(200)
            assert setup.source.read == []
        await asyncio.sleep(2.5)
        assert 1 <= len(setup.source.read) <= 3
        setup.board.live_backlog = True
        await asyncio.sleep(1.5)
        count = len(setup.source.read)
        await asyncio.sleep(100)
        assert len(setup.source.read) == count
        setup.board.live_backlog = False
        assert await working == "completed"

    run(busy())
    assert setup.board.processed == 5
    times = [moment for moment, _ in setup.board.reports]
    assert max(after - before for before, after in pairwise(times)) <= 30


async def _passed(lock: asyncio.Lock) -> None:
    async with lock:
        pass


def test_a_walk_without_mail_completes() -> None:
    setup = backfill_setup()
    assert run(walk(setup)) == "completed"
    assert setup.live.rounds == 0


def test_the_years_before_the_first_message_are_not_searched() -> None:
    setup = backfill_setup(window=Window(date(1970, 1, 1), at(3, 31).date(), zone_named("UTC")))
    setup.interval = 1_000
    ids = deliver(setup, at(3, 1), at(3, 1, year=2020), at(3, 1, year=2019))
    assert run(walk(setup)) == "completed"
    assert set(setup.board.envelopes) == set(ids)
    assert setup.board.cursor == BackfillCursor(date(1969, 12, 31), date(1969, 12, 31))
    assert len(setup.source.searches) < 1_000  # the years from 1970 on would take more than 4,000
