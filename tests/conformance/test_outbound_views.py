"""Outgoing mail as people see it: counts by destination equal what happened, evenness is that of the core, lists
page by key."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from postroom.core.lifecycle import DeliveryState
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.fairness import Service, evenness
from postroom.core.outbound.reports import Original
from postroom.core.outbound.rollout import Rollout
from postroom.operations.outbound.evenness_history import EvennessHistory
from postroom.store.backfill.backfill_estimates import estimates_by_id
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound import outbound, outbound_reports, suppressions, tenants
from postroom.store.outbound.outbound_figures import KEEP, prune_outbound_figures
from postroom.store.outbound.outbound_recipients import Attempt, RecipientChange, record_outcomes
from postroom.store.outbound.outbound_results import OutboundResults, load_results
from postroom.store.outbound.outbound_views import (
    SuppressionKey,
    evenness_hours,
    load_conversation,
    page_of_mail,
    page_of_suppressions,
    waiting_tenants,
)
from postroom.store.outbound.sender_counts import next_hour
from support.smtp_sending import SmtpSending
from support.store.fault_cases_outbound import LEASE, leased_outbound
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.outbound_traffic import Traffic

ALL = Rollout("all")
LONG_AGO = timedelta(days=400)


async def results_of(setup: JobSetup) -> OutboundResults:
    now = setup.clock()
    return await setup.database.run(load_results(now - LONG_AGO, next_hour(now), 100))


async def test_results_equal_what_happened(setup: JobSetup) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng, sending = Random(seed), SmtpSending(setup.database, setup.clock)
    happened: Counter[tuple[str, str, str]] = Counter()
    outcomes = [("sent", None), ("bounced", BounceClass.HARD), ("rejected", BounceClass.CONTENT), ("expired", None)]
    for _ in range(8):
        for _ in range(rng.randrange(1, 4)):
            await sending.put(*(f"r{n}@d{rng.randrange(3)}.example" for n in range(rng.randrange(1, 4))))
        for mail in await sending.lease():
            recipients = (await setup.database.run(load_conversation(mail.id, 9))).recipients
            changes: list[RecipientChange] = []
            for each in recipients:
                state, found = rng.choice(outcomes)
                changes.append(RecipientChange(each.position, each.address, state, "said", None, found))  # type: ignore[arg-type]
                happened[each.address.partition("@")[2], state, found.value if found else ""] += 1
            await setup.database.run(record_outcomes([Attempt(mail.hold, changes)], setup.clock()))
        setup.clock.forward(rng.choice((1, 1800)))
    results = await results_of(setup)
    by_class: Counter[tuple[str, str]] = Counter()
    by_destination: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (destination, state, found), count in happened.items():
        by_class[state, found] += count
        by_destination[destination][state] += count
    assert {(each.result, each.bounce_class): each.count for each in results.classes} == by_class
    assert {each.destination for each in results.destinations} == set(by_destination)
    for each in results.destinations:
        counted = Counter(sent=each.sent, bounced=each.bounced, rejected=each.rejected, expired=each.expired)
        assert +counted == by_destination[each.destination]


async def test_mail_through_a_mailbox_counts_and_so_does_a_late_report(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock(), "later", setup.clock()))
    now = setup.clock.forward(1)
    [again] = await setup.database.run(outbound.lease_mail(UUID(int=7), 9, now, now + LEASE))
    await setup.database.run(outbound.deliver(again.hold, "18c1", now))
    sending = SmtpSending(setup.database, setup.clock)
    id = await sending.put("ada@example.org", content=b"Message-ID: <one@sender.example>\r\n\r\nHello.\r\n")
    [mail] = await sending.lease()
    sent = RecipientChange(0, "ada@example.org", "sent", "250 ok")
    await setup.database.run(record_outcomes([Attempt(mail.hold, [sent])], setup.clock()))
    bounce = outbound_reports.Bounce("ada@example.org", "550 no", "5.1.1", BounceClass.HARD)
    await setup.database.run(
        outbound_reports.record_bounces(Original("<one@sender.example>", mark=id), [bounce], setup.clock())
    )
    found = {each.destination: each for each in (await results_of(setup)).destinations}
    assert (found["example.com"].deferred, found["example.com"].sent) == (1, 1)
    assert (found["example.org"].sent, found["example.org"].bounced) == (1, 1)


async def test_an_attempt_without_a_lease_counts_nothing(setup: JobSetup) -> None:
    sending = SmtpSending(setup.database, setup.clock)
    await sending.put("ada@example.org")
    [mail] = await sending.lease()
    sent = [Attempt(mail.hold, [RecipientChange(0, "ada@example.org", "sent", "250 ok")])]
    for _ in range(2):
        await setup.database.run(record_outcomes(sent, setup.clock()))
    [found] = (await results_of(setup)).destinations
    assert found.sent == 1


async def test_old_results_are_forgotten(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    await setup.database.run(prune_outbound_figures(setup.clock()))
    assert (await results_of(setup)).classes
    await setup.database.run(prune_outbound_figures(setup.clock.forward(KEEP.total_seconds() + 7200)))
    assert not (await results_of(setup)).classes


async def test_evenness_by_hour_is_that_of_the_core_and_hours_that_are_over_are_remembered(setup: JobSetup) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng, traffic = Random(seed), await Traffic.open(setup)
    await setup.database.run(tenants.weigh_tenant("t1", 3.0, signed(), setup.clock()))
    history, start = EvennessHistory(setup.database), hour_of(setup.clock())
    served: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
    for _ in range(6):
        for _ in range(4):
            name, recipients = rng.choice(sorted(traffic.owners)), rng.randrange(1, 5)
            await traffic.put(name, 1, ALL, recipients)
            served[hour_of(setup.clock())][traffic.owners[name][0].tenant] += recipients
            for each in await traffic.take(50, ALL):
                await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock()))
        found = await history.since(start, setup.clock())
        assert found == await setup.database.run(evenness_hours(start, next_hour(setup.clock())))
        setup.clock.forward(rng.choice((600, 3600, 4 * 3600)))
    hours = await history.since(start, setup.clock())
    assert [each.hour for each in hours] == sorted(served)
    for each in hours:
        counts = served[each.hour]
        expected = evenness(Service(count, 3.0 if name == "t1" else 1.0) for name, count in counts.items())
        assert (each.members, each.served) == (expected.members, sum(counts.values()))
        assert abs(each.gini - expected.gini) < 1e-9
        assert abs(each.jain - expected.jain) < 1e-9
    assert await history.since(start + timedelta(days=-1), setup.clock()) == hours


async def test_waiting_tenants_are_counted_with_what_is_held(setup: JobSetup) -> None:
    traffic = await Traffic.open(setup)
    await traffic.put("team@d1.example", 3, ALL)
    since = setup.clock()
    setup.clock.forward(60)
    await traffic.put("free@d1.example", 2, ALL)
    await traffic.put("free@d2.example", 2, ALL)
    await setup.database.run(tenants.pause_tenant("t2", signed(), setup.clock()))
    found = sorted(await setup.database.run(waiting_tenants()), key=lambda each: -each.waiting)
    assert [(each.waiting, each.held) for each in found] == [(5, 0), (2, 2)]
    assert found[0].oldest_due_at == since


async def test_mail_is_listed_newest_first_by_state_and_by_key(setup: JobSetup) -> None:
    sending = SmtpSending(setup.database, setup.clock)
    ids = [await sending.put(f"r{n}@d.example") for n in range(9)]
    states = ["bounced", "sent", "expired"] * 3
    for mail in await sending.lease():
        place = ids.index(mail.id)
        change = RecipientChange(0, f"r{place}@d.example", states[place], "said")  # type: ignore[arg-type]
        await setup.database.run(record_outcomes([Attempt(mail.hold, [change])], setup.clock()))
    choices: list[tuple[DeliveryState, ...]] = [(), ("bounced",), ("bounced", "expired")]
    for wanted in choices:
        expected = [id for id, state in zip(ids, states, strict=True) if not wanted or state in wanted][::-1]
        found: list[UUID] = []
        before = None
        while lines := await setup.database.run(page_of_mail(wanted, before, 2)):
            found += [each.id for each in lines]
            before = lines[-1].seq
        assert found == expected


async def test_suppressions_are_listed_newest_first_and_by_key(setup: JobSetup) -> None:
    expected: list[tuple[str, str]] = []
    for number in range(8):
        name, address = f"t{number % 2}.example", f"a{number}@x.example"
        await setup.database.run(suppressions.suppress(name, address, signed(), setup.clock()))
        expected.append((name, address))
        setup.clock.forward(number % 3)
    for tenant in (None, "t1.example"):
        found: list[tuple[str, str]] = []
        before = None
        while lines := await setup.database.run(page_of_suppressions(tenant, before, 3)):
            found += [(each.tenant, each.address) for each in lines]
            before = SuppressionKey(lines[-1].created_at, lines[-1].tenant, lines[-1].address)
        assert sorted(found) == sorted(each for each in expected if tenant in (None, each[0]))
        assert found[0][1] == "a7@x.example"


async def test_no_estimates_are_read_for_no_jobs(setup: JobSetup) -> None:
    assert await setup.database.run(estimates_by_id([])) == []
