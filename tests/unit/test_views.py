"""The marks on a view say which of its fields are shown outside, and which of them strangers wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar, NamedTuple

from postroom.core.views import Field, Internal, Page, Shown, Untrusted, is_view, name_of, shown_fields


@dataclass(frozen=True, slots=True)
class Parcel:
    """A view with every mark."""

    SIZES: ClassVar[tuple[str, ...]] = ("small", "large")

    id: int
    shelf: Internal[str]
    sender: Untrusted[str]
    note: Annotated[Untrusted[str | None], "What the sender wrote on it."]
    weight_g: Annotated[int, "With its wrapping."] = 0
    _opened: list[str] = field(default_factory=list[str])

    @property
    def is_heavy(self) -> Annotated[Shown[bool], "Whether two must carry it."]:
        """Weighed at the door."""
        return self.weight_g > 20_000

    @property
    def label(self) -> Shown[Untrusted[str]]:
        """The sender and the note.

        As they are printed.
        """
        return f"{self.sender}: {self.note}"

    @property
    def place(self) -> str:
        return f"{self.shelf}/{self.id}"


class Stamp(NamedTuple):
    """A view that is a tuple."""

    number: int
    motif: Untrusted[str]

    @property
    def is_sheet(self) -> Shown[bool]:
        return self.number > 1


@dataclass(frozen=True, slots=True)
class ParcelPage(Page[Parcel]):
    counted: Mapping[str, Stamp]


@dataclass(frozen=True, slots=True)
class FirstParcels(ParcelPage):
    waited: timedelta


def names(view: Any) -> list[str]:
    return [each.name for each in shown_fields(view)]


def test_public_fields_are_shown_in_their_order_and_then_the_properties_that_are_marked():
    assert names(Parcel) == ["id", "sender", "note", "weight_g", "is_heavy", "label"]


def test_a_field_that_is_internal_or_private_is_not_shown():
    assert not {"shelf", "_opened", "place", "SIZES"} & set(names(Parcel))


def test_text_of_strangers_is_marked_whatever_else_is_said_about_it():
    assert [each.name for each in shown_fields(Parcel) if each.is_untrusted] == ["sender", "note", "label"]


def test_a_string_among_the_marks_describes_the_field_and_comes_before_the_docstring_of_a_property():
    described = {each.name: each.description for each in shown_fields(Parcel)}
    assert described == {
        "id": None,
        "sender": None,
        "note": "What the sender wrote on it.",
        "weight_g": "With its wrapping.",
        "is_heavy": "Whether two must carry it.",
        "label": "The sender and the note.\n\nAs they are printed.",
    }


def test_the_type_of_a_field_is_without_its_marks():
    types = {each.name: each.type for each in shown_fields(Parcel)}
    assert (types["id"], types["note"], types["is_heavy"]) == (int, str | None, bool)


def test_a_named_tuple_is_a_view_without_the_methods_of_tuples():
    assert shown_fields(Stamp) == (
        Field("number", int, False, None, "number", False),
        Field("motif", str, True, None, "motif", False),
        Field("is_sheet", bool, False, None, "is_sheet", False),
    )


def test_a_page_has_lines_of_its_view_and_a_cursor():
    lines, cursor = shown_fields(Page[Parcel])
    assert (lines.name, lines.type) == ("lines", Sequence[Parcel])
    assert (cursor.name, cursor.type) == ("next", str | None)


def test_a_page_with_fields_of_its_own_has_them_after_the_lines():
    assert [(each.name, each.type) for each in shown_fields(ParcelPage)] == [
        ("lines", Sequence[Parcel]),
        ("next", str | None),
        ("counted", Mapping[str, Stamp]),
    ]


def test_a_view_of_a_page_keeps_the_lines_of_that_page():
    assert shown_fields(FirstParcels)[0].type == Sequence[Parcel]
    assert names(FirstParcels) == ["lines", "next", "counted", "waited"]


def test_a_page_is_named_for_its_lines():
    assert (name_of(Parcel), name_of(Page[Parcel]), name_of(ParcelPage)) == ("Parcel", "ParcelPage", "ParcelPage")


def test_dataclasses_named_tuples_and_pages_are_views_and_plain_types_are_not():
    assert all(is_view(each) for each in (Parcel, Stamp, Page[Parcel], ParcelPage))
    plain: tuple[object, ...] = (str, tuple, tuple[int, ...], list[Parcel], Mapping[str, Parcel], Parcel | None, None)
    assert not any(is_view(each) for each in plain)
