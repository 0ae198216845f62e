"""Summaries of many small events: what the agent reads, and what is left out."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from postroom.core.queue.envelope import envelope_text, parse_envelope
from postroom.core.queue.summary import LONGEST_SAMPLE, MOST_KINDS, summarise
from postroom.store.engine.codecs import from_json

ID = UUID("01890000-0000-7000-8000-000000000001")
SINCE = datetime(2026, 11, 15, 7, 59, 30, tzinfo=UTC)
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)


def words(kinds: dict[str | None, int], samples: list[str]) -> list[str]:
    return summarise(ID, kinds, samples, SINCE, NOW).payload.normalized_text.split("\n")


def raw(kinds: dict[str | None, int]) -> dict[str, Any]:
    found = summarise(ID, kinds, [], SINCE, NOW).payload.raw
    assert found is not None
    return found


def test_it_says_how_many_of_each_kind_and_the_words_of_the_first_few() -> None:
    assert words({"test.passed": 2, "media.processed": 1}, ["unit", "lint", "cat.jpg"]) == [
        "3 events: 2 × test.passed, 1 × media.processed",
        "- unit",
        "- lint",
        "- cat.jpg",
    ]


def test_it_says_how_many_more_there_are() -> None:
    assert words({"test.passed": 12}, ["one", "two"])[-1] == "- and 10 more"


def test_a_sample_is_one_line_of_bounded_length() -> None:
    _, first, second = words({"x": 2}, ["a\n\n  b\tc", "w" * 1000])
    assert first == "- a b c"
    assert second == f"- {'w' * LONGEST_SAMPLE}…"


def test_a_sample_just_short_enough_is_whole() -> None:
    assert words({"x": 1}, ["w" * LONGEST_SAMPLE])[1] == "- " + "w" * LONGEST_SAMPLE


def test_the_numbers_are_there_for_machines_too() -> None:
    assert raw({"test.passed": 2, None: 1}) == {
        "kinds": {"test.passed": 2, "event": 1},
        "total": 3,
        "since": SINCE.isoformat(),
        "until": NOW.isoformat(),
    }


def test_events_without_a_kind_are_added_to_those_whose_kind_is_just_event() -> None:
    assert raw({None: 3, "event": 2})["kinds"] == {"event": 5}
    assert words({None: 3, "event": 2}, [])[0] == "5 events: 5 × event"


def test_of_many_kinds_the_first_are_named_and_all_are_counted() -> None:
    found = raw({f"kind.{n}": 1 for n in range(MOST_KINDS + 5)})
    assert (len(found["kinds"]), found["total"]) == (MOST_KINDS, MOST_KINDS + 5)


def test_it_is_an_event_of_its_own_that_passes_every_check_of_an_envelope() -> None:
    summary = summarise(ID, {"test.passed": 2}, ["\0 \x1b[31m", "b"], SINCE, NOW)
    assert parse_envelope(from_json(envelope_text(summary))) == summary
    assert (summary.event.external_event_id, summary.event.kind) == (f"summary:{ID}", "summary")
    assert summary.event_key != summarise(UUID(int=ID.int + 1), {"test.passed": 2}, [], SINCE, NOW).event_key
