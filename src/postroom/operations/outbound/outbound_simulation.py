"""Simulate outgoing mail: from a scenario, or as it was really sent."""

from datetime import datetime
from random import Random

from postroom.core.outbound.simulation.history import History, HistoryWorkload
from postroom.core.outbound.simulation.scenario import Destination, Scenario, TenantGroup, check_scenario
from postroom.core.outbound.simulation.simulator import ScenarioWorkload
from postroom.store.engine.database import Database
from postroom.store.outbound.outbound_history import list_sent_mail

PAGE = 10_000


def scenario_workload(scenario: Scenario) -> ScenarioWorkload:
    return ScenarioWorkload(scenario, Random)


def changed_scenario(scenario: Scenario, flood: int, slots: int | None, seed: int | None) -> Scenario:
    """The scenario with a tenant that sends `flood` mails at once, and other slots or another seed. Raises BadInput."""
    groups = scenario.tenants
    if flood:
        # First, so that all mail that comes at the same time is behind it.
        groups = (TenantGroup(name="flood", burst=flood), *(group for group in groups if group.name != "flood"))
    changes = {"tenants": groups, "slots": slots or scenario.slots, "seed": scenario.seed if seed is None else seed}
    return check_scenario(scenario.model_copy(update=changes))


def history_workload(
    history: History, slots: int, destination: Destination, seed: int, flood: int = 0
) -> HistoryWorkload:
    return HistoryWorkload(history, slots, destination, seed, Random, flood)


async def load_history(database: Database, since: datetime, most: int) -> History:
    """The first `most` mails that were accepted since then."""
    history, after = History(), 0
    while len(history) < most:
        mails, after = await database.run(list_sent_mail(since, after, min(PAGE, most - len(history))))
        for mail in mails:
            history.add(mail)
        if not mails:
            break
    return history
