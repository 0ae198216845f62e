"""Figures of the outbound queue: they equal what happened, for both disciplines, across restarts and changed stages."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

import pytest

from postroom.core.metrics import (
    OUTBOUND_FALSE_POSITIVES,
    OUTBOUND_GINI,
    OUTBOUND_HEALTH,
    OUTBOUND_JAIN,
    OUTBOUND_LANE_LIMIT,
    OUTBOUND_LARGEST_SHARE,
    OUTBOUND_THROTTLED,
    OUTBOUND_THROTTLED_MAIL,
    OUTBOUND_TIME_TO_DETECT,
    OUTBOUND_WAITING,
)
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.delivery_health import DeliveryHealth, Trouble
from postroom.core.outbound.fairness import gini, jain
from postroom.core.outbound.priority import Throttle
from postroom.core.outbound.rollout import Rollout
from postroom.core.tally import Gauges
from postroom.operations.outbound.outbound_health import outbound_health
from postroom.operations.outbound.outbound_stats import outbound_stats
from postroom.operations.overview.attention import Attention, needs_attention
from postroom.outbound.queue.gauges import SHOWN, OutboundGauges
from postroom.outbound.queue.queue_watch import QueueWatch
from postroom.settings.outbound import OutboundSettings
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import destinations, outbound, outbound_answers, senders, tenants
from postroom.store.outbound.outbound_figures import (
    KEEP,
    OutboundFigures,
    load_figures,
    prune_outbound_figures,
    waiting_lanes,
)
from postroom.store.outbound.outbound_recipients import Attempt, RecipientChange, load_outgoing, record_outcomes
from postroom.store.outbound.outbound_results import CountedOutcome, counting_outcomes
from postroom.store.outbound.outbound_turns import apply_rollout, miscounted_turns
from postroom.store.outbound.sender_counts import next_hour
from postroom.store.outbound.senders import Grounds
from support.patience import PATIENCE_S
from support.scale import scale
from support.store.fault_cases_outbound import LEASE
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.outbound_traffic import Traffic

ALL, OFF, MEASURE = Rollout("all"), Rollout("off"), Rollout("measure")
STAGES = (OFF, MEASURE, Rollout("share", 0.3), Rollout("share", 0.7), ALL)
LONG_AGO = timedelta(days=400)


def half_of(traffic: Traffic) -> Rollout:
    """A stage in which some tenants are on the fair queue, and some are not."""
    names = sorted({owner.tenant for owner, _, _ in traffic.owners.values()})
    for percent in range(1, 100):
        rollout = Rollout("share", percent / 100)
        if 0 < sum(map(rollout.is_fair, names)) < len(names):
            return rollout
    raise AssertionError(names)


async def figures_of(database: Database, now: datetime) -> OutboundFigures:
    return await database.run(load_figures(now - LONG_AGO, next_hour(now), now))


def recorded_times(figures: OutboundFigures) -> Counter[tuple[str, str, str, int]]:
    return Counter({(each.measure, each.discipline, each.lane, each.bucket): each.count for each in figures.times})


def recorded_service(figures: OutboundFigures) -> Counter[tuple[str, int]]:
    return Counter({(each.discipline, each.sender_id): each.recipients for each in figures.service})


async def test_figures_equal_what_happened(setup: JobSetup, second_database: Database) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng = Random(seed)
    traffic = await Traffic.open(setup)
    rollout = rng.choice(STAGES)
    for _ in range(scale(12, 120)):
        if rng.random() < 0.2:
            rollout = rng.choice((*STAGES, half_of(traffic)))
            await traffic.apply(rollout)
        traffic.stopwatch_s = rng.choice((0.0, 0.0005, 0.02, 3.0))
        for _ in range(rng.randrange(4)):
            name, count = rng.choice(sorted(traffic.owners)), rng.choice((1, 2, 5))
            await traffic.put(name, count, rollout, rng.choice((1, 1, 3)), rng.random() < 0.3)
        setup.clock.forward(rng.choice((0.0, 0.003, 1.5, 70.0, 1800.0)))
        # From two connections by turns, as two processes would.
        await traffic.take(rng.choice((1, 4, 20)), rollout, rng.choice((setup.database, second_database)))
        await traffic.end_some(rng)
    figures = await figures_of(second_database, setup.clock())
    assert recorded_times(figures) == traffic.known_times()
    assert recorded_service(figures) == traffic.known_service()
    assert sum(each.mails for each in figures.service) <= sum(each.leases for each in traffic.mails.values())


async def test_the_sum_of_times_is_exact(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 2, ALL)
    setup.clock.forward(10)
    await traffic.put("team@d1.example", 1, ALL)
    setup.clock.forward(0.000_007)
    for each in await traffic.take(9, ALL):
        await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock.forward(1)))
    figures = await figures_of(setup.database, setup.clock())
    totals = Counter[str]()
    for each in figures.times:
        totals[each.measure] += each.total_us
    assert totals == {"wait": 20_000_021, "delivery": 26_000_021, "choosing": 0}


async def test_by_smtp_each_recipient_counts_when_it_gets_the_mail(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    traffic.account_id = None
    await traffic.put("team@d1.example", 1, ALL, recipients=3)
    for outcomes in (("held", "held", "held"), ("sent", "sent", "held"), ("sent",)):
        (leased,) = await traffic.take(1, ALL)
        (found,) = await setup.database.run(load_outgoing([leased.hold], setup.clock()))
        assert found is not None
        later = setup.clock.forward(10) + timedelta(minutes=1)
        changes = [
            RecipientChange(each.position, each.address, "sent", "250 fine")
            if outcome == "sent"
            else RecipientChange(each.position, each.address, "queued", None, not_before=later, uncounted=True)
            for each, outcome in zip(found.recipients, outcomes, strict=True)
        ]
        await setup.database.run(record_outcomes([Attempt(leased.hold, changes)], setup.clock()))
        setup.clock.forward(60)
    figures = await figures_of(setup.database, setup.clock())
    totals = Counter[str]()
    for each in figures.times:
        totals[each.measure] += each.count
    assert totals == {"wait": 1, "delivery": 3, "choosing": 3}
    assert sum(each.mails for each in figures.service) == 3


async def test_nothing_is_measured_while_the_fair_queue_is_off(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 3, OFF)
    for each in await traffic.take(9, OFF):
        await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock.forward(1)))
    figures = await figures_of(setup.database, setup.clock())
    assert (figures.service, figures.times) == ([], [])


async def test_measuring_shows_first_in_first_out_by_priority(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    for name in ("team@d1.example", "free@d1.example"):
        await traffic.put(name, 3, MEASURE)
    assert {each.lane for each in await traffic.take(9, MEASURE)} == {"fifo"}
    figures = await figures_of(setup.database, setup.clock())
    assert {(each.discipline, each.lane) for each in figures.times if each.measure == "wait"} == {
        ("fifo", "high"),
        ("fifo", "low"),
    }


async def test_a_stage_that_changes_while_mail_waits_loses_and_repeats_nothing(setup: JobSetup) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng = Random(seed)
    traffic = await Traffic.open(setup)
    rollout = MEASURE
    for _ in range(scale(8, 80)):
        for _ in range(rng.randrange(4)):
            await traffic.put(rng.choice(sorted(traffic.owners)), rng.randrange(1, 5), rollout, rng.choice((1, 2)))
        rollout = rng.choice((*STAGES, half_of(traffic)))
        await traffic.apply(rollout, rng.choice((1, 3, 1000)))
        before = {each.lane for each in await setup.database.run(waiting_lanes())}
        assert (rollout.stage == "all") <= ("fifo" not in before)
        assert (rollout.stage in ("off", "measure")) <= (before <= {"fifo"})
        await traffic.take(rng.choice((0, 1, 7)), rollout)
    while await traffic.take(10, rollout):
        pass
    assert [each.leases for each in traffic.mails.values()] == [1] * len(traffic.mails)
    assert await setup.database.run(miscounted_turns()) == []


async def test_mail_is_moved_while_it_is_chosen_and_queued(setup: JobSetup, second_database: Database) -> None:
    traffic, rounds = await Traffic.open(setup), scale(6, 60)
    share = half_of(traffic)
    for name in sorted(traffic.owners):
        await traffic.put(name, 5, MEASURE)
    leased: Counter[UUID] = Counter()

    async def choose(database: Database) -> None:
        for _ in range(rounds):
            now = setup.clock()
            leased.update(each.id for each in await database.run(outbound.lease_mail(new_id(), 4, now, now + LEASE)))

    async def move(rollout: Rollout) -> None:
        for _ in range(rounds):
            after: int | None = 0
            while after is not None:
                after = await setup.database.run(apply_rollout(rollout, after, 7))

    async def queue(rollout: Rollout) -> None:
        for number in range(rounds):
            await traffic.put(sorted(traffic.owners)[number % len(traffic.owners)], 2, rollout)

    work = (choose(setup.database), choose(second_database), move(ALL), move(share), queue(ALL), queue(MEASURE))
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*work)
    assert await setup.database.run(miscounted_turns()) == []
    while batch := await setup.database.run(outbound.lease_mail(new_id(), 50, setup.clock(), setup.clock() + LEASE)):
        leased.update(each.id for each in batch)
    assert leased == Counter(list(traffic.mails))


async def test_a_tenant_that_joins_the_fair_queue_overtakes_the_flood_before_it(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 50, MEASURE)
    await traffic.put("team@d2.example", 2, MEASURE)
    await traffic.apply(ALL, 1000)
    first = Counter(traffic.mails[each.id].owner for each in await traffic.take(6, ALL))
    assert first == {"team@d1.example": 4, "team@d2.example": 2}


async def test_retries_that_join_the_fair_queue_have_their_own_lane(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 1, MEASURE)
    for each in await traffic.take(1, MEASURE):
        await setup.database.run(outbound.give_back_mail(each.hold, None, setup.clock()))
    await traffic.put("free@d1.example", 1, MEASURE)
    await traffic.take(0, MEASURE)  # wakes what was given back
    await traffic.apply(ALL)
    assert {each.lane for each in await traffic.take(9, ALL)} == {"retry", "low"}


async def test_old_figures_are_forgotten(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 1, ALL)
    await traffic.take(1, ALL)
    now = setup.clock.forward(KEEP.total_seconds() - 3600)
    await setup.database.run(prune_outbound_figures(now))
    assert (await figures_of(setup.database, now)).service
    now = setup.clock.forward(2 * 3600)
    await setup.database.run(prune_outbound_figures(now))
    figures = await figures_of(setup.database, now)
    assert (figures.service, figures.times) == ([], [])


# What is read from them


async def test_both_disciplines_are_shown_side_by_side(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup, 6)
    rollout = half_of(traffic)
    for name in sorted(traffic.owners):
        await traffic.put(name, 1 + 5 * name.startswith("team@d1"), rollout)
    setup.clock.forward(5)
    traffic.stopwatch_s = 0.004
    for each in await traffic.take(99, rollout):
        await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock()))
    settings = Settings.model_validate({"outbound": {"fair_queue": "share", "fair_queue_share": rollout.share}})
    stats = await outbound_stats(setup.database, settings, setup.clock, since=setup.clock())
    assert (stats.stage, stats.share) == ("share", rollout.share)
    for discipline, shown in stats.disciplines.items():
        by_tenant, by_sender = Counter[str](), Counter[str]()
        for mail in traffic.mails.values():
            if rollout.is_fair(mail.tenant) == (discipline == "fair"):
                by_tenant[mail.tenant] += 1
                by_sender[mail.owner] += 1
        assert shown.leased == shown.delivered == by_tenant.total() > 0
        assert shown.evenness["tenant"].gini == pytest.approx(gini(list(by_tenant.values())))
        assert shown.evenness["sender"].jain == pytest.approx(jain(list(by_sender.values())))
        assert shown.evenness["domain"].members == len(by_tenant)
        assert shown.evenness["tenant"].largest_share == max(by_tenant.values()) / by_tenant.total()
        assert set(shown.waits) == {"high", "normal", "low", "all"}
        assert shown.waits["all"].mean_s == shown.deliveries["all"].mean_s == 5
        assert 4 < shown.waits["high"].p95_s < 6.25
        assert shown.choosing is None
    assert stats.choosing_both is not None
    assert stats.choosing_both.mean_s == pytest.approx(0.004)


async def test_service_is_judged_by_weight(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await setup.database.run(tenants.weigh_tenant("t1", 3.0, signed(), setup.clock()))
    for tenant in (1, 2):
        await traffic.put(f"team@d{tenant}.example", 40, ALL)
    await traffic.take(40, ALL)
    stats = await outbound_stats(setup.database, Settings.model_validate({}), setup.clock, since=setup.clock())
    found = stats.disciplines["fair"].evenness["tenant"]
    assert (found.gini, found.jain, found.largest_share) == (pytest.approx(0), pytest.approx(1), 0.75)


async def test_the_health_of_the_queue_limits_lanes_that_compete(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    watch = QueueWatch(setup.database, 10, setup.clock)
    assert watch.limits(20) == {}
    assert (await watch.look()).multiplier == 1.5
    await traffic.put("team@d1.example", 20, ALL)
    assert (await watch.look()).multiplier == 0.7
    setup.clock.forward(31 * 60)
    health = await watch.look()
    assert (health.queued, health.oldest_wait) == (20, timedelta(minutes=31))
    assert health.multiplier == pytest.approx(0.35)
    assert watch.limits(20) == {"high": 10, "normal": 7, "low": 3, "throttled": 1, "retry": 7, "fifo": 7}


async def test_delivery_is_judged_by_what_became_of_mail_and_not_by_an_empty_queue_alone(setup: JobSetup) -> None:
    traffic, judged = await Traffic.open(setup), OutboundSettings.model_validate({"max_queue": 10})

    async def health() -> DeliveryHealth:
        return await outbound_health(setup.database, judged, setup.clock())

    async def results(*outcomes: CountedOutcome) -> None:
        @transaction
        def counted() -> Script[None]:
            yield from counting_outcomes(outcomes, UUID(int=1), setup.clock())

        await setup.database.run(counted())

    assert await health() == DeliveryHealth("healthy", ())
    refused = CountedOutcome("ann@shut.example", "deferred", BounceClass.REPUTATION)
    await results(*[refused] * 4)
    assert (await health()).condition == "healthy", "a few refusals are everyday life"
    await results(refused)
    assert await health() == DeliveryHealth("failing", (Trouble("stuck", True, 5, 5, "reputation"),))
    await results(*[CountedOutcome("ann@open.example", "sent")] * 94)
    assert (await health()).condition == "healthy"
    await results(*[CountedOutcome("ann@open.example", "bounced", BounceClass.HARD)] * 6)
    assert await health() == DeliveryHealth("degraded", (Trouble("failed", False, 6, 100, "hard"),))
    await setup.database.run(destinations.pause_destination("shut.example", signed(), setup.clock()))
    await traffic.put("team@d1.example", 20, ALL)
    setup.clock.forward(3600)
    throttle = Throttle(setup.clock() + timedelta(hours=4), "spam")
    await traffic.put("team@d2.example", 3, ALL)
    await setup.database.run(senders.throttle_sender("team@d2.example", throttle, signed(), setup.clock()))
    found = await health()
    assert [each.kind for each in found.troubles] == ["late", "failed", "long", "held", "paused"]
    assert (found.condition, found.troubles[-2]) == ("failing", Trouble("held", False, 1, 3))
    setup.clock.forward(3600)
    assert "failed" not in [each.kind for each in (await health()).troubles], "that was two hours ago"
    stats = await outbound_stats(setup.database, Settings.model_validate({}), setup.clock, since=setup.clock())
    assert stats.health.condition == "degraded", "with the usual size of the queue it is only late"
    assert await needs_attention(setup.database, [], setup.clock, judged) == [
        Attention("outgoing", 1, detail="A mail has waited for 2 hours, of 20 mails that wait."),
        Attention("no_account", 1, command="postroom account add imap"),
    ]


async def test_mail_that_is_held_back_is_no_burden_to_the_queue(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 20, ALL)
    await traffic.put("team@d2.example", 20, ALL)
    now = setup.clock()
    throttle = Throttle(now + timedelta(hours=4), "spam")
    await setup.database.run(senders.throttle_sender("team@d1.example", throttle, signed(), now))
    await setup.database.run(tenants.pause_tenant("t2", signed(), now))
    now = setup.clock.forward(3600)
    health = await QueueWatch(setup.database, 10, setup.clock).look()
    assert (health.queued, health.oldest_wait) == (0, timedelta(0))
    assert (await figures_of(setup.database, now)).throttled_mail == 20


async def test_what_waits_is_as_old_as_its_first_mail_of_either_class(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 1, ALL, bulk=True)
    setup.clock.forward(60)
    await traffic.put("team@d1.example", 1, ALL)
    await traffic.put("free@d1.example", 1, MEASURE)
    now = setup.clock.forward(5)
    found = {each.lane: each for each in await setup.database.run(waiting_lanes())}
    assert {lane: each.waiting for lane, each in found.items()} == {"high": 2, "fifo": 1}
    assert found["high"].oldest_due_at == now - timedelta(seconds=65)
    assert found["fifo"].oldest_due_at == now - timedelta(seconds=5)


# Metrics


async def test_the_process_that_leads_shows_gauges_and_others_show_none(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 6, ALL)
    await traffic.put("team@d2.example", 2, ALL)
    await traffic.take(8, ALL)
    await traffic.put("free@d1.example", 3, ALL)
    now = setup.clock()
    for name, since in (("standard@d1.example", 60), ("standard@d2.example", 120)):
        await traffic.put(name, 2, ALL)
        grounds = Grounds(60, now - timedelta(minutes=since))
        throttle = Throttle(now + timedelta(hours=4), "31 of 100 bounced")
        sender_id = traffic.owners[name][2]
        await setup.database.run(senders.throttle_for_score(sender_id, throttle, grounds, [], signed(), now))
    await setup.database.run(senders.release_sender("standard@d2.example", signed(), now))
    gauges, leads = Gauges(), [True]
    shown = OutboundGauges(setup.database, gauges, lambda: leads[0], 10, 4, setup.clock)
    await shown.show()
    assert gauges.values_of(OUTBOUND_GINI)["fair", "tenant"] == gini([6, 2])
    assert gauges.values_of(OUTBOUND_JAIN)["fair", "sender"] == jain([6, 2])
    assert gauges.values_of(OUTBOUND_LARGEST_SHARE)["fair", "domain"] == 0.75
    assert gauges.values_of(OUTBOUND_WAITING)["low",] == 3
    assert gauges.values_of(OUTBOUND_THROTTLED) == {("held",): 1, ("draining",): 0}
    assert gauges.values_of(OUTBOUND_THROTTLED_MAIL) == {(): 2}
    assert gauges.values_of(OUTBOUND_FALSE_POSITIVES) == {(): 0.5}
    assert 3600 * 0.75 <= gauges.values_of(OUTBOUND_TIME_TO_DETECT)[()] <= 3600 * 1.25
    assert gauges.values_of(OUTBOUND_HEALTH) == {(): 1.0}
    assert gauges.values_of(OUTBOUND_LANE_LIMIT) == {("high",): 6, ("normal",): 4, ("low",): 2, ("throttled",): 1}
    leads[0] = False
    await shown.show()
    assert all(gauges.values_of(metric) == {} for metric in SHOWN)


async def test_canceled_mail_is_neither_served_nor_delivered(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 1, ALL)
    (id,) = traffic.mails
    await setup.database.run(outbound_answers.cancel_mail(id, signed(), setup.clock()))
    assert await traffic.take(1, ALL) == []
    figures = await figures_of(setup.database, setup.clock())
    assert (figures.service, figures.times) == ([], [])
