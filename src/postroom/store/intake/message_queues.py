"""Looks up the queues of messages by their ids."""

from collections.abc import Sequence
from uuid import UUID

from postroom.store.engine.database import Script, query, sql


@query
def queues_of(ids: Sequence[UUID]) -> Script[frozenset[str]]:
    """The queues of these messages. Unknown ids are in none."""
    rows = yield sql("select_queues_of", list(ids))
    return frozenset(queue for (queue,) in rows)
