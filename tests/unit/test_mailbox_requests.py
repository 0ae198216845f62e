"""Requests to a mailbox's connector: each argument is checked and named if it is wrong."""

from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.mailbox_requests import RequestKind, checked_arguments


@pytest.mark.parametrize(
    ("kind", "given", "passed"),
    [
        ("sync_now", {}, {}),
        ("ingest", {"message_ids": ["18c0", "a-B_9", "18c0"]}, {"message_ids": ["18c0", "a-B_9"]}),
        ("ingest", {"message_ids": [f"{n}" for n in range(100)]}, {"message_ids": [f"{n}" for n in range(100)]}),
        ("estimate", {"query": " from:ann "}, {"query": "from:ann"}),
        ("estimate", {"query": "x" * 1000}, {"query": "x" * 1000}),
        ("search", {"query": "tax"}, {"query": "tax", "max": 20}),
        ("search", {"query": "tax", "max": 1}, {"query": "tax", "max": 1}),
        ("search", {"query": "tax", "max": 50}, {"query": "tax", "max": 50}),
    ],
)
def test_what_is_right_is_passed_on(kind: RequestKind, given: dict[str, Any], passed: dict[str, Any]) -> None:
    assert checked_arguments(kind, given) == passed


@pytest.mark.parametrize(
    ("kind", "given", "field"),
    [
        ("sync_now", {"query": "tax"}, "query"),
        ("ingest", {}, "message_ids"),
        ("ingest", {"message_ids": "18c0"}, "message_ids"),
        ("ingest", {"message_ids": []}, "message_ids"),
        ("ingest", {"message_ids": ["18c0"] * 101}, "message_ids"),
        ("ingest", {"message_ids": ["18c0", "../18c1"]}, "message_ids.1"),
        ("ingest", {"message_ids": [5]}, "message_ids.0"),
        ("ingest", {"message_ids": ["a" * 129]}, "message_ids.0"),
        ("ingest", {"message_ids": ["18c0"], "query": "tax"}, "query"),
        ("estimate", {}, "query"),
        ("estimate", {"query": 5}, "query"),
        ("estimate", {"query": " "}, "query"),
        ("estimate", {"query": "a\nb"}, "query"),
        ("estimate", {"query": "x" * 1001}, "query"),
        ("estimate", {"query": "tax", "max": 5}, "max"),
        ("search", {"query": "tax", "max": 0}, "max"),
        ("search", {"query": "tax", "max": 51}, "max"),
        ("search", {"query": "tax", "max": True}, "max"),
        ("search", {"query": "tax", "max": "5"}, "max"),
        ("search", {"query": "tax", "most": 5}, "most"),
    ],
)
def test_what_is_wrong_is_named(kind: RequestKind, given: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked_arguments(kind, given)
    assert refused.value.field == field


def test_a_mistyped_name_is_reported_the_right_one() -> None:
    with pytest.raises(BadInput, match=r"did you mean query\?"):
        checked_arguments("search", {"qurey": "tax"})


WINDOW = {"date_from": "2024-02-29", "date_to": "2026-11-16"}


def test_a_sample_of_a_backfill_names_categories_and_days() -> None:
    given = {"categories": ["finance", "health", "finance"], **WINDOW}
    passed = {"categories": ["finance", "health"], **WINDOW, "time_zone": "UTC"}
    assert checked_arguments("backfill_sample", given) == passed
    zoned = {**given, "time_zone": "Europe/Berlin"}
    assert checked_arguments("backfill_sample", zoned) == {**passed, "time_zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"categories": []}, "categories"),
        ({"categories": "finance"}, "categories"),
        ({"categories": ["finanse"]}, "category"),
        ({"date_from": "2026-11-17"}, "date_from"),
        ({"date_from": "1969-12-31"}, "date_from"),
        ({"date_from": None}, "date_from"),
        ({"date_to": "2026-02-30"}, "date_to"),
        ({"date_to": "9999-12-31"}, "date_to"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"query": "tax"}, "query"),
    ],
)
def test_a_wrong_sample_of_a_backfill_is_named(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked_arguments("backfill_sample", {"categories": ["finance"], **WINDOW, **changed})
    assert refused.value.field == field
