"""The parameters of statements, filled from objects by name."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.filling import fill

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ID = UUID(int=7)


@dataclass(frozen=True, slots=True)
class Pause:
    scope: str
    reason: str
    set_by: str


class Consent(NamedTuple):
    client_id: str
    level: str
    scopes: frozenset[str] | None
    granted_at: datetime = NOW
    dies_at: datetime | None = None


def test_parameters_are_the_fields_of_an_object_in_the_order_of_the_header() -> None:
    assert fill("insert_pause", Pause("all", "a reason", "ada"), now=NOW).parameters == ("all", "a reason", "ada", NOW)


def test_a_value_given_by_name_goes_before_a_field() -> None:
    assert fill("insert_pause", Pause("all", "a", "ada"), reason="b", now=NOW).parameters == ("all", "b", "ada", NOW)


def test_the_first_object_with_a_field_gives_it() -> None:
    first, second = Pause("all", "first", "ada"), Pause("x", "second", "eve")
    assert fill("insert_pause", first, second, now=NOW).parameters == ("all", "first", "ada", NOW)


def test_json_is_encoded_with_sets_sorted_and_none_left_alone() -> None:
    filled = fill("upsert_consent", Consent("c", "read", frozenset({"b", "a"})), account_id=ID)
    assert filled.parameters == (ID, "c", "read", '["a","b"]', NOW, None)
    assert fill("upsert_consent", Consent("c", "read", None), account_id=ID).parameters[3] is None


def test_text_given_under_the_whole_name_is_json_already() -> None:
    assert fill("upsert_consent", Consent("c", "read", None), account_id=ID, scopes_json="[1]").parameters[3] == "[1]"


def test_fields_of_a_base_class_count_and_methods_do_not() -> None:
    @dataclass(frozen=True, slots=True)
    class LongPause(Pause):
        now: datetime

    assert fill("insert_pause", LongPause("all", "a", "ada", NOW)).parameters == ("all", "a", "ada", NOW)
    with pytest.raises(LookupError, match="nothing gives scope to the statement insert_pause"):
        fill("insert_pause", ("count", "index"), now=NOW)


def test_a_parameter_that_nothing_gives_is_a_bug() -> None:
    with pytest.raises(LookupError, match="nothing gives now to the statement insert_pause"):
        fill("insert_pause", Pause("all", "a", "ada"))


def test_a_value_that_nothing_takes_is_a_bug() -> None:
    with pytest.raises(LookupError, match="the statement insert_pause has no parameter until"):
        fill("insert_pause", Pause("all", "a", "ada"), now=NOW, until=NOW)


def test_a_rule_fills_its_statement() -> None:
    draft = RuleDraft("a rule", {"sender_domain": "example.com"}, "archive")
    filled = fill("insert_rule", draft, id=ID, mode="active", confirmed_hash=None, origin="user", now=NOW)
    assert filled.parameters[:2] == (ID, "a rule")
    assert filled.parameters[6] == '{"sender_domain":"example.com"}'
