"""The user's other addresses at Gmail, its send-as addresses: looked up about once an hour, and kept in a file, so that
mail to an alias counts as mail to the user also while Gmail does not tell.

Mail never waits for them for long, and is never lost for them: what fails is told in one line of the log, and what was
known last goes on counting.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson
import structlog

from postroom.connectors.state_file import read_object, replace_file
from postroom.core.errors import PostroomError
from postroom.core.mail.addresses import canonical
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import Forbidden

log = structlog.get_logger()

EVERY = timedelta(hours=1)
AFTER_TROUBLE = timedelta(minutes=5)
PATIENCE = timedelta(seconds=10)
# More than anybody has: an answer that never ends is not kept.
MOST = 1_000


class SendAsAddresses:
    """The verified send-as addresses of one mailbox. One that waits for its verification may be anybody's."""

    def __init__(
        self, path: Path, client: GmailClient, clock: Callable[[], datetime], patience: timedelta = PATIENCE
    ) -> None:
        self._path = path
        self._client = client
        self._clock = clock
        self._patience = patience
        self._due: datetime | None = None
        self._told = ""
        kept: object = read_object(path).get("addresses")
        self._addresses = _usable(cast("list[Any]", kept)) if isinstance(kept, list) else frozenset[str]()

    def addresses(self) -> frozenset[str]:
        """In the form in which addresses are compared."""
        return self._addresses

    async def freshen(self) -> None:
        """Looks them up when an hour has passed, or a few minutes after trouble. Never raises."""
        now = self._clock()
        # A clock that was set back by more than an hour would otherwise put the next look off for as long.
        if self._due is not None and self._due - EVERY <= now < self._due:
            return
        # Not the hour: a look that is canceled has told nothing.
        self._due = now + AFTER_TROUBLE
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._look_up()
        except (PostroomError, OSError, TimeoutError) as error:
            if isinstance(error, Forbidden):  # No other permission comes by itself; anything else may go better soon.
                self._due = now + EVERY
            self._tell(str(error) if isinstance(error, PostroomError) else type(error).__name__)
        else:
            self._due, self._told = now + EVERY, ""

    async def _look_up(self) -> None:
        found = _usable(each.address for each in await self._client.list_send_as() if each.is_verified)
        if found != self._addresses:
            content = orjson.dumps({"addresses": sorted(found)})
            await asyncio.to_thread(replace_file, self._path, content)
        self._addresses = found

    def _tell(self, trouble: str) -> None:
        if trouble != self._told:
            log.warning("connector.send_as_unknown", error=trouble, kept=len(self._addresses))
        self._told = trouble


def _usable(addresses: Iterable[object]) -> frozenset[str]:
    found = [plain for each in addresses if isinstance(each, str) and (plain := canonical(each)) is not None]
    return frozenset(found[:MOST])
