"""A running sender moves waiting mail when the stage has changed, keeps to the limits, and counts for the metrics."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta
from random import Random

import pytest

from postroom.core.mail.carrier import DraftKept
from postroom.core.metrics import (
    OUTBOUND_CHOOSING,
    OUTBOUND_DELIVERED,
    OUTBOUND_LATENCY,
    OUTBOUND_LEASED,
    OUTBOUND_WAIT,
)
from postroom.core.outbound.rollout import Rollout
from postroom.core.tally import Tally
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.meter import OutboundMeter
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.queue_watch import QueueWatch
from postroom.store.outbound import outbound
from postroom.store.outbound.outbound_figures import load_figures
from postroom.store.outbound.sender_counts import next_hour
from support.mailboxes import always
from support.store.job_setup import JobSetup
from support.store.outbound_traffic import Traffic
from support.store.sending import PostOffice
from support.until import until

ALL, MEASURE = Rollout("all"), Rollout("measure")


class Slow(PostOffice):
    """It never finishes with a mail."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        await asyncio.Event().wait()
        raise AssertionError


def post_office() -> PostOffice:
    office = PostOffice(Random(1))
    office.trouble = 0
    return office


@contextlib.asynccontextmanager
async def running(sender: OutboundDispatcher) -> AsyncGenerator[None]:
    task = asyncio.create_task(sender.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def in_state(setup: JobSetup, state: str, count: int) -> list[outbound.MailView]:
    async def look() -> list[outbound.MailView]:
        return await setup.database.run(outbound.list_mail(1000, state))

    return await until(setup.database, look, lambda found: len(found) >= count, (outbound.CHANNEL,))


async def test_what_was_leased_and_delivered_is_counted_in_metrics_and_figures(sqlite_setup: JobSetup) -> None:
    traffic, tally, clock = await Traffic.open(sqlite_setup), Tally(), sqlite_setup.clock
    await traffic.put("team@d1.example", 3, MEASURE)
    await traffic.put("free@d2.example", 2, MEASURE)
    clock.forward(20)
    meter = OutboundMeter(tally)
    sender = OutboundDispatcher(sqlite_setup.database, always(post_office()), Pace(), clock, rollout=ALL, meter=meter)
    async with running(sender):
        await in_state(sqlite_setup, "sent", 5)
    expected = {("fair", "high"): 3, ("fair", "low"): 2}
    assert tally.counts_of(OUTBOUND_LEASED) == tally.counts_of(OUTBOUND_DELIVERED) == expected
    for metric in (OUTBOUND_WAIT, OUTBOUND_LATENCY):
        found = tally.histograms_of(metric)
        assert {key: (each.count, each.total) for key, each in found.items()} == {
            ("fair", "high"): (3, 60),
            ("fair", "low"): (2, 40),
        }
    (choosing,) = tally.histograms_of(OUTBOUND_CHOOSING).values()
    now = clock()
    figures = await sqlite_setup.database.run(load_figures(now - timedelta(hours=1), next_hour(now), now))
    recorded = Counter[str]()
    for each in figures.times:
        recorded[each.measure] += each.count
    assert recorded == {"wait": 5, "delivery": 5, "choosing": choosing.count}


@pytest.mark.parametrize("is_watched", [True, False])
async def test_lanes_that_compete_keep_to_the_limits_of_a_bad_queue(sqlite_setup: JobSetup, is_watched: bool) -> None:
    """A bad queue takes slots from normal mail, and none from mail of high priority."""
    traffic, clock = await Traffic.open(sqlite_setup), sqlite_setup.clock
    for name in ("team@d1.example", "standard@d2.example", "free@d3.example"):
        await traffic.put(name, 25, ALL)
    clock.forward(31 * 60)
    watch = QueueWatch(sqlite_setup.database, 10, clock)
    await watch.look()
    limited = watch if is_watched else None
    office, pace = always(Slow(Random(1))), Pace(at_once=20)
    sender = OutboundDispatcher(sqlite_setup.database, office, pace, clock, rollout=ALL, watch=limited)
    async with running(sender):
        sending = await in_state(sqlite_setup, "sending", 20)
        found = Counter(traffic.mails[each.id].lane for each in sending)
    assert found == ({"high": 10, "normal": 7, "low": 3} if is_watched else {"high": 9, "normal": 8, "low": 3})
