"""The catalogue of job types, and the checks of enqueued jobs."""

import re
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from postroom.core.errors import BadInput, UnknownJobType
from postroom.core.jobs import retry
from postroom.core.jobs.types import (
    CATALOGUE,
    LONGEST_KEY,
    Catalogue,
    JobType,
    KeyLifetime,
    check_attempts,
    check_priority,
    check_text,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "jobs.md"


def test_the_ten_types_of_the_design_are_there_and_two_of_our_own() -> None:
    assert set(CATALOGUE) == {
        "ingest.gmail",
        "classify",
        "action.gmail",
        "unsnooze.gmail",
        "approval.notify",
        "undo.action",
        "outbound.send",
        "backfill.gmail",
        "history.sync.gmail",
        "labels.sync.gmail",
        "retention.prune",
        "sender.notify",
    }
    assert len(CATALOGUE) == 12


def test_keys_of_recurring_types_and_of_undo_hold_while_live_and_the_others_for_good() -> None:
    """What was undone is known by its link; an undo that failed may be asked for again."""
    while_live = {name for name, kind in CATALOGUE.items() if kind.key_lifetime is KeyLifetime.WHILE_LIVE}
    assert while_live == {"labels.sync.gmail", "history.sync.gmail", "backfill.gmail", "retention.prune", "undo.action"}


def test_types_that_talk_to_others_are_tried_for_longer() -> None:
    for name, kind in CATALOGUE.items():
        others = ("undo.action", "outbound.send", "approval.notify", "sender.notify")
        talks_to_others = name.endswith(".gmail") or name in others
        usual = retry.GMAIL if talks_to_others else retry.DEFAULT
        assert kind.retry == {"classify": retry.CLASSIFY, "unsnooze.gmail": retry.WAKING}.get(name, usual), name


def test_snoozed_mail_comes_back_though_the_machine_was_without_a_network_for_a_week() -> None:
    policy, rng = CATALOGUE["unsnooze.gmail"].retry, Random(1)
    waited = sum((policy.delay(attempt, rng) for attempt in range(1, policy.max_attempts)), timedelta())
    assert waited > timedelta(days=7)
    assert policy.cap <= timedelta(hours=1), "back online, it does not wait long"


def test_every_type_is_tried_as_often_and_waits_as_long_as_the_reference_says() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \| (\d+) \| \d+ s, (\d+) s \|", REFERENCE.read_text(), re.MULTILINE)
    told = {name: (int(attempts), int(longest)) for name, attempts, longest in rows}
    assert told == {name: (kind.retry.max_attempts, kind.retry.cap.total_seconds()) for name, kind in CATALOGUE.items()}


def test_a_job_is_retried_as_its_type_says_and_one_from_elsewhere_as_usual() -> None:
    assert CATALOGUE.retry_policy("ingest.gmail") == retry.GMAIL
    assert CATALOGUE.retry_policy("from.elsewhere") == retry.DEFAULT


def test_an_unknown_type_suggests_the_nearest() -> None:
    with pytest.raises(UnknownJobType, match=r"type: there is no job type 'clasify'; did you mean 'classify'\?"):
        CATALOGUE["clasify"]


def test_an_unknown_type_that_is_like_no_other_is_told_what_there_is() -> None:
    with pytest.raises(UnknownJobType, match="known are: a, b"):
        Catalogue(JobType("b"), JobType("a"))["zzzzzz"]


def test_a_catalogue_can_be_asked_whether_it_knows_a_type() -> None:
    assert "classify" in CATALOGUE
    assert "clasify" not in CATALOGUE
    assert 7 not in CATALOGUE


@pytest.mark.parametrize("priority", [-1000, -1, 0, 1000])
def test_a_priority_in_range_passes(priority: int) -> None:
    check_priority(priority)


@pytest.mark.parametrize("priority", [-1001, 1001, 10**30, True, 0.5, 1.0, "1", None])
def test_any_other_priority_is_refused_with_the_range(priority: object) -> None:
    with pytest.raises(BadInput, match="use a whole number from -1000 to 1000") as refused:
        check_priority(priority)
    assert refused.value.field == "priority"


@pytest.mark.parametrize("attempts", [1, 1000])
def test_attempts_in_range_pass(attempts: int) -> None:
    check_attempts(attempts)


@pytest.mark.parametrize("attempts", [0, -1, 1001, True, 2.5, "3", None])
def test_any_other_attempts_are_refused_with_the_range(attempts: object) -> None:
    with pytest.raises(BadInput, match="use a whole number from 1 to 1000") as refused:
        check_attempts(attempts)
    assert refused.value.field == "max_attempts"


@pytest.mark.parametrize("key", ["k", "k" * LONGEST_KEY, "📮", "a b\n"])
def test_a_key_of_fitting_length_passes(key: str) -> None:
    check_text("idempotency_key", key)


@pytest.mark.parametrize("key", ["", "k" * (LONGEST_KEY + 1), "a\0b", "\ud800"])
def test_any_other_key_is_refused(key: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_text("idempotency_key", key)
    assert refused.value.field == "idempotency_key"
    assert refused.value.remedy
