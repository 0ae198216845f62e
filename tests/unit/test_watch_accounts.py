"""A connector that ends is started again every half minute, however often the database tells of a change."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from postroom.compose.mailboxes import LOOK_EVERY_S, watch_accounts
from postroom.core.errors import NeedsPerson
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.ids import new_id
from support.jumping_loop import now, run

THEN = datetime(2026, 11, 15, tzinfo=UTC)
ACCOUNT = AccountView(
    new_id(), "gmail", "gmail:user:ada@example.org", "ada@example.org", "active", None, THEN, THEN, None
)
WRITE_EVERY_S = 2.0


class Watched:
    """One account, the times at which its connector was started, and another process that writes all the time."""

    def __init__(self) -> None:
        self.account = ACCOUNT
        self.starts: list[float] = []
        self.fails = True
        self._signal: Callable[[str], None] = lambda _message: None

    def subscribe(self, _channel: str, callback: Callable[[str], None]) -> Any:
        self._signal = callback
        return SimpleNamespace(close=lambda: None)

    async def run(self, _transaction: Any) -> None:
        """Nothing is stored here."""

    async def in_use(self) -> list[AccountView]:
        return [self.account]

    async def watch(self, _account: AccountView) -> None:
        self.starts.append(now())
        if self.fails:
            raise NeedsPerson("consent lost")
        await asyncio.Event().wait()

    async def for_seconds(self, seconds: float) -> None:
        watching = asyncio.create_task(watch_accounts(cast("Any", self), cast("Any", self), self.watch))
        while now() < seconds:
            await asyncio.sleep(WRITE_EVERY_S)
            self._signal("")
        watching.cancel()
        await asyncio.wait({watching})


def test_one_that_fails_is_started_every_half_minute_whoever_writes() -> None:
    watched = Watched()
    run(watched.for_seconds(3 * LOOK_EVERY_S + 1))
    assert watched.starts == [0, LOOK_EVERY_S, 2 * LOOK_EVERY_S, 3 * LOOK_EVERY_S]


def test_when_its_account_changes_one_that_failed_is_started_at_once() -> None:
    watched = Watched()

    async def changed() -> None:
        asyncio.get_running_loop().call_later(5, lambda: setattr(watched, "account", replace(ACCOUNT, updated_at=THEN)))
        later = replace(ACCOUNT, updated_at=THEN.replace(hour=1))
        asyncio.get_running_loop().call_later(9, lambda: setattr(watched, "account", later))
        await watched.for_seconds(29)

    run(changed())
    assert watched.starts == [0, 10]


def test_one_that_runs_is_left_alone() -> None:
    watched = Watched()
    watched.fails = False
    run(watched.for_seconds(3 * LOOK_EVERY_S))
    assert watched.starts == [0]
