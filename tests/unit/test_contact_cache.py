"""A connector's copies from the switchboard: old contacts are not used, filters stay."""

import asyncio
import os
import stat
from datetime import datetime, timedelta
from pathlib import Path

import orjson
import pytest

from postroom.core.errors import BadInput, SwitchboardUnavailable
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionRule
from postroom.mailboxes.following.contact_cache import ContactCache
from postroom.mailboxes.following.filter_cache import FilterCache
from postroom.sources.refreshing import keep_fresh
from postroom.sources.switchboard_client import ContactsPage, Filters
from support.clocks import ManualClock
from support.patience import PATIENCE_S

SHOP = IngestionRule(10, "shop", "sender_domain", "skip", "shop.example")


class Switchboard:
    """Gives contacts in pages of two, and rules; or is away."""

    def __init__(self, clock: ManualClock, *addresses: str) -> None:
        self.clock = clock
        self.addresses = sorted(addresses)
        self.rules: tuple[IngestionRule, ...] = (SHOP,)
        self.version = "1"
        self.skew = timedelta(0)
        self.away = False
        self.loops = False
        self.asked = 0

    async def contacts(self, cursor: str) -> ContactsPage:
        self.answering()
        rest = [each for each in self.addresses if each > cursor]
        more = rest[1] if len(rest) > 2 else None
        return ContactsPage(self.clock() + self.skew, tuple(rest[:2]), "a" if self.loops else more)

    async def filters(self) -> Filters:
        self.answering()
        return Filters(self.clock(), self.version, self.rules)

    def answering(self) -> None:
        self.asked += 1
        if self.away:
            raise SwitchboardUnavailable("away")


@pytest.fixture
def switchboard(clock: ManualClock) -> Switchboard:
    return Switchboard(clock, *(f"{name}@x.example" for name in "abcde"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "connectors" / "contacts.json"


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


async def test_all_pages_are_fetched_and_kept_with_their_time(path: Path, switchboard: Switchboard, clock: ManualClock):
    cache = ContactCache(path, switchboard, clock)
    assert cache.addresses() is None
    assert cache.is_degraded
    await cache.refresh()
    assert cache.addresses() == set(switchboard.addresses)
    assert not cache.is_degraded
    assert switchboard.asked == 3
    content = orjson.loads(bytes_of(path))
    assert datetime.fromisoformat(content["generated_at"]) == cache.generated_at == clock()
    assert content["addresses"] == switchboard.addresses
    if os.name == "posix":
        assert mode_of(path) == 0o600


async def test_a_connector_that_starts_again_has_them_without_asking(
    path: Path, switchboard: Switchboard, clock: ManualClock
):
    await ContactCache(path, switchboard, clock).refresh()
    switchboard.away = True
    clock.forward(59 * 60)
    again = ContactCache(path, switchboard, clock)
    assert again.addresses() == set(switchboard.addresses)
    assert again.generated_at == clock() - timedelta(minutes=59)


async def test_contacts_older_than_an_hour_are_not_used(path: Path, switchboard: Switchboard, clock: ManualClock):
    cache = ContactCache(path, switchboard, clock)
    await cache.refresh()
    clock.forward(3600)
    assert not cache.is_degraded
    clock.forward(1)
    assert cache.is_degraded
    assert cache.addresses() is None
    assert ContactCache(path, switchboard, clock).is_degraded
    await cache.refresh()
    assert not cache.is_degraded


async def test_nobody_known_is_something_else_than_not_known(path: Path, clock: ManualClock):
    cache = ContactCache(path, Switchboard(clock), clock)
    await cache.refresh()
    assert cache.addresses() == frozenset()


@pytest.mark.parametrize(("minutes", "is_degraded"), [(-61, True), (-59, False), (59, False), (61, True)])
async def test_contacts_are_as_old_as_the_switchboard_says_however_recently_they_were_fetched(
    path: Path, switchboard: Switchboard, clock: ManualClock, minutes: int, is_degraded: bool
):
    switchboard.skew = timedelta(minutes=minutes)
    cache = ContactCache(path, switchboard, clock)
    await cache.refresh()
    assert cache.is_degraded == is_degraded
    assert ContactCache(path, switchboard, clock).is_degraded == is_degraded


async def test_contacts_from_the_future_are_not_used(path: Path, switchboard: Switchboard, clock: ManualClock):
    await ContactCache(path, switchboard, clock).refresh()
    clock.forward(-3 * 3600)
    assert ContactCache(path, switchboard, clock).is_degraded


async def test_a_fetch_that_fails_leaves_what_is_there(path: Path, switchboard: Switchboard, clock: ManualClock):
    cache = ContactCache(path, switchboard, clock)
    await cache.refresh()
    before = bytes_of(path)
    switchboard.away = True
    with pytest.raises(SwitchboardUnavailable):
        await cache.refresh()
    switchboard.away, switchboard.loops = False, True
    with pytest.raises(BadInput, match="too many pages"):
        await cache.refresh()
    assert cache.addresses() == set(switchboard.addresses)
    assert bytes_of(path) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"addresses": []}',
        b'{"generated_at": "yesterday", "addresses": ["a@b"]}',
        b'{"generated_at": "2026-11-15T08:00:00", "addresses": ["a@b"]}',
        b'{"generated_at": "2026-11-15T08:00:00Z", "addresses": {}}',
        b"\xff\x00",
    ],
)
async def test_a_file_that_is_invalid_counts_as_missing(
    path: Path, switchboard: Switchboard, clock: ManualClock, content: bytes
):
    put(path, content)
    cache = ContactCache(path, switchboard, clock)
    assert cache.is_degraded
    await cache.refresh()
    assert not ContactCache(path, switchboard, clock).is_degraded


