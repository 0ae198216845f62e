"""Whether the rules in use are still those that were read before."""

from postroom.store.database import Script, query, sql


@query
def rules_mark() -> Script[tuple[object, ...]]:
    """Differs whenever the rules in use do."""
    rows = yield sql("select_rules_mark")
    return tuple(rows[0])
