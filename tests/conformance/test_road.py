"""The road of messages adds up, from source to tier, to who decided, to what was done; and what needs a person."""

from collections import Counter
from datetime import timedelta

from postroom.core.rules.draft import RuleDraft
from postroom.operations.overview.attention import needs_attention
from postroom.operations.overview.road import Road, read_road
from support.store.inbox_setup import InboxSetup, event, mail
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

RECEIPTS = RuleDraft("receipts", {"sender_domain": "shop.example"}, "apply_label", {"label": "Receipts"})
DAY = timedelta(days=1)


def stage(road: Road, number: int) -> dict[tuple[str, str], int]:
    counts = Counter[tuple[str, str]]()
    for each in road.links:
        if each.stage == number:
            counts[each.start, each.end] += each.count
    return dict(counts)


async def test_decisions_are_on_the_road_with_their_tier_their_decider_and_their_ending(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(RECEIPTS)
    await mail_setup.decide(Sample("1"), Sample("2"), Sample("3", sender="ann@other.example"))
    road = await read_road(setup.database, DAY, setup.clock)
    assert road.came_in == sum(road.tiers.values()) == 3
    assert sum(stage(road, 0).values()) == 3
    assert stage(road, 1) == {("default", "rule"): 2, ("default", "nobody"): 1}
    assert stage(road, 2) == {("rule", "apply_label"): 2, ("nobody", "none"): 1}


async def test_a_message_that_is_decided_again_has_one_outcome_the_latest(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.decide(Sample("1"), Sample("2"))
    await mail_setup.rules(RECEIPTS)
    for _ in range(2):
        setup.clock.forward(5 * 3_600)
        await mail_setup.again("1")
    road = await read_road(setup.database, DAY, setup.clock)
    assert road.came_in == 2
    assert stage(road, 1) == {("default", "rule"): 1, ("default", "nobody"): 1}
    assert stage(road, 2) == {("rule", "apply_label"): 1, ("nobody", "none"): 1}
    setup.clock.forward(12 * 3_600)
    assert all(each.count > 0 for each in (await read_road(setup.database, DAY / 2, setup.clock)).links)


async def test_events_go_to_the_agents_queue_and_small_sources_are_one(setup: JobSetup) -> None:
    inbox = InboxSetup(setup.database, setup.clock)
    await inbox.open_account()
    await inbox.batch(mail(1), *(event(n, source={"endpoint_identity": f"ci-{n}"}) for n in range(8)))
    road = await read_road(setup.database, DAY, setup.clock)
    sources = {start for start, _ in stage(road, 0)}
    assert len(sources) == 6
    assert "others" in sources
    assert sum(count for (_, end), count in stage(road, 1).items() if end == "agents") == 8
    await inbox.close()


async def test_the_road_forgets_what_is_older_than_its_window(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.decide(Sample("1"))
    setup.clock.forward(2 * 86_400)
    road = await read_road(setup.database, DAY, setup.clock)
    assert (road.came_in, road.links) == (0, ())
    assert (await read_road(setup.database, 7 * DAY, setup.clock)).came_in == 1


async def test_an_installation_without_an_account_needs_one_and_nothing_else(setup: JobSetup) -> None:
    assert [each.need for each in await needs_attention(setup.database, [], setup.clock)] == ["no_account"]
