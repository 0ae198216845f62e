"""Senders: added by hand or for a mailbox, admitted within their limits, throttled and released."""

import asyncio
from datetime import datetime, timedelta

import asyncpg
import pytest

from postroom.core.errors import (
    Conflict,
    DailyLimitReached,
    NotFound,
    SenderDisabled,
    SenderThrottled,
    TenantPaused,
)
from postroom.core.outbound.limits import DailyLimits, next_day
from postroom.core.outbound.priority import Throttle
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.outbound import senders, tenants
from postroom.store.outbound.senders import Grounds, NewSender, Sender, SenderLogin, ThrottleChange
from postroom.store.people.audit import list_audit
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import ADA, added, admit, admitted, throttle, throttled
from support.store.job_setup import JobSetup
from support.store.running_worker import until

HOUR = timedelta(hours=1)


@transaction
def find(tenant: str, domain: str, username: str, now: datetime, since: datetime | None = None) -> Script[Sender]:
    return (yield from senders.sender_for(tenant, domain, username, now, since))


async def show(setup: JobSetup, username: str = ADA) -> senders.SenderView:
    return await setup.database.run(senders.load_sender(username, setup.clock()))


async def audited(setup: JobSetup) -> list[str]:
    return [entry.action for entry in reversed(await setup.database.run(list_audit(50)))]


# adding and finding


async def test_a_sender_brings_its_domain_and_a_tenant_of_the_domains_name(setup: JobSetup) -> None:
    ada = await added(setup, plan="team", daily_limit=1000, password_hash="$argon2id$x")
    assert (ada.username, ada.domain, ada.tenant) == (ADA, "example.com", "example.com")
    assert (ada.addresses, ada.plan, ada.daily_limit, ada.has_password) == (("*@example.com",), "team", 1000, True)
    assert (ada.lane, ada.state, ada.abuse_score, ada.accepted_today) == ("low", "active", 0, 0)
    setup.clock.forward(7 * 86_400)
    assert (await show(setup)).lane == "high"
    assert [each.username for each in await setup.database.run(senders.list_senders(setup.clock()))] == [ADA]
    assert await setup.database.run(senders.list_senders(setup.clock(), "acme")) == []
    assert await setup.database.run(senders.list_senders(setup.clock(), throttled=True)) == []
    await setup.database.run(senders.throttle_sender(ADA, throttle(setup), signed(), setup.clock()))
    assert len(await setup.database.run(senders.list_senders(setup.clock(), throttled=True))) == 1


async def test_domains_of_one_tenant_are_grouped_and_a_domain_has_one_tenant(setup: JobSetup) -> None:
    await added(setup, "ada@a.example", "acme")
    await added(setup, "bob@b.example", "acme")
    acme = await setup.database.run(tenants.load_tenant("acme"))
    assert (acme.domains, acme.senders) == (("a.example", "b.example"), 2)
    assert (await added(setup, "eve@a.example")).tenant == "acme"
    with pytest.raises(Conflict, match=r"a\.example belongs to the tenant acme"):
        await added(setup, "mallory@a.example", "rival")
    with pytest.raises(Conflict, match=r"there is already a sender ada@a\.example"):
        await added(setup, "ada@a.example")


async def test_the_owner_of_a_mailbox_is_found_or_made(setup: JobSetup) -> None:
    since = setup.clock() - timedelta(days=30)
    made = await setup.database.run(find("example.com", "Example.com", "Ada@example.com", setup.clock(), since))
    assert (made.username, made.tenant, made.plan, made.created_at) == (ADA, "example.com", "standard", since)
    assert made.lane(setup.clock()) == "normal"
    assert (made.weight, made.domain_weight, made.tenant_weight) == (1.0, 1.0, 1.0)
    before = await dump(setup.database)
    assert await setup.database.run(find("other", "example.com", ADA, setup.clock())) == made
    assert await dump(setup.database) == before


