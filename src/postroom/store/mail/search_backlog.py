"""Indexes mail that was stored before the index was as it is now, in small resumable steps.

New mail is indexed as it is stored. Older mail is indexed from the newest id to the oldest; a row stores the position,
and is deleted when all is done.
"""

from uuid import UUID

from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Rows, Script, sql, transaction

MOST_AT_ONCE = 500
# Other writers wait for a step to end, on SQLite all of them; its cost depends on the size of the texts.
MOST_BYTES_AT_ONCE = 1_000_000


@transaction
def index_older_mail(most: int = MOST_AT_ONCE, most_bytes: int = MOST_BYTES_AT_ONCE) -> Script[int]:
    """Index the next step; return the number of messages. Any number of processes may do this at once."""
    standing = yield sql("select_search_backlog")
    if not standing:
        return 0
    below = as_uuid(standing[0][0])
    step = _step((yield sql("select_backlog_sizes", below, most)), most_bytes)
    if not step:
        yield sql("end_search_backlog")
        return 0
    yield sql("index_backlog", step[-1], below)
    yield sql("move_search_backlog", step[-1])
    return len(step)


def _step(sizes: Rows, most_bytes: int) -> list[UUID]:
    """As many messages as fit, at least one."""
    step: list[UUID] = []
    for id, size in sizes:
        most_bytes -= size
        if step and most_bytes < 0:
            break
        step.append(as_uuid(id))
    return step
