"""Connections that are kept open for the next mail to the same destination."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from postroom.outbound.smtp.options import Reuse
from postroom.outbound.smtp.session import SmtpClientSession, Tls


class Key(NamedTuple):
    """The use of a connection: one destination, with the encryption that was demanded."""

    destination: str
    tls: Tls


@dataclass(slots=True, eq=False)
class _Kept:
    key: Key
    session: SmtpClientSession
    timer: asyncio.TimerHandle


class Connections:
    def __init__(self, reuse: Reuse, clock: Callable[[], float]) -> None:
        self._reuse = reuse
        self._clock = clock
        self._opened: dict[SmtpClientSession, float] = {}
        self._kept: dict[Key, list[_Kept]] = {}
        self._idle: dict[_Kept, None] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def take(self, key: Key) -> SmtpClientSession | None:
        """An open connection for the key that still works, the most recently used first."""
        while kept := self._kept.get(key):
            session = self._remove(kept[-1])
            if session.is_usable and self._clock() - self._opened[session] < self._reuse.age_s:
                return session
            self._close(session)
        return None

    def opened(self, session: SmtpClientSession) -> None:
        self._opened[session] = self._clock()

    def give_back(self, key: Key, session: SmtpClientSession) -> None:
        """Keep the connection, if it may be used again; otherwise close it."""
        is_young = self._clock() - self._opened[session] < self._reuse.age_s
        if not session.is_usable or session.messages >= self._reuse.messages or not is_young:
            self._close(session)
            return
        if len(self._idle) >= self._reuse.kept:
            self._close(self._remove(next(iter(self._idle))))
        loop = asyncio.get_running_loop()
        kept = _Kept(key, session, loop.call_later(self._reuse.idle_s, lambda: self._close(self._remove(kept))))
        self._kept.setdefault(key, []).append(kept)
        self._idle[kept] = None

    def drop(self, session: SmtpClientSession) -> None:
        self._opened.pop(session, None)
        session.abort()

    async def close(self) -> None:
        for kept in list(self._idle):
            self._close(self._remove(kept))
        if self._closing:
            await asyncio.wait(self._closing)

    def _remove(self, kept: _Kept) -> SmtpClientSession:
        kept.timer.cancel()
        del self._idle[kept]
        of_key = self._kept[kept.key]
        of_key.remove(kept)
        if not of_key:
            del self._kept[kept.key]
        return kept.session

    def _close(self, session: SmtpClientSession) -> None:
        """Say goodbye beside the rest."""
        self._opened.pop(session, None)
        task = asyncio.create_task(session.close(), name="postroom-smtp-close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
