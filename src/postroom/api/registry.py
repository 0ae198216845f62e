"""All operations, in the order in which their paths are matched."""

from collections.abc import Sequence

from postroom.api.approvals import APPROVALS
from postroom.api.audit import AUDIT
from postroom.api.backfill import BACKFILL
from postroom.api.connectors import CONNECTORS
from postroom.api.filters import FILTERS
from postroom.api.jobs import JOBS
from postroom.api.mail import MAIL
from postroom.api.operation import Noun, Operation
from postroom.api.outbound import OUTBOUND
from postroom.api.overview import OVERVIEW
from postroom.api.queues import QUEUES
from postroom.api.rules import RULES
from postroom.api.session import SESSION
from postroom.api.settings import SETTINGS

NOUNS: Sequence[Noun] = (
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
OPERATIONS: Sequence[Operation] = tuple(operation for noun in NOUNS for operation in noun.operations)
