"""Sessions as a browser carries them: a cookie with a key and a secret, which is replaced now and then."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from postroom.core import base64url
from postroom.core.errors import PostroomError
from postroom.core.sign_in.callers import SignInCaller
from postroom.core.sign_in.session_times import OLD_SECRET_LIVES, ROTATE_EVERY, SEEN_EVERY, SessionLimits, is_fresh
from postroom.core.visitors import PersonRole, Visitor
from postroom.operations.people.people import hashed
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import sessions
from postroom.store.people.sessions import KeptSession, NewSession
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

KEY_BYTES, SECRET_BYTES = 24, 32
_COOKIE = re.compile(r"([A-Za-z0-9_-]{32})\.([A-Za-z0-9_-]{43})")


class NewCookie(NamedTuple):
    """The text of a cookie that the browser is to keep, and for how long."""

    text: str
    lives: timedelta


@dataclass(frozen=True, slots=True)
class LiveSession:
    """The session of a request. `cookie` replaces the browser's, if there is one."""

    kept: KeptSession
    visitor: Visitor
    key: str = field(repr=False)
    secret_sha256: str = field(repr=False)
    cookie: NewCookie | None = field(default=None, repr=False)


class Sessions:
    """The sessions of one database."""

    def __init__(self, database: Database, limits: SessionLimits | None = None, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock
        self.limits = limits or SessionLimits()

    def new(self, caller: SignInCaller, now: datetime) -> tuple[NewSession, NewCookie]:
        """Make a session to be opened, and its cookie."""
        key, secret = secrets.token_urlsafe(KEY_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        ends = (now + min(self.limits.idle, self.limits.whole), now + self.limits.whole)
        session = NewSession(new_id(), hashed(key), hashed(secret), caller.browser, caller.network, *ends)
        return session, NewCookie(f"{key}.{secret}", self.limits.whole)

    async def find(self, cookie: str, *, is_click: bool) -> LiveSession | None:
        """Return the session of this cookie; None if there is none, or it has ended.

        Only clicks keep a session alive: a page that is left open does not, though its live updates go on.
        """
        match = _COOKIE.fullmatch(cookie)
        if match is None:
            return None
        key, presented, now = match[1], hashed(match[2]), self._clock()
        kept = await self._database.run(sessions.find_session(hashed(key), now))
        if kept is None or not _proves(kept, presented, now):
            return None
        visitor = Visitor(kept.name, kept.role, form_token(key), is_fresh(kept.proven_at, now))
        live = LiveSession(kept, visitor, key, presented)
        return await self._prolong(live, now) if is_click else live

    async def role_of(self, cookie: str) -> PersonRole | None:
        """The role of the session with the key of this cookie; None if it has ended. Its secret was checked before."""
        match = _COOKIE.fullmatch(cookie)
        if match is None:
            return None
        kept = await self._database.run(sessions.find_session(hashed(match[1]), self._clock()))
        return None if kept is None else kept.role

    async def _prolong(self, live: LiveSession, now: datetime) -> LiveSession:
        """Put off the end of the session and replace its secret, if that is due. Failing to do so harms nobody."""
        try:
            await self._note_use(live.kept, live.secret_sha256, now)
            return await self._rotate(live, now) if _is_rotation_due(live.kept, live.secret_sha256, now) else live
        except PostroomError as error:
            log.warning("session.use_not_noted", error=type(error).__name__)
            return live

    async def _note_use(self, kept: KeptSession, presented: str, now: datetime) -> None:
        if now - kept.last_seen_at >= SEEN_EVERY:
            idle_ends_at = min(now + self.limits.idle, kept.ends_at)
            await self._database.run(sessions.note_session_use(kept.id, idle_ends_at, now))
        if kept.previous_sha256 is not None and kept.previous_until is None and presented == kept.secret_sha256:
            await self._database.run(sessions.end_previous_secret(kept.id, presented, now))

    async def _rotate(self, live: LiveSession, now: datetime) -> LiveSession:
        secret = secrets.token_urlsafe(SECRET_BYTES)
        kept = live.kept
        rotating = sessions.rotate_session(kept.id, kept.secret_sha256, live.secret_sha256, hashed(secret), now)
        if not await self._database.run(rotating):
            return live  # another request did so at the same time, and has the new one
        cookie = NewCookie(f"{live.key}.{secret}", max(timedelta(seconds=1), kept.ends_at - now))
        return replace(live, secret_sha256=hashed(secret), cookie=cookie)

    async def replace_secret(self, live: LiveSession) -> NewCookie | None:
        """Replace the secret now, as after a new proof; None if another request has just done so.

        If this request has done so already, that is enough: the browser has not seen the one in between.
        """
        return live.cookie or (await self._rotate(live, self._clock())).cookie


def form_token(key: str) -> str:
    """The token that forms of this session carry. It does not reveal the key, and stays when the secret is replaced."""
    return base64url.encode(hmac.digest(key.encode(), b"postroom form", hashlib.sha256))


def _proves(kept: KeptSession, presented: str, now: datetime) -> bool:
    if hmac.compare_digest(kept.secret_sha256, presented):
        return True
    if kept.previous_sha256 is None or not hmac.compare_digest(kept.previous_sha256, presented):
        return False
    return kept.previous_until is None or now < kept.previous_until


def _is_rotation_due(kept: KeptSession, presented: str, now: datetime) -> bool:
    """Whether the secret is old; or, if the answer with the new one seems to have been lost, whether to try again."""
    if presented == kept.secret_sha256:
        return now - kept.rotated_at >= ROTATE_EVERY
    return kept.previous_until is None and now - kept.rotated_at >= OLD_SECRET_LIVES
