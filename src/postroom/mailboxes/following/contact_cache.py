"""A connector's cache of the user's contacts: a copy of the switchboard's list in the connector's own folder.

It is fetched every 15 minutes and used for up to 60, unless the settings say otherwise. An older copy is not used at
all: it is better that a friend's mail gets a lower tier for a while than to rely on an outdated list. The age counts
from when the switchboard made the list (`generated_at`), not from when it was fetched.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from postroom.core.errors import BadInput
from postroom.sources.refreshing import EVERY, keep_fresh
from postroom.sources.state_file import read_moment, read_object, replace_file
from postroom.sources.switchboard_client import ContactSource

GOOD_FOR = timedelta(minutes=60)
MOST = 1_000_000


class ContactCache:
    """The contacts of one mailbox."""

    def __init__(
        self, path: Path, source: ContactSource, clock: Callable[[], datetime], good_for: timedelta = GOOD_FOR
    ) -> None:
        self._path = path
        self._source = source
        self._clock = clock
        self._good_for = good_for
        self._addresses: frozenset[str] = frozenset()
        self.generated_at: datetime | None = None
        self._load()

    def addresses(self) -> frozenset[str] | None:
        """The normalised addresses; None if they are missing or too old."""
        if self.generated_at is None or abs(self._clock() - self.generated_at) > self._good_for:
            return None
        return self._addresses

    @property
    def is_degraded(self) -> bool:
        return self.addresses() is None

    async def refresh(self) -> None:
        """Fetch all contacts; store them when every page has arrived."""
        page = await self._source.contacts("")
        generated_at, found = page.generated_at, set(page.addresses)
        cursor = page.next_cursor
        while cursor is not None:
            page = await self._source.contacts(cursor)
            found.update(page.addresses)
            if (page.next_cursor is not None and page.next_cursor <= cursor) or len(found) > MOST:
                raise BadInput("contacts", "have too many pages", "check the switchboard's version")
            cursor = page.next_cursor
        content = {"generated_at": generated_at.isoformat(), "addresses": sorted(found)}
        await asyncio.to_thread(replace_file, self._path, orjson.dumps(content))
        self._addresses, self.generated_at = frozenset(found), generated_at

    async def run(self, stop: asyncio.Event, every: timedelta = EVERY) -> None:
        """Refresh the contacts until `stop`."""
        await keep_fresh("contacts", self.refresh, stop, every=every)

    def _load(self) -> None:
        """Load what was fetched before. A malformed file counts as missing."""
        content = read_object(self._path)
        generated_at, addresses = read_moment(content.get("generated_at")), content.get("addresses")
        if generated_at is None or not isinstance(addresses, list):
            return
        known = cast("list[Any]", addresses)
        self._addresses = frozenset(each for each in known if isinstance(each, str))
        self.generated_at = generated_at
