"""All operations, in the order in which their paths are matched."""

from collections.abc import Sequence

from postroom.interfaces.http.api.approvals import APPROVALS
from postroom.interfaces.http.api.audit import AUDIT
from postroom.interfaces.http.api.backfill import BACKFILL
from postroom.interfaces.http.api.connectors import CONNECTORS
from postroom.interfaces.http.api.filters import FILTERS
from postroom.interfaces.http.api.jobs import JOBS
from postroom.interfaces.http.api.mail import MAIL
from postroom.interfaces.http.api.operation import Noun, Operation
from postroom.interfaces.http.api.outbound import OUTBOUND
from postroom.interfaces.http.api.overview import OVERVIEW
from postroom.interfaces.http.api.queues import QUEUES
from postroom.interfaces.http.api.rules import RULES
from postroom.interfaces.http.api.session import SESSION
from postroom.interfaces.http.api.settings import SETTINGS

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
