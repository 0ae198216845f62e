"""The simulator: what small tenants wait when a big one floods, and that nothing starves, idles or comes too early."""

import gc
import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.store.outbound.outbound_history import SentMail
from postroom_simulator.arrivals import Arrivals, SimulatedMail
from postroom_simulator.disciplines import DISCIPLINES, DisciplineName, Fair, discipline_of
from postroom_simulator.history import SIZE_NAMES, History, HistoryWorkload
from postroom_simulator.measures import Waits
from postroom_simulator.presets import PRESETS
from postroom_simulator.scenario import Destination, Scenario, TenantGroup, Throttling, read_scenario
from postroom_simulator.simulator import (
    GroupResult,
    Result,
    ScenarioWorkload,
    Simulator,
    compare,
    simulate,
)
from support.scale import scale


def outcomes(scenario: Scenario, *names: DisciplineName) -> dict[str, Result]:
    """The result of each discipline, and `alone`."""
    return {each.discipline: each for each in compare(ScenarioWorkload(scenario), names or DISCIPLINES)}


def group(result: Result, name: str) -> GroupResult:
    return next(each for each in result.groups if each.name == name)


def expected(scenario: Scenario) -> int:
    return sum(1 for _ in Arrivals(scenario, Random(scenario.seed)))


class Recording:
    """A discipline that remembers when mail began."""

    def __init__(self, scenario: Scenario, name: DisciplineName = "fair") -> None:
        self.arrivals = Arrivals(scenario, Random(scenario.seed))
        self.inner = discipline_of(name, scenario.slots)
        self.run = Simulator(scenario.slots, self.arrivals, self)
        self.begun: list[tuple[float, SimulatedMail]] = []
        for number, each in enumerate(scenario.tenants):
            self.run.throttle(each, number)
        self.run.run()

    def __len__(self) -> int:
        return len(self.inner)

    def put(self, mail: SimulatedMail) -> None:
        self.inner.put(mail)

    def take(self, free: int) -> list[SimulatedMail]:
        taken = list(self.inner.take(free))
        assert len(taken) == min(free, len(taken) + len(self.inner)), "a slot is idle while mail waits"
        self.begun += [(self.run.now, mail) for mail in taken]
        return taken

    def release(self, mail: SimulatedMail) -> None:
        self.inner.release(mail)

    def withdraw(self, sender: Any) -> list[SimulatedMail]:
        return self.inner.withdraw(sender)


def test_a_flood_at_most_doubles_what_small_tenants_wait() -> None:
    found = outcomes(PRESETS["flood"])
    small = {name: group(result, "small") for name, result in found.items()}
    assert small["fair"].p95 <= 2 * small["alone"].p95
    assert found["fair"].jain >= 0.95
    assert found["fair"].idle_share == 0
    # The others in the same table: behind the flood, or with a third of the slots unused.
    assert small["fifo"].p95 > 50 * small["alone"].p95
    assert small["priority"].p95 > 50 * small["alone"].p95
    assert found["fifo"].jain < 0.2
    assert found["single-pass"].idle_share > 0.2
    assert found["single-pass"].ended_s > 1.3 * found["fair"].ended_s


def test_with_as_many_slots_as_small_mails_a_flood_at_most_doubles_the_time_to_delivery() -> None:
    found = outcomes(PRESETS["flood"].model_copy(update={"slots": 100}), "fair", "fifo")
    fair, alone = group(found["fair"], "small"), group(found["alone"], "small")
    assert fair.delivered_p95 <= 2 * alone.delivered_p95
    assert group(found["fifo"], "small").delivered_p95 > 10 * alone.delivered_p95


def burst(**tenants: tuple[int, int]) -> Scenario:
    """Groups by how many tenants they have, and how many mails each of them sends at once."""
    groups = tuple(TenantGroup(name=name, tenants=count, burst=mails) for name, (count, mails) in tenants.items())
    return Scenario(tenants=groups, destinations={"default": Destination(median=1)})