async def test_the_owner_of_a_mailbox_belongs_to_the_tenant_that_has_the_domain(setup: JobSetup) -> None:
    await setup.database.run(tenants.add_tenant("acme", ["example.com"], 3.0, signed(), setup.clock()))
    made = await setup.database.run(find("example.com", "example.com", ADA, setup.clock()))
    assert (made.tenant, made.tenant_weight) == ("acme", 3.0)
    assert [each.name for each in await setup.database.run(tenants.list_tenants())] == ["acme"]


async def test_two_processes_that_make_the_same_sender_agree(setup: JobSetup, second_database: Database) -> None:
    names = [f"user{number % 5}@example.com" for number in range(20)]
    found = await asyncio.gather(
        *(
            database.run(find("example.com", "example.com", name, setup.clock()))
            for name in names
            for database in (setup.database, second_database)
        )
    )
    assert len({each.id for each in found}) == 5
    assert len({each.tenant_id for each in found}) == len({each.domain_id for each in found}) == 1


async def test_a_login_is_found_in_any_spelling_and_does_not_print_its_hash(setup: JobSetup) -> None:
    ada = await added(setup)
    await setup.database.run(senders.set_password(ADA, "$argon2id$secret", signed(), setup.clock()))
    login = await setup.database.run(senders.sender_by_login("ADA@Example.com"))
    assert login == SenderLogin(
        ada.id, ADA, "$argon2id$secret", "active", ("*@example.com",), None, "example.com", "example.com"
    )
    assert "secret" not in repr(login)
    assert await setup.database.run(senders.sender_by_login("nobody")) is None
    entries = await setup.database.run(list_audit(5))
    assert "secret" not in repr(entries)
    assert await audited(setup) == ["sender.add", "sender.password"]


async def test_a_sender_is_disabled_with_a_reason_and_enabled_again(setup: JobSetup) -> None:
    await added(setup)
    left = signed()._replace(reason="left the company")
    assert await setup.database.run(senders.disable_sender(ADA, left, setup.clock()))
    assert not await setup.database.run(senders.disable_sender(ADA, signed(), setup.clock()))
    assert ((await show(setup)).state, (await show(setup)).state_reason) == ("disabled", "left the company")
    assert await setup.database.run(senders.enable_sender(ADA, signed(), setup.clock()))
    assert not await setup.database.run(senders.enable_sender(ADA, signed(), setup.clock()))
    assert await audited(setup) == ["sender.add", "sender.disable", "sender.enable"]


async def test_a_sender_that_does_not_exist_is_named(setup: JobSetup) -> None:
    with pytest.raises(NotFound, match="there is no sender nobody"):
        await show(setup, "nobody")
    with pytest.raises(NotFound, match="there is no sender nobody"):
        await setup.database.run(senders.release_sender("nobody", signed(), setup.clock()))
    with pytest.raises(NotFound, match="there is no sender with the id 77"):
        await admitted(setup, 77)


# admission


async def test_recipients_count_up_to_the_daily_limit_and_begin_anew_at_midnight(setup: JobSetup) -> None:
    ada = await added(setup)
    await admitted(setup, ada.id, 299)
    with pytest.raises(DailyLimitReached, match="daily limit of 300") as refused:
        await admitted(setup, ada.id, 2)
    assert refused.value.until == next_day(setup.clock())
    await admitted(setup, ada.id, 1)
    with pytest.raises(DailyLimitReached):
        await admitted(setup, ada.id)
    assert (await show(setup)).accepted_today == 300
    setup.clock.forward(16 * 3600)
    await admitted(setup, ada.id, 300)
    assert (await show(setup)).accepted_today == 300


async def test_a_mail_with_more_recipients_than_a_day_allows_is_refused_at_once(setup: JobSetup) -> None:
    ada = await added(setup)
    before = await dump(setup.database)
    with pytest.raises(DailyLimitReached):
        await admitted(setup, ada.id, 301)
    assert await dump(setup.database) == before


