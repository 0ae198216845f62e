"""The ids of which people typed a part. No look-up reads a whole big table: see decision 0140."""

from typing import Literal
from uuid import UUID

from postroom.core.short_ids import PartOfId
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Rows, Script, query, sql

MOST_MATCHES = 50
NO_ID = UUID(int=0)

IdsOf = Literal["jobs", "outgoing", "backfills", "proposals"]
"""Things that people name by a part of their ids."""


@query
def ids_of_part(of: IdsOf, part: PartOfId) -> Script[list[UUID]]:
    """The ids that have this part."""
    low, high = part.whole or (NO_ID, NO_ID)
    rows: Rows = yield sql(f"select_{of}_of_part", *part.ends, low, high, MOST_MATCHES)
    return [id for id in (as_uuid(each) for (each,) in rows) if part.fits(id)]