@pytest.mark.parametrize("scenario", [burst(big=(1, 500), small=(150, 1)), burst(big=(1, 1000), small=(1, 1))])
def test_neither_big_nor_small_domains_starve_or_leave_slots_unused(scenario: Scenario) -> None:
    found = outcomes(scenario, "fair", "fifo", "single-pass")
    fair = found["fair"]
    assert sum(each.mails for each in fair.groups) == expected(scenario)
    assert fair.idle_share == 0
    assert fair.jain >= 0.95
    # All slots are used to the end, so it takes as long as it must.
    assert fair.ended_s == found["fifo"].ended_s
    assert group(fair, "small").longest <= 6
    assert group(fair, "big").longest_pause <= 6
    assert group(fair, "small").p95 <= group(found["fifo"], "small").p95


def test_a_single_pass_never_reaches_the_largest_domain_while_small_ones_keep_coming() -> None:
    """150 domains of one mail each and 100 slots: the pass ends before it comes to the domain of 500."""
    small = TenantGroup(name="small", tenants=150, burst=1, every=1)
    big = TenantGroup(name="big", burst=500)
    scenario = Scenario(lasts=60, tenants=(small, big), destinations={"default": Destination(median=0.5)})
    found = outcomes(scenario, "fair", "single-pass")
    assert group(found["single-pass"], "big").longest_pause > 30
    assert group(found["fair"], "big").longest_pause < 5
    assert found["single-pass"].ended_s > found["fair"].ended_s


def test_tenants_that_come_and_go_have_neither_credit_nor_debt() -> None:
    scenario = PRESETS["newcomers"].model_copy(update={"lasts": scale(400, 900)})
    found = outcomes(scenario, "fair", "fifo")
    fair = found["fair"]
    assert sum(each.mails for each in fair.groups) == expected(scenario)
    assert (fair.idle_share, round(fair.jain, 2)) == (0, 1)
    for name in ("comes and goes", "newcomer"):
        assert group(fair, name).p95 < group(found["fifo"], name).p95 / 5
        assert group(fair, name).longest_pause < 10
    assert group(fair, "steady").longest_pause < 10


def test_a_slow_destination_neither_starves_others_nor_leaves_slots_unused() -> None:
    scenario = PRESETS["slow-destination"].model_copy(update={"lasts": scale(200, 900)})
    found = outcomes(scenario, "fair", "fifo")
    fair = found["fair"]
    assert sum(each.mails for each in fair.groups) == expected(scenario)
    assert fair.idle_share == 0
    assert group(fair, "fast").p95 < group(found["fifo"], "fast").p95 / 10
    assert group(fair, "fast").longest_pause < 10
    # Slots come free once a minute only, and the others are entitled to them while they wait.
    assert group(fair, "slow").longest_pause < 2 * 60


def test_a_tenant_with_twice_the_weight_gets_twice_as_much() -> None:
    tenants = (TenantGroup(name="two", weight=2, burst=900), TenantGroup(name="one", burst=900))
    begun = Recording(Scenario(slots=10, tenants=tenants)).begun
    first = Counter(mail.sender.tenant.group for _, mail in begun[:900])
    assert abs(first[0] - 600) <= 2


def throttled(name: DisciplineName) -> Recording:
    throttle = Throttling(at=5, lasts=600, restored_after=300)
    tenants = (
        TenantGroup(name="bad", rate=12, throttle=throttle, lane="high"),
        TenantGroup(name="good", tenants=3, rate=2),
    )
    return Recording(Scenario(slots=10, lasts=1000, tenants=tenants), name)


@pytest.mark.parametrize("name", ["fair", "fifo", "priority"])
def test_throttled_mail_never_leaves_before_its_time_and_is_restored_afterwards(name: DisciplineName) -> None:
    made = throttled(name)
    bad = [(now, mail) for now, mail in made.begun if mail.sender.tenant.group == 0]
    assert not [now for now, _ in bad if 5 <= now < 605]
    assert made.run.measures.refused > 0
    assert {mail.lane for now, mail in bad if 605 <= now < 905} == {"throttled"}
    assert {mail.lane for now, mail in bad if now < 5 or mail.came > 905} == {"high"}
    assert len(made.begun) == len({mail.seq for _, mail in made.begun}), "nothing leaves twice"