async def test_a_sender_may_have_a_limit_of_its_own_and_the_settings_another(setup: JobSetup) -> None:
    ada, bob = await added(setup, daily_limit=2), await added(setup, "bob@example.com")
    limits = DailyLimits(sender=1)
    await admitted(setup, ada.id, 2, limits)
    await admitted(setup, bob.id, 1, limits)
    for sender in (ada, bob):
        with pytest.raises(DailyLimitReached):
            await admitted(setup, sender.id, 1, limits)


async def test_a_domain_with_a_limit_shares_it_among_its_senders(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.com")
    eve = await added(setup, "eve@other.example")
    limits = DailyLimits(domain=3)
    await admitted(setup, ada.id, 2, limits)
    with pytest.raises(DailyLimitReached, match=r"^example\.com has reached the daily limit of 3"):
        await admitted(setup, bob.id, 2, limits)
    await admitted(setup, bob.id, 1, limits)
    await admitted(setup, eve.id, 3, limits)
    assert (await show(setup, "bob@example.com")).accepted_today == 1


@transaction
def admit_both(ids: tuple[int, int], limits: DailyLimits, now: datetime) -> Script[list[str]]:
    """Accept what may be accepted, and go on after a refusal."""
    refused: list[str] = []
    for id in ids:
        try:
            yield from senders.admitting(id, 2, now, limits)
        except DailyLimitReached as error:
            refused.append(str(error))
    return refused


async def test_a_transaction_goes_on_after_a_refusal_that_counted_nothing(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.com")
    refused = await setup.database.run(admit_both((ada.id, bob.id), DailyLimits(domain=3), setup.clock()))
    assert len(refused) == 1
    assert ((await show(setup)).accepted_today, (await show(setup, "bob@example.com")).accepted_today) == (2, 0)


async def test_a_limit_is_exact_when_many_submit_at_once(setup: JobSetup, second_database: Database) -> None:
    ada = await added(setup)
    tries = [
        database.run(admit(ada.id, 1, setup.clock(), DailyLimits(sender=10)))
        for _ in range(15)
        for database in (setup.database, second_database)
    ]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(outcome is None for outcome in outcomes) == 10
    assert sum(isinstance(outcome, DailyLimitReached) for outcome in outcomes) == 20
    assert (await show(setup)).accepted_today == 10


async def test_a_throttled_sender_is_refused_until_the_throttles_end(setup: JobSetup) -> None:
    ada = await throttled(setup)
    end = throttle(setup).until
    with pytest.raises(SenderThrottled, match="throttled until 2026-11-15 12:00 UTC: 31 of 100 bounced") as refused:
        await admitted(setup, ada.id)
    assert refused.value.until == end
    setup.clock.forward(4 * 3600)
    await admitted(setup, ada.id)
    assert (await show(setup)).lane == "throttled"


async def test_a_disabled_sender_and_a_paused_tenant_are_refused(setup: JobSetup) -> None:
    ada = await added(setup)
    unpaid = signed()._replace(reason="unpaid")
    await setup.database.run(tenants.pause_tenant("example.com", unpaid, setup.clock()))
    with pytest.raises(TenantPaused, match=r"mail of example\.com is paused: unpaid"):
        await admitted(setup, ada.id)
    await setup.database.run(senders.disable_sender(ADA, signed(), setup.clock()))
    with pytest.raises(SenderDisabled, match=r"ada@example\.com may not send mail: disabled"):
        await admitted(setup, ada.id)


# throttles


async def test_a_throttle_by_hand_stands_with_its_reason_and_is_changed_by_another(setup: JobSetup) -> None:
    await added(setup)
    first, second = throttle(setup), Throttle(setup.clock() + HOUR, "a complaint")
    change = await setup.database.run(senders.throttle_sender(ADA, first, signed(), setup.clock()))
    assert (change.sender.throttle, change.throttle) == (None, first)
    change = await setup.database.run(senders.throttle_sender(ADA, second, signed(), setup.clock()))
    assert (change.sender.throttle, change.throttle) == (first, second)
    shown = await show(setup)
    assert (shown.throttled_until, shown.throttle_reason, shown.lane) == (*second, "throttled")
    entry = (await setup.database.run(list_audit(1)))[0]
    assert entry.before == {"until": first.until.isoformat(), "reason": first.reason}
    assert entry.after == {"until": second.until.isoformat(), "reason": "a complaint", "score": None}


async def test_a_release_tells_what_changed_and_the_former_lane_is_back(setup: JobSetup) -> None:
    await throttled(setup)
    setup.clock.forward(8 * 86_400)
    change = await setup.database.run(senders.release_sender(ADA, signed(), setup.clock()))
    assert isinstance(change, ThrottleChange)
    assert change.sender.lane(setup.clock()) == "throttled"
    assert change.throttle is None
    assert (await show(setup)).lane == "normal"
    before = await dump(setup.database)
    assert await setup.database.run(senders.release_sender(ADA, signed(), setup.clock())) is None
    assert await dump(setup.database) == before


async def test_of_two_processes_that_throttle_for_a_score_one_does_and_one_notice_is_asked_for(
    setup: JobSetup, second_database: Database
) -> None:
    ada = await added(setup)
    grounds = Grounds(60, setup.clock())
    changes = await asyncio.gather(
        *(
            database.run(
                senders.throttle_for_score(
                    ada.id, throttle(setup), grounds, [setup.new(key="notice")], signed(), setup.clock()
                )
            )
            for database in (setup.database, second_database) * 3
        )
    )
    assert sum(change is not None for change in changes) == 1
    assert await audited(setup) == ["sender.add", "sender.throttle"]
    assert len(await setup.claim()) == 1


async def test_the_lock_of_a_sender_lets_only_one_throttle_begin(
    postgres_setup: JobSetup, emptied_postgres_url: str
) -> None:
    """Both have begun, and neither may read the sender before the other has ended."""
    setup = postgres_setup
    ada, grounds = await added(setup), Grounds(60, setup.clock())
    other = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    try:
        hindrance = other.transaction()
        await hindrance.start()
        await other.execute("SELECT 1 FROM senders WHERE id = $1 FOR UPDATE", ada.id)
        throttle_once = senders.throttle_for_score(ada.id, throttle(setup), grounds, [], signed(), setup.clock())
        again = senders.throttle_for_score(ada.id, throttle(setup), grounds, [], signed(), setup.clock())
        beginning = [asyncio.create_task(setup.database.run(each)) for each in (throttle_once, again)]
        await until(lambda: _two_wait(other))
        await hindrance.rollback()
        changes = await asyncio.gather(*beginning)
    finally:
        await other.close()
    assert sum(change is not None for change in changes) == 1


async def _two_wait(other: asyncpg.Connection) -> bool:
    return await other.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") >= 2


async def test_a_throttle_for_a_score_ends_only_when_its_time_is_over(setup: JobSetup) -> None:
    ada = await throttled(setup)
    assert await setup.database.run(senders.release_for_score(ada.id, signed(), setup.clock())) is None
    now = setup.clock.forward(4 * 3600)
    assert await setup.database.run(senders.release_for_score(ada.id, signed(), now)) is not None
    assert await setup.database.run(senders.release_for_score(ada.id, signed(), now)) is None


async def test_a_new_sender_may_be_made_while_another_has_its_username_pending(setup: JobSetup) -> None:
    new = NewSender(ADA, "example.com", (ADA,))
    made = await asyncio.gather(
        *(setup.database.run(senders.add_sender(new, signed(), setup.clock())) for _ in range(4)),
        return_exceptions=True,
    )
    assert sum(isinstance(each, senders.SenderView) for each in made) == 1
    assert sum(isinstance(each, Conflict) for each in made) == 3
