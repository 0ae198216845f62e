"""The speed claims, one module each; `CLAIMS` names them in the order of the table."""

from collections.abc import Callable

from ..rounds import Run
from ..table import Line
from . import (
    backfill,
    backlog,
    dkim,
    drain,
    enqueue,
    horizon,
    intake,
    live_mail,
    picker,
    readers,
    road,
    rules,
    simulate,
    submission,
    tiers,
)

CLAIMS: dict[str, Callable[[Run], list[Line]]] = {
    "drain-postgres": drain.postgres,
    "drain-sqlite": drain.sqlite,
    "enqueue-postgres": enqueue.postgres,
    "enqueue-sqlite": enqueue.sqlite,
    "backlog-postgres": backlog.postgres,
    "backlog-sqlite": backlog.sqlite,
    "horizon": horizon.postgres,
    "picker-rate-postgres": picker.rate_postgres,
    "picker-rate-sqlite": picker.rate_sqlite,
    "picker-backlog-postgres": picker.backlog_postgres,
    "picker-backlog-sqlite": picker.backlog_sqlite,
    "ingest-postgres": intake.rate_postgres,
    "ingest-sqlite": intake.rate_sqlite,
    "latency-postgres": intake.latency_postgres,
    "latency-sqlite": intake.latency_sqlite,
    "tier": tiers.one_core,
    "rules": rules.one_core,
    "simulate-postgres": simulate.postgres,
    "simulate-sqlite": simulate.sqlite,
    "live-mail": live_mail.one_process,
    "live-accounts": live_mail.many_accounts,
    "live-beside-bulk": live_mail.beside_bulk,
    "readers": readers.sqlite,
    "road": road.one_process,
    "backfill": backfill.one_process,
    "backfill-jobs-postgres": backfill.jobs_postgres,
    "backfill-jobs-sqlite": backfill.jobs_sqlite,
    "backfill-beside": backfill.beside,
    "dkim": dkim.one_core,
    "submission-postgres": submission.postgres,
    "submission-sqlite": submission.sqlite,
}
