"""The boards of one page: one for each address, filters included, role and time zone that somebody has open.

Tabs with the same board share one reader. The board is rendered without knowing for whom: where a form needs the
visitor's token it holds a marker, which no text from outside can contain, and each visitor gets their own copy.
"""

import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from postroom.core.visitors import Visitor
from postroom.interfaces.dashboard.broadcast import Broadcast, UpdateIntervals
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.people.form_tokens import masked_form_token

MAX_TABS = 100
MAX_TABS_OF_ONE = 40
"""Of one person, on all pages together: nobody can take the others' places, or keep the readers busy with boards."""
MAX_IDLE = 32
TOKEN_MARKER = f"form-token-{secrets.token_hex(16)}"
Key = tuple[str, ...]


class Boards:
    def __init__(
        self,
        read: Callable[[Visit], Coroutine[Any, Any, str]],
        changes: Callable[[], AsyncIterator[None]],
        intervals: UpdateIntervals,
        *,
        personal: bool = False,
        tabs_of: Counter[str] | None = None,
    ) -> None:
        """`tabs_of` counts each person's tabs, on all pages that share it."""
        self._read = read
        self._changes = changes
        self._intervals = intervals
        self._personal = personal
        self._boards: dict[Key, Broadcast] = {}
        self._tabs_of = Counter[str]() if tabs_of is None else tabs_of
        self._closed = False

    def has_room_for(self, visitor: Visitor) -> bool:
        """Whether this person can open one more tab."""
        open_now = sum(each.tabs for each in self._boards.values())
        return not self._closed and open_now < MAX_TABS and self._tabs_of[visitor.name] < MAX_TABS_OF_ONE

    async def board(self, visit: Visit) -> str:
        """Return the board for a page that is being opened."""
        return (await self._at(visit).board()).replace(TOKEN_MARKER, masked_form_token(visit.visitor))

    async def frames(self, visit: Visit) -> AsyncGenerator[bytes]:
        """Yield the event stream of one tab."""
        marker, token = TOKEN_MARKER.encode(), masked_form_token(visit.visitor).encode()
        self._tabs_of[visit.visitor.name] += 1
        try:
            async with aclosing(self._at(visit).frames()) as frames:
                async for frame in frames:
                    yield frame.replace(marker, token)
        finally:
            self._tabs_of[visit.visitor.name] -= 1

    def look_again(self) -> None:
        """Read every board again after a change through a page, so that the next visitor sees it."""
        for each in self._boards.values():
            each.look_again()

    def close(self) -> None:
        self._closed = True
        for each in self._boards.values():
            each.close()

    def _at(self, visit: Visit) -> Broadcast:
        key = self._key(visit)
        found = self._boards.get(key)
        if found is None:
            self._forget_idle()
            found = self._boards[key] = Broadcast(lambda: self._read(visit), self._changes, self._intervals)
        return found

    def _key(self, visit: Visit) -> Key:
        visitor: Visitor = visit.visitor
        is_personal = self._personal or visit.refused
        own = [visitor.name, visitor.form_token, visit.refused] if is_personal else []
        return (visit.address, visitor.role, visit.zone.key, *own)

    def _forget_idle(self) -> None:
        if len(self._boards) >= MAX_IDLE:
            self._boards = {key: each for key, each in self._boards.items() if not each.is_idle}
