"""Hints from IDLE: one connection of its own waits in the inbox, and is renewed before the server would end it.

They only make the next round come sooner: from a server that never tells anything, mail comes with the next poll. A
connection whose other end is gone is noticed by TCP's own probes (`imap/wire.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random, SystemRandom

import structlog

from postroom.connectors.imap.backoff import pause_after
from postroom.core.errors import MailboxError, NeedsPerson, PostroomError
from postroom.imap.session import Session

log = structlog.get_logger()

# Servers may end a connection after 30 minutes in which nothing happened.
RENEW_S = 28 * 60.0
AFTER_TROUBLE = timedelta(minutes=1)
_NEWS = frozenset({"EXISTS", "EXPUNGE", "VANISHED", "FETCH", "RECENT"})


class IdleHints:
    """Returns from `wait` when the inbox has changed. A server without IDLE gives no hints: rounds find everything."""

    def __init__(
        self,
        open_session: Callable[[], Awaitable[Session]],
        renew_s: float = RENEW_S,
        after_trouble: timedelta = AFTER_TROUBLE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Random | None = None,
    ) -> None:
        self.problem: PostroomError | None = None
        self._open_session = open_session
        self._renew_s = renew_s
        self._after_trouble = after_trouble
        self._sleep = sleep
        self._rng = rng or SystemRandom()
        self._failures = 0
        self._session: Session | None = None

    async def wait(self) -> None:
        """Return when the inbox may have changed. Does not raise for errors of the mailbox."""
        while True:
            try:
                is_new = self._session is None or not self._session.connection.is_open
                session = await self._opened()
                if is_new:
                    # What came while there was no connection was not heard.
                    return
                if await self._has_news(session):
                    return
            except MailboxError as error:
                self.close()
                # A round meets the same error, and tells it.
                self.problem = error if isinstance(error, NeedsPerson) else None
                log.info("connector.idle_interrupted", error=type(error).__name__)
                self._failures += 1
                pause = pause_after(error, self._failures, self._after_trouble, self._rng)
                await self._sleep(pause.total_seconds())
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._session is not None:
            self._session.connection.close()
            self._session = None

    async def _opened(self) -> Session:
        if self._session is not None and self._session.connection.is_open:
            return self._session
        session = await self._open_session()
        try:
            await session.select(b"INBOX", read_only=True)
        except BaseException:
            session.connection.close()
            raise
        self._session, self.problem = session, None
        return session

    async def _has_news(self, session: Session) -> bool:
        if session.connection.take_unheard():
            return True
        if not session.offers("IDLE"):
            # Some servers say what is new with the answer to any command.
            await self._sleep(self._after_trouble.total_seconds())
            told = await session.noop()
        else:
            told = await session.connection.idle(self._renew_s)
        self._failures = 0
        return bool({each.kind for each in told} & _NEWS)
