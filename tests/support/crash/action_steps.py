"""Every step of a process on the way of an action, counted, and a SIGKILL at one of them.

A step of the store is named after what comes next, as in `gaps`: `begin_action before commit`. A call of Gmail
has four: `before` it is sent; `unanswered`, when it was carried out and its reply is lost on the way; `answered`, when
the reply is here and nobody has looked at it; and `lost`, at which nobody dies: the reply is lost, and the process goes
on with the error. Steps count from the moment on at which the counter is armed.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import httpx2

from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.statements import blocks
from support.crash.gaps import Gap, _Watched
from support.patience import PATIENCE_S
from support.processes import announce

T = TypeVar("T")

LOST = "lost"
# Of the statements on the way, the only one that SQLite runs in parts.
SECOND_PART = blocks("sqlite")["claim_jobs"][1].text
_ID = re.compile(r"(?<=/)[0-9a-f]{16}(?=/|$)")


class Step(NamedTuple):
    """The n-th time that something comes."""

    what: str
    hit: int

    def __str__(self) -> str:
        return f"{self.what}#{self.hit}"

    @classmethod
    def parse(cls, text: str) -> "Step":
        what, _, hit = text.rpartition("#")
        return cls(what, int(hit))


class KillPlan:
    """Count steps once armed, and kill the process at the chosen one; without one, never. Or it is only frozen there,
    and goes on when it is woken.
    """

    def __init__(self, chosen: Step | None, *, freezes: bool = False) -> None:
        self.passed: Counter[str] = Counter()
        self._chosen = chosen
        self._armed = False
        self._freezes = freezes

    def arm(self) -> None:
        self._armed = True

    def is_at(self, what: str) -> bool:
        if not self._armed:
            return False
        self.passed[what] += 1
        return self._chosen == Step(what, self.passed[what])

    def kill_at(self, what: str) -> None:
        if self.is_at(what):
            self.kill()

    def kill(self) -> None:
        announce("freezes" if self._freezes else "dies", self._chosen)
        os.kill(os.getpid(), signal.SIGSTOP if self._freezes else signal.SIGKILL)


class KillableDatabase(_Watched):
    """A database in which each step may be the last; it tells of every write that has ended."""

    def __init__(self, database: Database, kill_plan: KillPlan, told: Callable[[], None]) -> None:
        super().__init__(database)
        self._kill_plan = kill_plan
        self._told = told
        if isinstance(database, SqliteDatabase):
            connection: Any = database._connection  # the stubs hold only what the product uses
            connection.exec_trace = self._comes_to_part

    async def run(self, transaction: Transaction[T]) -> T:
        try:
            return await super().run(transaction)
        finally:
            if transaction.kind == "write":
                self._told()

    def comes_to(self, gap: Gap) -> None:
        self._kill_plan.kill_at(str(gap))

    def _comes_to_part(self, _cursor: Any, text: str, _bindings: Any) -> bool:
        if text == SECOND_PART:
            self._kill_plan.kill_at("claim before claim_jobs.2")
        return True


class KillableTransport(httpx2.AsyncBaseTransport):
    """The way to Gmail, on which each call may be the last. The emulator is told which reply to drop."""

    def __init__(self, kill_plan: KillPlan, token: str) -> None:
        self._kill_plan = kill_plan
        self._token = token
        # To read what can be trusted takes longer than most processes live, and nothing here asks for it.
        self._inner = httpx2.AsyncHTTPTransport(verify=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        name = f"{request.method} {_ID.sub('*', request.url.path.removeprefix('/gmail/v1/users/me'))}"
        self._kill_plan.kill_at(f"{name} before")
        if self._kill_plan.is_at(f"{name} unanswered"):
            error = await self._lose_the_reply(request)
            self._kill_plan.kill()
            raise error  # it was only frozen
        if self._kill_plan.is_at(f"{name} {LOST}"):
            raise await self._lose_the_reply(request)
        response = await self._inner.handle_async_request(request)
        await response.aread()
        self._kill_plan.kill_at(f"{name} answered")
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _lose_the_reply(self, request: httpx2.Request) -> httpx2.TransportError:
        address = request.url.copy_with(raw_path=b"/sandbox/faults")
        fault = {"kind": "drop_reply", "path": request.url.path, "times": 1}
        headers = {"Authorization": f"Bearer {self._token}"}
        async with httpx2.AsyncClient(verify=False, trust_env=False, timeout=PATIENCE_S) as http:
            (await http.post(address, json=fault, headers=headers)).raise_for_status()
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            return error
        raise AssertionError(f"the reply was not lost: {response.status_code}")
