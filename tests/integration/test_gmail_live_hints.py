"""Hints through Pub/Sub trigger the next sync at once; without them polling finds everything."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.hints import PubSubHints
from postroom.mailboxes.gmail.following.watch import keep_watching
from postroom.mailboxes.gmail.tokens import PlainTokens
from postroom.store.engine.opening import open_database
from postroom_sandbox.pubsub import Subscription
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import OWNER, TOKEN, raw_mail

TOPIC = "projects/home/topics/gmail"
SUBSCRIPTION = "projects/home/subscriptions/postroom"


async def token() -> str:
    return TOKEN


@pytest.fixture
async def setup(clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    database = await open_database(tmp_path, None)
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found
    await database.close()


@pytest.fixture
def subscription(setup: GmailSetup) -> Subscription:
    return setup.emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)


def hints_of(setup: GmailSetup, **options: Any) -> PubSubHints:
    return PubSubHints(setup.http, SUBSCRIPTION, OWNER, PlainTokens(token), setup.address, **options)


async def test_a_watched_mailbox_is_looked_at_as_soon_as_mail_comes(setup: GmailSetup, subscription: Subscription):
    client = GmailClient(setup.http, setup.address, token)
    watching = asyncio.create_task(keep_watching(client, TOPIC))
    stop, connector = asyncio.Event(), setup.connector(hints=hints_of(setup))
    running = asyncio.create_task(connector.run(timedelta(hours=1), stop))
    await setup.health.until(lambda: setup.health.cursor is not None)
    await subscription.awaited.wait()
    setup.mailbox.deliver(raw_mail("hello"))
    await setup.health.until(lambda: setup.health.counters["ingested"] == 1)
    stop.set()
    await running
    watching.cancel()
    await asyncio.wait({watching})


async def test_what_is_told_of_another_mailbox_is_left_for_its_own_connector(
    setup: GmailSetup, subscription: Subscription
):
    setup.emulator.pubsub.publish(TOPIC, {"emailAddress": "ida@lindqvist.example", "historyId": 1})
    setup.emulator.pubsub.publish(TOPIC, {"emailAddress": OWNER.upper(), "historyId": 2})
    assert await hints_of(setup).pull()
    assert [b"ida@" in each.data for each in subscription.waiting] == [True]


@pytest.mark.parametrize("content", [{}, {"emailAddress": None}, {"other": 1}])
async def test_a_notification_that_is_invalid_is_a_hint_too(
    setup: GmailSetup, subscription: Subscription, content: dict[str, Any]
):
    setup.emulator.pubsub.publish(TOPIC, content)
    assert await hints_of(setup).pull() is ("emailAddress" not in content)


async def test_without_a_subscription_polling_goes_on(setup: GmailSetup):
    stop, connector = asyncio.Event(), setup.connector(hints=hints_of(setup))
    running = asyncio.create_task(connector.run(timedelta(milliseconds=1), stop))
    await setup.health.until(lambda: setup.health.cursor is not None)
    setup.mailbox.deliver(raw_mail("hello"))
    await setup.health.until(lambda: setup.health.counters["ingested"] == 1)
    stop.set()
    await running
