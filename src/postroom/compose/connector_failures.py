"""Why a connector inside this process does not run: said once with what to do, and then quietly.

A connector that fails is started again every half minute. The same reason each time would fill the log.
"""

import time
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import structlog

from postroom.mailboxes.following.refused import reason_of
from postroom.mailboxes.following.running import FolderInUse

log = structlog.get_logger()

RAN_WELL_S = 300.0
"""After so long a run, a failure is news even if its reason is that of the one before."""
ELSEWHERE = "another process runs the connector of this mailbox from the same data folder"
REMEDY = "stop that process, or give each its own data folder (--data-dir); until then its connector does the work"


class ConnectorFailures:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[UUID, str] = {}

    async def run(self, account_id: UUID, work: Coroutine[Any, Any, None]) -> None:
        """Run the connector of an account until it ends, and log why if it fails."""
        began = self._clock()
        try:
            await work
        except Exception as error:
            is_news = self._clock() - began >= RAN_WELL_S
            self._tell(account_id, error, is_news)

    def _tell(self, account_id: UUID, error: Exception, is_news: bool) -> None:
        is_elsewhere = isinstance(error, FolderInUse)
        reason = ELSEWHERE if is_elsewhere else reason_of(error)
        is_news = is_news or self._said.get(account_id) != reason
        self._said[account_id] = reason
        say = log.debug if not is_news else log.warning if is_elsewhere else log.error
        more = {"remedy": REMEDY} if is_elsewhere else {}
        say("mailbox.connector_failed", account=str(account_id), reason=reason, **more)
