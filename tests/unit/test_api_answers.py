"""Answers of the JSON API are the views of operations: text of strangers is under `untrusted`, wherever it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest

from postroom.core.views import Internal, Named, OrAbsent, Page, Shown, Untrusted
from postroom.interfaces.http.answers import form_of, json_of
from postroom.interfaces.http.api.openapi import openapi
from postroom.operations.problems import ProblemForm

ID = UUID("018f0000-0000-7000-8000-000000000001")
AT = datetime(2026, 11, 18, 6, 30, tzinfo=UTC)


class Sender(NamedTuple):
    tenant: str
    address: Untrusted[str]


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter as it is listed."""

    id: UUID
    at: datetime
    shelf: Internal[str]
    sender: Sender
    subject: Annotated[Untrusted[str], "As its sender wrote it."]
    headers: Untrusted[Mapping[str, Any]]
    waited: timedelta
    read_after: timedelta | None = None

    @property
    def is_late(self) -> Shown[bool]:
        """Whether it waited for more than a minute."""
        return self.waited > timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LetterPage(Page[Letter]):
    unread: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Its text is Postroom's own; a letter's is not."""

    subject: str
    shelf: str
    waited: timedelta


@dataclass(frozen=True, slots=True)
class Box:
    newest: Notice | Letter | None
    by_year: Mapping[int, Sequence[Letter]]
    first: tuple[Letter, int] | None = None
    waits: tuple[timedelta, ...] = ()
    state: Literal["open", "full"] = "open"


def letter(subject: str = "Invoice") -> Letter:
    return Letter(ID, AT, "B7", Sender("example.org", "ada@example.org"), subject, {}, timedelta(seconds=90))


SHOWN = {
    "id": str(ID),
    "at": "2026-11-18T06:30:00.000000Z",
    "sender": {"tenant": "example.org", "untrusted": {"address": "ada@example.org"}},
    "waited_s": 90.0,
    "read_after_s": None,
    "is_late": True,
    "untrusted": {"subject": "Invoice", "headers": {}},
}


def test_text_of_strangers_is_apart_and_internal_fields_are_left_out():
    assert json_of(Letter, letter()) == SHOWN


def test_a_view_without_text_of_strangers_has_no_such_part():
    assert json_of(Notice, Notice("Full", "B7", timedelta(0))) == {"subject": "Full", "shelf": "B7", "waited_s": 0.0}


def test_views_within_a_page_are_shown_like_others():
    assert json_of(Page[Letter], Page([letter()], None)) == {"lines": [SHOWN], "next": None}
    assert json_of(LetterPage, LetterPage([letter()], "more", 3)) == {"lines": [SHOWN], "next": "more", "unread": 3}


def test_views_within_mappings_lists_and_tuples_are_shown_like_others():
    shown = json_of(Box, Box(None, {2026: [letter()]}, (letter(), 1), (timedelta(seconds=2),)))
    assert shown == {
        "newest": None,
        "by_year": {"2026": [SHOWN]},
        "first": [SHOWN, 1],
        "waits_s": [2.0],
        "state": "open",
    }


def test_of_several_views_each_is_shown_in_its_own_form_whatever_attributes_they_share():
    assert json_of(Box, Box(letter(), {}))["newest"] == SHOWN
    assert json_of(Box, Box(Notice("Full", "B7", timedelta(0)), {}))["newest"]["subject"] == "Full"


def test_another_object_with_the_same_attributes_is_refused():
    with pytest.raises(TypeError, match="Letter is no Notice"):
        json_of(Notice, letter())


@pytest.mark.parametrize("key", ["untrusted", "__class__", "model_config", "subject"])
def test_the_keys_of_a_strangers_data_are_data(key: str):
    sent = Letter(ID, AT, "B7", Sender("example.org", "x"), "Hi", {key: {key: 1}}, timedelta(0))
    assert json_of(Letter, sent)["untrusted"] == {"subject": "Hi", "headers": {key: {key: 1}}}


@dataclass(frozen=True, slots=True)
class Parcel:
    labels: Sequence[str]
    own_labels: Annotated[Untrusted[Sequence[str]], Named("labels")]
    sender: Annotated[Untrusted[str], Named("from")]
    weight: OrAbsent[float] = None
    note: Untrusted[OrAbsent[str]] = None


def test_a_field_may_be_shown_under_another_name():
    shown = json_of(Parcel, Parcel(["INBOX"], ["Fragile"], "ada@example.org", 1, "sign here"))
    hidden = {"labels": ["Fragile"], "from": "ada@example.org", "note": "sign here"}
    assert shown == {"labels": ["INBOX"], "weight": 1.0, "untrusted": hidden}


def test_a_field_that_may_be_absent_is_left_out_and_the_schema_says_so():
    shown = json_of(Parcel, Parcel([], [], "ada@example.org"))
    assert shown == {"labels": [], "untrusted": {"labels": [], "from": "ada@example.org"}}
    schema = form_of(Parcel).model_json_schema(mode="serialization")
    assert schema["required"] == ["labels", "untrusted"]
    assert schema["properties"]["weight"] == {"title": "Weight", "type": "number"}


def test_a_field_that_has_the_name_of_the_part_of_strangers_is_refused():
    with pytest.raises(TypeError, match="Odd has a field 'untrusted'"):
        form_of(make_dataclass("Odd", [("untrusted", str), ("subject", Untrusted[str])]))


def test_a_mark_within_the_type_of_a_field_is_refused_since_it_would_be_lost():
    with pytest.raises(TypeError, match="mark the field"):
        form_of(make_dataclass("Odd", [("subjects", list[Untrusted[str]])]))


def test_a_type_in_which_views_would_not_be_found_is_refused():
    with pytest.raises(TypeError, match="cannot be shown"):
        form_of(make_dataclass("Odd", [("letters", Iterable[Letter])]))


def test_the_schema_has_the_names_and_descriptions_of_the_view():
    schema = form_of(LetterPage).model_json_schema(mode="serialization")
    parts = schema["$defs"]
    assert (schema["title"], sorted(parts)) == (
        "LetterPage",
        ["Letter", "Sender", "UntrustedLetter", "UntrustedSender"],
    )
    assert parts["Letter"]["description"] == "A letter as it is listed."
    assert parts["Letter"]["properties"]["is_late"]["description"] == "Whether it waited for more than a minute."
    assert parts["Letter"]["properties"]["waited_s"]["type"] == "number"
    assert parts["UntrustedLetter"]["properties"]["subject"]["description"] == "As its sender wrote it."
    assert "description" not in parts["Sender"]


def test_every_schema_of_the_api_has_a_short_name_since_no_two_views_share_one():
    names = list(openapi()["components"]["schemas"])
    assert [each for each in names if "_" in each] == []


class Refusal(NamedTuple):
    field: str
    error: OrAbsent[ProblemForm] = None


class Receipt(NamedTuple):
    id: UUID


class Deliveries(NamedTuple):
    results: Sequence[Receipt | Refusal]


def test_of_several_views_each_is_written_as_its_own_and_a_problem_as_it_is():
    problem: ProblemForm = {"code": "bad_input", "field": "to", "problem": "is empty", "remedy": "give one"}
    shown = json_of(Deliveries, Deliveries([Refusal("to", problem), Receipt(ID), Refusal("cc")]))
    assert shown == {"results": [{"field": "to", "error": problem}, {"id": str(ID)}, {"field": "cc"}]}
