"""What somebody has asked for and nobody has ended yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from postroom.store.codecs import as_uuid, from_json
from postroom.store.database import Script, query, sql


@dataclass(frozen=True, slots=True)
class OpenWish:
    """An action that waits for a yes, or for its turn. `safety` says why."""

    id: UUID
    state: str
    action_hash: str
    safety: Mapping[str, Any]


@query
def open_wishes(asked_by: str, most: int) -> Script[list[OpenWish]]:
    rows = yield sql("select_open_wishes", asked_by, most)
    return [OpenWish(as_uuid(id), state, hashed, from_json(safety)) for id, state, hashed, safety in rows]
