"""For each writing verb of the figures and the roll-out of the outbound queue: a database in which it has work."""

from typing import Any

from postroom.core.outbound.rollout import Rollout
from postroom.store.engine.database import Transaction
from postroom.store.installation import figure_folds
from postroom.store.outbound import outbound, outbound_figures, outbound_turns
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_outbound import admitted, leased_outbound
from support.store.job_setup import JobSetup


async def apply_rollout(setup: JobSetup) -> Transaction[Any]:
    """A mail of a tenant that leaves the fair queue."""
    await admitted(setup)
    return outbound_turns.apply_rollout(Rollout("off"), 0)


async def prune_outbound_figures(setup: JobSetup) -> Transaction[Any]:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    return outbound_figures.prune_outbound_figures(setup.clock.forward(40 * 86_400))


async def fold_next(setup: JobSetup) -> Transaction[Any]:
    """Days of outgoing mail of which one is summed up, and the next is over."""
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    await setup.database.run(figure_folds.fold_next("outbound", setup.clock.forward(2 * 86_400)))
    return figure_folds.fold_next("outbound", setup.clock.forward(86_400))


CASES: list[Case] = [apply_rollout, prune_outbound_figures, fold_next]
