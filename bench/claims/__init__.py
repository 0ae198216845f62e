"""The speed claims, one module each; `CLAIMS` names them in the order of the table."""

from collections.abc import Callable

from ..rounds import Run
from ..table import Line
from . import backlog, drain, enqueue, horizon

CLAIMS: dict[str, Callable[[Run], list[Line]]] = {
    "drain-postgres": drain.postgres,
    "drain-sqlite": drain.sqlite,
    "enqueue-postgres": enqueue.postgres,
    "enqueue-sqlite": enqueue.sqlite,
    "backlog-postgres": backlog.postgres,
    "backlog-sqlite": backlog.sqlite,
    "horizon": horizon.postgres,
}
