"""In which queues messages are, for those who know them by their ids only."""

from collections.abc import Sequence
from uuid import UUID

from postroom.store.engine.database import Script, query, sql


@query
def queues_of(ids: Sequence[UUID]) -> Script[frozenset[str]]:
    """The queues of these messages. Ids that no message has are in none."""
    rows = yield sql("select_queues_of", list(ids))
    return frozenset(queue for (queue,) in rows)