async def test_rules_are_the_shipped_pack_until_others_are_fetched_and_then_stay(path: Path, switchboard: Switchboard):
    cache = FilterCache(path, switchboard)
    assert cache.policy() is DEFAULT_POLICY
    await cache.refresh()
    assert cache.policy().rules == (SHOP,)
    switchboard.away = True
    again = FilterCache(path, switchboard)
    assert (again.policy().rules, again.version) == ((SHOP,), "1")


async def test_rules_that_did_not_change_are_not_written(path: Path, switchboard: Switchboard):
    cache = FilterCache(path, switchboard)
    await cache.refresh()
    put(path, b"untouched")
    await cache.refresh()
    assert bytes_of(path) == b"untouched"
    switchboard.version, switchboard.rules = "2", ()
    await cache.refresh()
    assert bytes_of(path) != b"untouched"
    assert cache.policy().rules == ()


@pytest.mark.parametrize("rules", ['[{"kind": "astrology"}]', "[1]", "{}", '["ab"]'])
def test_rules_that_are_invalid_count_as_missing(path: Path, switchboard: Switchboard, rules: str):
    put(path, f'{{"version": "1", "rules": {rules}}}'.encode())
    assert FilterCache(path, switchboard).policy() is DEFAULT_POLICY


async def test_what_is_kept_fresh_is_fetched_at_once_and_again_and_sooner_after_a_failure():
    stop, asked = asyncio.Event(), list[bool]()

    async def refresh() -> None:
        asked.append(len(asked) < 2)
        if len(asked) == 4:
            stop.set()
        if asked[-1]:
            raise SwitchboardUnavailable("away")

    async with asyncio.timeout(PATIENCE_S):
        await keep_fresh("a test", refresh, stop, every=timedelta(milliseconds=1), retry_after=timedelta(0))
    assert asked == [True, True, False, False]


async def test_whoever_stops_need_not_wait_for_the_next_time():
    stop, refreshed = asyncio.Event(), asyncio.Event()

    async def refresh() -> None:
        refreshed.set()

    keeping = asyncio.create_task(keep_fresh("a test", refresh, stop))
    async with asyncio.timeout(PATIENCE_S):
        await refreshed.wait()
        stop.set()
        await keeping
