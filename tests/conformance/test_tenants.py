"""Tenants: their domains, weight and pause, each change audited."""

import pytest

from postroom.core.errors import Conflict, ConstraintBroken, NotFound
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.outbound import tenants
from postroom.store.outbound.tenants import TenantView
from postroom.store.people.audit import list_audit
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import added
from support.store.job_setup import JobSetup


async def acme(setup: JobSetup, *domains: str, weight: float = 1.0) -> TenantView:
    return await setup.database.run(tenants.add_tenant("acme", domains, weight, signed(), setup.clock()))


async def actions(setup: JobSetup) -> list[str]:
    return [entry.action for entry in reversed(await setup.database.run(list_audit(20)))]


async def test_a_tenant_is_shown_with_its_domains_and_the_number_of_its_senders(setup: JobSetup) -> None:
    made = await acme(setup, "b.example", "a.example", weight=2.5)
    assert made == TenantView(
        made.id, "acme", ("a.example", "b.example"), 0, 2.5, "active", None, setup.clock(), setup.clock()
    )
    await added(setup, "ada@a.example", "acme")
    await added(setup, "bob@other.example")
    listed = await setup.database.run(tenants.list_tenants())
    assert [(each.name, each.domains, each.senders) for each in listed] == [
        ("acme", ("a.example", "b.example"), 1),
        ("other.example", ("other.example",), 1),
    ]
    assert await setup.database.run(tenants.load_tenant("acme")) == listed[0]


async def test_a_name_or_a_domain_that_is_taken_is_refused_and_nothing_is_left(setup: JobSetup) -> None:
    await acme(setup, "a.example")
    before = await dump(setup.database)
    with pytest.raises(Conflict, match="there is already a tenant acme"):
        await acme(setup)
    with pytest.raises(Conflict, match=r"a\.example belongs to the tenant acme"):
        await setup.database.run(
            tenants.add_tenant("rival", ["new.example", "a.example"], 1.0, signed(), setup.clock())
        )
    assert {name: rows for name, rows in (await dump(setup.database)).items() if name != "sqlite_sequence"} == {
        name: rows for name, rows in before.items() if name != "sqlite_sequence"
    }


async def test_a_pause_has_its_reason_until_it_is_resumed_and_repeating_it_is_not_audited(setup: JobSetup) -> None:
    await acme(setup)
    reason = signed()._replace(reason="unpaid")
    for _ in range(2):
        paused = await setup.database.run(tenants.pause_tenant("acme", reason, setup.clock()))
        assert (paused.state, paused.state_reason) == ("paused", "unpaid")
    for _ in range(2):
        resumed = await setup.database.run(tenants.resume_tenant("acme", signed(), setup.clock()))
        assert (resumed.state, resumed.state_reason) == ("active", None)
    assert await actions(setup) == ["tenant.add", "tenant.pause", "tenant.resume"]


async def test_a_weight_is_changed_and_the_audit_log_has_both(setup: JobSetup) -> None:
    await acme(setup, weight=2.0)
    changed = await setup.database.run(tenants.weigh_tenant("acme", 0.5, signed(), setup.clock()))
    assert changed.weight == 0.5
    entry = (await setup.database.run(list_audit(1)))[0]
    assert (entry.action, entry.object_id, entry.before, entry.after) == (
        "tenant.weight",
        str(changed.id),
        {"weight": 2.0},
        {"weight": 0.5},
    )


async def test_a_tenant_that_does_not_exist_is_named(setup: JobSetup) -> None:
    for verb in (tenants.pause_tenant, tenants.resume_tenant):
        with pytest.raises(NotFound, match="there is no tenant nobody"):
            await setup.database.run(verb("nobody", signed(), setup.clock()))
    with pytest.raises(NotFound, match="there is no tenant nobody"):
        await setup.database.run(tenants.load_tenant("nobody"))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tenants SET weight = 0",
        "UPDATE tenants SET state = 'gone'",
        "UPDATE sender_domains SET daily_limit = 0",
        "UPDATE sender_domains SET tenant_id = 9999999",
        "UPDATE senders SET weight = -1",
        "UPDATE senders SET daily_limit = 0",
        "UPDATE senders SET abuse_score = 101",
        "UPDATE senders SET throttle_reason = 'a reason without an end'",
        "DELETE FROM tenants",
    ],
)
async def test_the_schema_itself_refuses_what_cannot_be(setup: JobSetup, change: str) -> None:
    await added(setup)

    @transaction
    def break_it() -> Script[None]:
        yield Text(change)

    with pytest.raises(ConstraintBroken):
        await setup.database.run(break_it())
