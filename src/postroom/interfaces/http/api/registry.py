"""The operations of the API, in the order in which references list them."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.interfaces.http.api import own_description  # noqa: F401  # pyright: ignore[reportUnusedImport]
from postroom.interfaces.http.api.operation import ApiOperation
from postroom.operations.registry import nouns


@dataclass(frozen=True, slots=True)
class ApiNoun:
    """The operations of one noun that are in the API."""

    title: str
    operations: Sequence[ApiOperation]


NOUNS = tuple(ApiNoun(each.title, [ApiOperation(of, of.http) for of in each.operations if of.http]) for each in nouns())
OPERATIONS = tuple(operation for noun in NOUNS for operation in noun.operations)
