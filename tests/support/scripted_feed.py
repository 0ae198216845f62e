"""A feed whose content the test writes; it counts how often it is read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from uuid import UUID

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.pages.overview import OverviewPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.operations.accounts.account_status import AccountLine
from postroom.operations.mail.mail_lines import MailLine
from postroom.operations.overview.attention import Attention
from postroom.operations.overview.first_steps import FirstSteps
from postroom.operations.overview.overview import ControlState, HiddenToday, Overview
from postroom.operations.overview.road import Road
from postroom.operations.overview.today import Today
from postroom.operations.parts import Parts
from postroom.operations.rules.model import ModelStatus
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.opening import look_into

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def line(seq: int, **changes: object) -> MailLine:
    plain = MailLine(
        id=UUID(int=seq),
        short_id=str(seq),
        kind="mail",
        at=NOON + timedelta(seconds=seq),
        account="owner@example.org",
        sender=f"Sender {seq} <sender{seq}@example.org>",
        sender_name="",
        subject=f"Subject {seq}",
        tier="default",
        tier_rule="",
        why_tier="",
        what="",
        by="",
        why="",
        state="waiting",
        mood="busy",
        outcome="waiting",
        error="",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def overview_application(
    feed: Overview,
    database: Database | None = None,
    *,
    allowed_hosts: Collection[str] = ("127.0.0.1",),
    account: str | Callable[[], Awaitable[str]] = "owner@example.org",
    intervals: UpdateIntervals | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application with the overview alone, over this feed; its forms change this database."""
    site = Site(parts_with(feed, database), account, intervals)
    return create_application(site, [OverviewPage(site)], allowed_hosts=allowed_hosts, routes=routes)


def parts_with(feed: Overview, database: Database | None = None) -> Parts:
    """The parts of an installation with this overview, without data unless there is a database."""
    parts = Parts(Settings.model_validate({}), database or look_into(Path("no-such-folder"), None))
    vars(parts)["overview"] = feed
    return parts


class ScriptedFeed(Overview):
    def __init__(
        self,
        *lines: MailLine,
        in_line: Mapping[str, int] | None = None,
        accounts: tuple[AccountLine, ...] = (),
        attention: tuple[Attention, ...] = (),
    ) -> None:
        self._lines = {each.id: each for each in lines}
        self._in_line = in_line or {}
        self._attention = attention
        self._accounts = accounts
        self._followers: set[asyncio.Event] = set()
        self._moved = asyncio.Event()
        self.reads = 0
        self.now = ControlState()
        self.failure: Exception | None = None

    async def lines(self, limit: int) -> list[MailLine]:
        self.reads += 1
        self._move()
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return sorted(self._lines.values(), key=lambda each: each.at, reverse=True)[:limit]

    async def count_waiting(self) -> int:
        return 0

    async def in_line(self) -> Mapping[str, int]:
        return self._in_line

    async def road(self, window: timedelta) -> Road:
        return Road(NOON - window, NOON, 0, (), (), {})

    async def attention(self, accounts: list[AccountLine]) -> list[Attention]:
        return list(self._attention)

    async def first_steps(
        self, accounts: list[AccountLine], control: ControlState, *, has_mail: bool, has_events: bool
    ) -> FirstSteps | None:
        return None

    async def spend(self) -> ModelStatus | None:
        return None

    async def hidden_today(self, zone: tzinfo | None = None, most: int = 5) -> HiddenToday:
        return HiddenToday(0, ())

    async def today(self, zone: tzinfo) -> Today:
        return Today(NOON, (), 0, is_more=False)

    async def control_state(self) -> ControlState:
        return self.now

    async def accounts(self) -> list[AccountLine]:
        return list(self._accounts)

    async def changes(self) -> AsyncIterator[None]:
        changed = asyncio.Event()
        changed.set()
        self._followers.add(changed)
        try:
            while True:
                await changed.wait()
                changed.clear()
                yield
        finally:
            self._followers.discard(changed)
            self._move()

    @property
    def followers(self) -> int:
        return len(self._followers)

    async def read_so_often(self, reads: int) -> None:
        while self.reads < reads:
            await self._moved.wait()

    async def unfollowed(self) -> None:
        while self._followers:
            await self._moved.wait()

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def put(self, *lines: MailLine, in_line: Mapping[str, int] | None = None) -> None:
        """Add or replace messages by their id, and say so."""
        self.put_silently(*lines)
        self._in_line = in_line or self._in_line
        self.announce()

    def put_accounts(self, *accounts: AccountLine) -> None:
        self._accounts = accounts
        self.announce()

    def put_silently(self, *lines: MailLine) -> None:
        self._lines |= {each.id: each for each in lines}

    def announce(self) -> None:
        for changed in self._followers:
            changed.set()
