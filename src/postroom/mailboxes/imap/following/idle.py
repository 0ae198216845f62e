"""Hints from a connection of its own: it waits in the inbox (IDLE), and asks for the figures of the other folders now
and then. So an account in which nothing happens has one connection, and costs one command now and then.

Hints only make the next round come sooner. A server that never tells anything in IDLE is asked in any case, and a
connection whose other end is gone is noticed by that, or by TCP's own probes (`mailboxes/imap/wire.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import structlog

from postroom.core.errors import MailboxError, NeedsPerson, PostroomError
from postroom.mailboxes.imap.following.backoff import SYSTEM_RANDOM, pause_after
from postroom.mailboxes.imap.session import ImapSession

log = structlog.get_logger()

# Servers may end a connection after 30 minutes in which nothing happened.
RENEW_S = 28 * 60.0
# How often the figures of the other folders are asked for.
LOOK_S = 30.0
FIGURES = ("UIDVALIDITY", "UIDNEXT", "HIGHESTMODSEQ")
"""The figures of a folder that change with everything that happens in it."""
AFTER_TROUBLE = timedelta(minutes=1)
_ALL_FIGURES = ("CONDSTORE", "LIST-EXTENDED", "LIST-STATUS")
_NEWS = frozenset({"EXISTS", "EXPUNGE", "VANISHED", "FETCH", "RECENT"})


class IdleHints:
    """Returns from `wait` when the mailbox may have changed. `look_s` is how often it is asked without being told."""

    def __init__(
        self,
        open_session: Callable[[], Awaitable[ImapSession]],
        look_s: float = LOOK_S,
        after_trouble: timedelta = AFTER_TROUBLE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.problem: PostroomError | None = None
        self._open_session = open_session
        self._look_s = min(look_s, RENEW_S)
        self._figures: Mapping[bytes, Mapping[str, int]] = {}
        self._after_trouble = after_trouble
        self._sleep = sleep
        self._failures = 0
        self._rest: timedelta | None = None
        """How long to wait before the next connection."""
        self._session: ImapSession | None = None

    @property
    def is_watching(self) -> bool:
        """Whether everything that happens in the mailbox is noticed here, so that rounds need not look for it."""
        return self._session is not None and self._session.connection.is_open

    async def wait(self) -> None:
        """Return when the mailbox may have changed. Does not raise for errors of the mailbox."""
        while True:
            if self._rest is not None:
                rest, self._rest = self._rest, None
                await self._sleep(rest.total_seconds())
            was_watching = self.is_watching
            try:
                session = await self._ready_session()
                if not was_watching or await self._has_news(session):
                    # What came while there was no connection was not heard.
                    return
            except MailboxError as error:
                self.close()
                # A round meets the same error, and tells it.
                self.problem = error if isinstance(error, NeedsPerson) else None
                log.info("connector.idle_interrupted", error=type(error).__name__)
                self._failures += 1
                self._rest = pause_after(error, self._failures, self._after_trouble, SYSTEM_RANDOM)
                if was_watching:
                    # Until there is another connection, rounds must look by themselves.
                    return
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._session is not None:
            self._session.connection.close()
            self._session = None

    async def _ready_session(self) -> ImapSession:
        if self._session is not None and self._session.connection.is_open:
            return self._session
        session = await self._open_session()
        try:
            await session.select(b"INBOX", read_only=True)
            if session.offers(*_ALL_FIGURES):
                self._figures = await session.all_statuses(*FIGURES)
        except BaseException:
            session.connection.close()
            raise
        self._session, self.problem = session, None
        return session

    async def _has_news(self, session: ImapSession) -> bool:
        if session.connection.take_unheard():
            return True
        if not session.offers("IDLE"):
            # Some servers say what is new with the answer to any command.
            await self._sleep(self._look_s)
            told = await session.noop()
        else:
            told = await session.connection.idle(self._look_s)
        self._failures = 0
        return bool({each.kind for each in told} & _NEWS) or await self._has_news_elsewhere(session)

    async def _has_news_elsewhere(self, session: ImapSession) -> bool:
        """Whether the figures of any folder are others than last time; a server that has none may have news."""
        if not session.offers(*_ALL_FIGURES):
            return True
        before, self._figures = self._figures, await session.all_statuses(*FIGURES)
        return self._figures != before
