"""Hints that come through Pub/Sub make the next look come at once; without them polling finds everything."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import ManualClock
from integration.gmail_desk import GmailDesk, gmail_desk
from integration.product import OWNER, TOKEN, letter
from postroom.connectors.gmail.hints import PubSubHints
from postroom.connectors.gmail.watch import keep_watching
from postroom.gmail.client import GmailClient
from postroom.gmail.tokens import PlainTokens
from postroom.store.engine.opening import open_database
from postroom_sandbox.pubsub import Subscription

TOPIC = "projects/home/topics/gmail"
SUBSCRIPTION = "projects/home/subscriptions/postroom"


async def token() -> str:
    return TOKEN


@pytest.fixture
async def desk(clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailDesk]:
    database = await open_database(tmp_path, None)
    async with gmail_desk(database, clock, tmp_path / "state") as found:
        yield found
    await database.close()


@pytest.fixture
def subscription(desk: GmailDesk) -> Subscription:
    return desk.emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)


def hints_of(desk: GmailDesk, **options: Any) -> PubSubHints:
    return PubSubHints(desk.http, SUBSCRIPTION, OWNER, PlainTokens(token), desk.address, **options)


async def test_a_watched_mailbox_is_looked_at_as_soon_as_mail_comes(desk: GmailDesk, subscription: Subscription):
    client = GmailClient(desk.http, desk.address, token)
    watching = asyncio.create_task(keep_watching(client, TOPIC))
    stop, connector = asyncio.Event(), desk.connector(hints=hints_of(desk))
    running = asyncio.create_task(connector.run(timedelta(hours=1), stop))
    await desk.vitals.until(lambda: desk.vitals.cursor is not None)
    await subscription.awaited.wait()
    desk.mailbox.deliver(letter("hello"))
    await desk.vitals.until(lambda: desk.vitals.counters["ingested"] == 1)
    stop.set()
    await running
    watching.cancel()
    await asyncio.wait({watching})


async def test_what_is_told_of_another_mailbox_is_left_for_its_own_connector(
    desk: GmailDesk, subscription: Subscription
):
    desk.emulator.pubsub.publish(TOPIC, {"emailAddress": "ida@lindqvist.example", "historyId": 1})
    desk.emulator.pubsub.publish(TOPIC, {"emailAddress": OWNER.upper(), "historyId": 2})
    assert await hints_of(desk).pull()
    assert [b"ida@" in each.data for each in subscription.waiting] == [True]


@pytest.mark.parametrize("content", [{}, {"emailAddress": None}, {"other": 1}])
async def test_a_notification_that_makes_no_sense_is_a_hint_too(
    desk: GmailDesk, subscription: Subscription, content: dict[str, Any]
):
    desk.emulator.pubsub.publish(TOPIC, content)
    assert await hints_of(desk).pull() is ("emailAddress" not in content)


async def test_without_a_subscription_polling_goes_on(desk: GmailDesk):
    stop, connector = asyncio.Event(), desk.connector(hints=hints_of(desk))
    running = asyncio.create_task(connector.run(timedelta(milliseconds=1), stop))
    await desk.vitals.until(lambda: desk.vitals.cursor is not None)
    desk.mailbox.deliver(letter("hello"))
    await desk.vitals.until(lambda: desk.vitals.counters["ingested"] == 1)
    stop.set()
    await running
