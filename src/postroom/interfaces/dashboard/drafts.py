"""Unsaved text of forms: kept for a while, so that no error and no page costs them text.

Each has an id that cannot be guessed, which stands in the address. Only the newest are kept, in memory.
"""

import secrets
from typing import Generic, TypeVar

MOST_KEPT = 200
Kept = TypeVar("Kept")


class Drafts(Generic[Kept]):
    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[str, Kept] = {}

    def keep(self, draft: Kept) -> str:
        """Keep it, and return its id."""
        id = secrets.token_urlsafe(9)
        self._kept[id] = draft
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return id

    def find(self, id: str | None) -> Kept | None:
        """Return the draft; None if there is none, or not any more."""
        return None if id is None else self._kept.get(id)