def test_each_user_is_served_in_the_order_of_acceptance() -> None:
    tenants = tuple(TenantGroup(name=f"t{n}", users=3, domains=2, burst=60, every=30) for n in range(4))
    begun = Recording(Scenario(slots=7, lasts=200, tenants=tenants)).begun
    by_user: defaultdict[int, list[int]] = defaultdict(list)
    for _, mail in begun:
        by_user[mail.sender.path[2]].append(mail.seq)
    assert len(by_user) == 24
    assert all(seqs == sorted(seqs) for seqs in by_user.values())


def test_deferred_mail_returns_as_a_retry_until_it_is_delivered() -> None:
    destination = Destination(median=1, deferred=0.3)
    scenario = Scenario(slots=5, tenants=(TenantGroup(name="t", burst=300),), destinations={"default": destination})
    begun = Recording(scenario).begun
    ends = Counter(mail.seq for _, mail in begun if not mail.deferrals)
    assert sorted(ends) == list(range(1, 301))
    assert {mail.lane for _, mail in begun if mail.attempt} == {"retry"}
    assert all(now >= mail.came for now, mail in begun), "no retry before its time"


def test_the_same_seed_gives_the_same_result_and_all_disciplines_the_same_mail() -> None:
    scenario = PRESETS["newcomers"].model_copy(update={"lasts": 60})
    work = ScenarioWorkload(scenario)
    assert simulate(work, "fair") == simulate(work, "fair")
    other = ScenarioWorkload(scenario.model_copy(update={"seed": 2}))
    assert simulate(work, "fair") != simulate(other, "fair")
    assert [each.mails for each in simulate(work, "fair").groups] == [
        each.mails for each in simulate(work, "fifo").groups
    ]


def test_a_queued_mail_takes_less_than_400_bytes() -> None:
    count = scale(50_000, 1_000_000)
    tenants = (TenantGroup(name="flood", burst=count), TenantGroup(name="small", tenants=100, users=10, burst=10))
    arrivals = Arrivals(Scenario(tenants=tenants), Random(1))
    queue = Fair(100)
    gc.collect()
    tracemalloc.start()
    try:
        for mail in arrivals:
            queue.put(mail)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue) == count + 1_000
    assert taken / len(queue) < 400


def test_memory_stays_flat_while_mail_passes() -> None:
    """What has been delivered is not kept: the second half needs no more than the first."""
    lasts = scale(40, 10_000)
    tenants = (TenantGroup(name="t", tenants=20, rate=5),)
    scenario = Scenario(lasts=lasts, tenants=tenants, destinations={"default": Destination(median=0.5)})
    run = Simulator(100, Arrivals(scenario, Random(1)), Fair(100))
    used: list[int] = []
    tracemalloc.start()
    try:
        run.run(lambda _begun: used.append(tracemalloc.get_traced_memory()[0]), every=scale(400, 50_000))
    finally:
        tracemalloc.stop()
    half = len(used) // 2
    assert len(used) >= 8
    assert max(used[half:]) < 1.1 * max(used[:half]) + 100_000


def test_a_million_mails_are_simulated() -> None:
    size = scale(1, 100)
    tenants = (
        TenantGroup(name="flood", burst=5_000 * size),
        TenantGroup(name="small", tenants=100 * size, burst=10, every=600),
    )
    found = outcomes(Scenario(slots=5 * size, lasts=2_400, tenants=tenants), "fair")
    assert sum(each.mails for each in found["fair"].groups) == 10_000 * size
    assert group(found["fair"], "small").p95 <= 2 * group(found["alone"], "small").p95


def past(seconds: float, tenant: int, recipients: int = 1) -> SentMail:
    return SentMail(seconds, (tenant, tenant, tenant), (1.0, 1.0, 1.0), "normal", recipients, False)


