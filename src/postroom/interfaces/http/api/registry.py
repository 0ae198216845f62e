"""All operations, in the order in which their paths are matched."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.interfaces.http.api import own_description  # noqa: F401  # pyright: ignore[reportUnusedImport]
from postroom.interfaces.http.api.backfill import BACKFILL
from postroom.interfaces.http.api.handwritten import Handwritten, Noun
from postroom.interfaces.http.api.mail import MAIL
from postroom.interfaces.http.api.operation import ApiOperation
from postroom.operations.operation import Noun as TableNoun
from postroom.operations.registry import nouns

_HANDWRITTEN: Sequence[Noun] = (
    MAIL,
    BACKFILL,
)

AnyOperation = ApiOperation | Handwritten


@dataclass(frozen=True, slots=True)
class ApiNoun:
    """The operations of one noun that are in the API."""

    title: str
    operations: Sequence[AnyOperation]


def _noun(table: TableNoun) -> ApiNoun:
    handwritten = [each for noun in _HANDWRITTEN if noun.title == table.title for each in noun.operations]
    declared = [ApiOperation(each, each.http) for each in table.operations if each.http]
    return ApiNoun(table.title, [*handwritten, *declared])


NOUNS = tuple(_noun(each) for each in nouns())
OPERATIONS = tuple(operation for noun in NOUNS for operation in noun.operations)
