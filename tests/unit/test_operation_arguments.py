"""The arguments of an operation are read from its function: each for itself, or all as the fields of one object."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from postroom.core.access import READ
from postroom.core.errors import BadInput
from postroom.interfaces.argument_forms import form_of_arguments, read_arguments, values_of
from postroom.operations.operation import Argument, Noun, Operation, Spread
from postroom.operations.registry import operations

Counts = Mapping[Annotated[str, Argument("", 1, 8)], Annotated[int, Argument("", 0, 9)]]


@dataclass(frozen=True, slots=True)
class Order:
    name: Annotated[str, Argument("Whose.", most=4)]
    counts: Counts = field(default_factory=dict[str, int])


async def take(order: Annotated[Order, Spread()], at: int = 1) -> Order:
    return order


def declared() -> Operation:
    noun = Noun("Orders")
    noun.operation(READ)(take)
    return noun.operations[0]


def read(**given: object) -> dict[str, object]:
    operation = declared()
    form = form_of_arguments("Order", operation.arguments)
    return operation.keywords(values_of(operation, read_arguments("take", form, given)))


def test_the_fields_of_a_spread_parameter_are_arguments_and_reach_the_function_as_one_object() -> None:
    assert [each.name for each in declared().arguments] == ["name", "counts", "at"]
    assert read(name="ada", counts={"tea": 2}, at=3) == {"order": Order("ada", {"tea": 2}), "at": 3}


def test_a_field_that_is_left_out_has_its_default() -> None:
    assert read(name="ada") == {"order": Order("ada"), "at": 1}


@pytest.mark.parametrize(
    ("given", "named"), [({}, "name"), ({"name": "grace"}, "name"), ({"name": "ada", "cup": 1}, "cup")]
)
def test_fields_are_checked_and_named_like_other_arguments(given: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(**given)
    assert refused.value.field == named


async def change(document: Annotated[str, Argument("As in a file.", sent_as="rule")]) -> None:
    pass


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({}, "rule: is missing; As in a file."),
        ({"rule": 1}, "rule: Input should be a valid string; As in a file."),
        ({"rule": "x", "document": "x"}, "document: is not an argument of change; leave it out; change takes rule"),
    ],
)
def test_refusals_name_an_argument_as_it_is_sent(given: dict[str, object], refusal: str) -> None:
    noun = Noun("Rules")
    noun.operation(READ)(change)
    with pytest.raises(BadInput) as refused:
        read_arguments("change", form_of_arguments("Change", noun.operations[0].arguments), given)
    assert str(refused.value) == refusal


@pytest.mark.parametrize("counts", [{"": 1}, {"oversized": 1}, {"\0": 1}, {"tea": 10}])
def test_the_keys_and_values_of_a_mapping_are_bounded(counts: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        read(name="ada", counts=counts)


def test_every_operation_has_a_name_of_its_own() -> None:
    """Keys of pages are sealed with it, and the API calls the operation so."""
    found = Counter(each.id for each in operations())
    assert [name for name, count in found.items() if count > 1] == []
