"""The user's other addresses at Gmail, its send-as addresses: looked up about once an hour, and cached in a file, so
that mail to an alias counts as mail to the user even while Gmail cannot be asked.

Mail never waits long for them, and is never lost because of them: a failure is one line in the log, and the addresses
known last stay in use.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson
import structlog

from postroom.core.errors import PostroomError
from postroom.core.mail.addresses import canonical
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import Forbidden
from postroom.sources.state_file import read_object, replace_file

log = structlog.get_logger()

EVERY = timedelta(hours=1)
AFTER_TROUBLE = timedelta(minutes=5)
PATIENCE = timedelta(seconds=10)
# More than anybody has: an endless answer is not stored.
MOST = 1_000


class SendAsAddresses:
    """The verified send-as addresses of one mailbox. An unverified one may be anybody's."""

    def __init__(
        self, path: Path, client: GmailClient, clock: Callable[[], datetime], patience: timedelta = PATIENCE
    ) -> None:
        self._path = path
        self._client = client
        self._clock = clock
        self._patience = patience
        self._due: datetime | None = None
        self._last_problem = ""
        kept: object = read_object(path).get("addresses")
        self._addresses = _usable(cast("list[Any]", kept)) if isinstance(kept, list) else frozenset[str]()

    def addresses(self) -> frozenset[str]:
        """The addresses in canonical form."""
        return self._addresses

    async def refresh(self) -> None:
        """Look them up once an hour, or a few minutes after a failure. Never raises."""
        now = self._clock()
        # A clock that was set back by more than an hour would otherwise delay the next lookup by as much.
        if self._due is not None and self._due - EVERY <= now < self._due:
            return
        # Not the hour: a canceled lookup has returned nothing.
        self._due = now + AFTER_TROUBLE
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._look_up()
        except (PostroomError, OSError, TimeoutError) as error:
            if isinstance(error, Forbidden):  # a missing permission does not appear by itself
                self._due = now + EVERY
            self._log_once(str(error) if isinstance(error, PostroomError) else type(error).__name__)
        else:
            self._due, self._last_problem = now + EVERY, ""

    async def _look_up(self) -> None:
        found = _usable(each.address for each in await self._client.list_send_as() if each.is_verified)
        if found != self._addresses:
            content = orjson.dumps({"addresses": sorted(found)})
            await asyncio.to_thread(replace_file, self._path, content)
        self._addresses = found

    def _log_once(self, trouble: str) -> None:
        if trouble != self._last_problem:
            log.warning("connector.send_as_unknown", error=trouble, kept=len(self._addresses))
        self._last_problem = trouble


def _usable(addresses: Iterable[object]) -> frozenset[str]:
    found = [plain for each in addresses if isinstance(each, str) and (plain := canonical(each)) is not None]
    return frozenset(found[:MOST])
