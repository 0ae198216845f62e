"""All operations, in the order in which their paths are matched."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.interfaces.http.api.approvals import APPROVALS
from postroom.interfaces.http.api.audit import AUDIT
from postroom.interfaces.http.api.backfill import BACKFILL
from postroom.interfaces.http.api.connectors import CONNECTORS
from postroom.interfaces.http.api.filters import FILTERS
from postroom.interfaces.http.api.handwritten import Handwritten, Noun
from postroom.interfaces.http.api.jobs import JOBS
from postroom.interfaces.http.api.mail import MAIL
from postroom.interfaces.http.api.operation import ApiOperation
from postroom.interfaces.http.api.outbound import OUTBOUND
from postroom.interfaces.http.api.overview import OVERVIEW
from postroom.interfaces.http.api.queues import QUEUES
from postroom.interfaces.http.api.rules import RULES
from postroom.interfaces.http.api.session import SESSION
from postroom.interfaces.http.api.settings import SETTINGS
from postroom.operations.registry import nouns

_HANDWRITTEN: Sequence[Noun] = (
    SESSION,
    OVERVIEW,
    MAIL,
    APPROVALS,
    RULES,
    FILTERS,
    CONNECTORS,
    BACKFILL,
    QUEUES,
    JOBS,
    OUTBOUND,
    AUDIT,
    SETTINGS,
)

AnyOperation = ApiOperation | Handwritten


@dataclass(frozen=True, slots=True)
class ApiNoun:
    """The operations of one noun that are in the API."""

    title: str
    operations: Sequence[AnyOperation]


def _noun(noun: Noun) -> ApiNoun:
    declared = [each for table in nouns() if table.title == noun.title for each in table.operations]
    return ApiNoun(noun.title, [*noun.operations, *(ApiOperation(each, each.http) for each in declared if each.http)])


NOUNS = tuple(_noun(each) for each in _HANDWRITTEN)
OPERATIONS = tuple(operation for noun in NOUNS for operation in noun.operations)