def test_a_history_is_replayed_by_the_size_of_tenants_and_with_a_flood_in_its_midst() -> None:
    history = History()
    for n in range(2_000):
        history.add(past(1_000 + n, 7))
    for n in range(60):
        history.add(past(3_000 + n, 8 + n % 6))
    work = HistoryWorkload(history, 2, Destination(median=0.5), 1, flood=500)
    plain = {each.discipline: each for each in compare(replace(work, flood=0), ("fair",))}
    assert group(plain["fair"], SIZE_NAMES[3]).mails == 2_000
    assert group(plain["fair"], SIZE_NAMES[0]).mails == 60
    found = {each.discipline: each for each in compare(work, ("fair", "fifo"))}
    assert group(found["fair"], "flood").mails == 500
    big = SIZE_NAMES[3]
    assert group(found["fair"], big).p95 < group(found["fifo"], big).p95 / 5
    assert group(found["alone"], big).longest == 0


def test_waits_are_exact_to_two_percent() -> None:
    waits = Waits()
    for n in range(1, 10_001):
        waits.add(n / 100)
    for part in (0.01, 0.5, 0.95, 0.99):
        assert waits.quantile(part) == pytest.approx(100 * part, rel=0.025)
    assert (waits.quantile(1), waits.longest) == (100, 100)
    assert Waits().quantile(0.5) == 0


GROUP: dict[str, Any] = {"name": "a", "burst": 1}


@pytest.mark.parametrize(
    ("document", "field", "remedy"),
    [
        ({}, "tenants", "[[tenants]]"),
        ({"tenants": [GROUP], "slotz": 3}, "slotz", "did you mean 'slots'?"),
        ({"tenants": [{**GROUP, "burts": 3}]}, "tenants.1.burts", "did you mean 'burst'?"),
        ({"tenants": [GROUP, {"name": "b"}]}, "tenants.2", "give `burst` or `rate`"),
        ({"tenants": [{**GROUP, "rate": -1}]}, "tenants.1.rate", "mails a second"),
        ({"tenants": [{**GROUP, "starts": "soon"}]}, "tenants.1.starts", "10m"),
        ({"tenants": [{**GROUP, "every": 0}]}, "tenants.1.every", "above 0"),
        ({"tenants": [{**GROUP, "lane": "vip"}]}, "tenants.1.lane", "high, normal, low or throttled"),
        ({"tenants": [{**GROUP, "destination": "x"}]}, "tenants.1.destination", "[destinations.x]"),
        ({"tenants": [GROUP, GROUP]}, "tenants", "a name of its own"),
        ({"tenants": [{**GROUP, "name": "<svg>"}]}, "tenants.1.name", "a short name"),
        ({"tenants": [{**GROUP, "tenants": 1000, "rate": 100}]}, "tenants", "lower `rate`"),
        ({"tenants": [GROUP], "destinations": {"x": {"median": 2, "p95": 1}}}, "destinations.x", "reference"),
        ({"tenants": [GROUP], "destinations": 3}, "destinations", "[destinations.NAME]"),
        ({"tenants": [GROUP], "slots": 0}, "slots", "1 or more"),
    ],
)
def test_a_wrong_scenario_is_refused_with_the_field_and_the_remedy(
    document: dict[str, Any], field: str, remedy: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read_scenario(document)
    assert refused.value.field.startswith(field)
    assert remedy in refused.value.remedy


def test_a_scenario_is_read() -> None:
    document = {
        "slots": 7,
        "lasts": "10m",
        "tenants": [{"name": "a", "tenants": 2, "rate": 0.5, "every": "1.5h", "burst": 3, "destination": "x"}],
        "destinations": {"x": {"median": "800ms", "p95": "3s"}},
    }
    scenario = read_scenario(document)
    assert (scenario.lasts, scenario.tenants[0].every, scenario.destinations["x"].median) == (600, 5400, 0.8)
    assert scenario.expected_mails() == 2 * (3 + 300)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_pass_their_own_checks(name: str) -> None:
    scenario = PRESETS[name]
    assert read_scenario(scenario.model_dump() | {"tenants": [each.model_dump() for each in scenario.tenants]})
