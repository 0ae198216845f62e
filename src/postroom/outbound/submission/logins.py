"""Lets senders in by name and password. Neither the answer nor its time tells a wrong name from a wrong password.

Checking a password takes 50 ms and 64 MiB on purpose, so it is done in a few threads, and only so many may wait. One
that was right is remembered for a while, as a keyed hash in memory only: clients that connect for every mail would
otherwise keep the threads busy.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeVar

from postroom.core.errors import DatabaseUnavailable
from postroom.core.metrics import SUBMISSION_LOGIN
from postroom.core.sign_in.throttle import SignInLimits, SignInThrottle
from postroom.core.tally import Tally
from postroom.outbound.submission.submissions import PATIENCE_S
from postroom.store.engine.database import Database, Transaction
from postroom.store.outbound.senders import SenderLogin, sender_by_login
from postroom.system.boot_clock import since_boot
from postroom.vault.password_threads import PasswordThreads

REMEMBER_S = 300.0
MOST_REMEMBERED = 10_000
LONGEST = 512
USUAL_LIMITS = SignInLimits.of_window(of_name=10, of_address=20, window_s=600.0)

T = TypeVar("T")
Refusal = Literal["wrong", "throttled", "busy"]


async def in_time(database: Database, reading: Transaction[T], patience_s: float = PATIENCE_S) -> T:
    """Read something for a client that waits. Raises DatabaseUnavailable instead of waiting for longer."""
    try:
        async with asyncio.timeout(patience_s):
            return await database.run(reading._replace(patience_s=patience_s))
    except TimeoutError:
        raise DatabaseUnavailable(
            f"the database did not answer within {patience_s:g} s; check that it is running"
        ) from None


class Logins:
    """`monotonic` measures how long ago a login failed, or was right."""

    def __init__(
        self,
        database: Database,
        limits: SignInLimits | None = None,
        *,
        tally: Tally | None = None,
        monotonic: Callable[[], float] = since_boot,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._database = database
        self._patience_s = patience_s
        self._throttle = SignInThrottle(limits or USUAL_LIMITS)
        self._tally = tally or Tally()
        self._monotonic = monotonic
        self._passwords = PasswordThreads()
        self._secret = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def close(self) -> None:
        self._passwords.close()

    async def log_in(self, username: str, password: str, address: str) -> SenderLogin | Refusal:
        """The sender, or why there is none. Raises a StoreError if the database fails."""
        answer = await self._log_in(username.lower(), password, address)
        self._tally.count(SUBMISSION_LOGIN, answer if isinstance(answer, str) else "right")
        return answer

    async def _log_in(self, username: str, password: str, address: str) -> SenderLogin | Refusal:
        if self._throttle.wait_s(username, address, self._monotonic()):
            return "throttled"
        if self._passwords.is_busy:
            return "busy"
        found = None
        if 0 < len(username) <= LONGEST:
            found = await in_time(self._database, sender_by_login(username), self._patience_s)
        if self._passwords.is_busy:
            return "busy"
        with self._passwords.waiting():
            right = len(password) <= LONGEST and await self._is_right(found, password)
        if found is None or not right or found.state != "active":
            self._throttle.tries(username, address, self._monotonic())
            return "wrong"
        self._throttle.recognise(username, address)
        return found

    async def _is_right(self, found: SenderLogin | None, password: str) -> bool:
        kept = None if found is None else found.password_hash
        mark = self._mark(kept or "", password)
        if kept is not None and self._known.get(mark, 0) > self._monotonic():
            return True
        right = await self._passwords.is_right(kept, password)
        if right:
            self._known[mark] = self._monotonic() + REMEMBER_S
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return right

    def _mark(self, password_hash: str, password: str) -> bytes:
        """The mark by which a right password is remembered: valid only for this hash, and this process."""
        return hmac.digest(self._secret, f"{password_hash}\0{password}".encode(errors="surrogatepass"), hashlib.sha256)
