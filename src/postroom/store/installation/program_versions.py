"""Which version of the program ran on a database last, so that an upgrade can tell what changes, and from when."""

from datetime import datetime

from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.migrate import applied_migrations

FIRST = "0.1.0"
"""The version that did not record itself yet."""


@query
def last_version() -> Script[str]:
    """The version that ran last; works on older schemas too."""
    applied = yield from applied_migrations.script()
    if not any(name == "program_versions" for name, _ in applied.values()):
        return FIRST
    rows = yield sql("select_program_version")
    return rows[0][0] if rows else FIRST


@transaction
def record_version(version: str, now: datetime) -> Script[None]:
    # Those that seem to come later are of a clock that was ahead.
    yield sql("delete_program_versions_since", now)
    yield sql("insert_program_version", version, now)


@query
def holds_data() -> Script[bool]:
    """Whether there is anything to lose: a new installation has nothing to back up."""
    if not (yield from applied_migrations.script()):
        return False
    rows = yield sql("select_holds_data")
    return bool(rows[0][0])
