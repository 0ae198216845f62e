"""How much work there is, as the metrics show it."""

from datetime import timedelta

from postroom.core import metrics
from postroom.core.queue.queues import Queues
from postroom.core.tally import Gauges
from postroom.intake.buffer import Buffer
from postroom.operations.backfill.keeper import Keeper
from postroom.store.actions.model_calls import CallEnd, end_call
from postroom.store.jobs.work_figures import load_work_figures
from support.store.fault_cases_actions import ask_once
from support.store.fault_cases_model import started
from support.store.job_setup import JobSetup


def keeper(setup: JobSetup, gauges: Gauges) -> Keeper:
    buffer = Buffer(setup.database, Queues(), setup.clock)
    keep = timedelta(days=30)
    return Keeper(setup.database, Queues(), buffer, gauges, keep=keep, keep_rollups=keep, clock=setup.clock)


async def test_jobs_are_counted_by_type_and_stage(setup: JobSetup) -> None:
    for type in ("plain", "other"):
        await setup.fail(await setup.claimed(type))
    await setup.retry_later(await setup.claimed("other"), 100)
    await setup.park(await setup.claimed("other"))
    await setup.finish(await setup.claimed())
    await setup.claimed("sync")
    later = setup.clock() + timedelta(hours=1)
    await setup.accept(setup.new(), setup.new(), setup.new("other", not_before=later))
    found = await setup.database.run(load_work_figures(setup.clock()))
    assert found.jobs == {
        ("plain", "failed"): 1,
        ("other", "failed"): 1,
        ("other", "retrying"): 1,
        ("other", "parked"): 1,
        ("sync", "running"): 1,
        ("plain", "ready"): 2,
        ("other", "scheduled"): 1,
    }
    assert found.database_bytes > 0


async def test_calls_to_the_model_are_counted_by_state_with_their_cost(setup: JobSetup) -> None:
    call = await started(setup)
    gauges = Gauges()
    await keeper(setup, gauges).measure_work()
    assert gauges.values_of(metrics.MODEL_SPEND) == {(): 0.01}
    assert gauges.values_of(metrics.MODEL_CALLS)[("started",)] == 1
    await setup.database.run(end_call(call.id, CallEnd("failed", error="broken"), setup.clock()))
    await keeper(setup, gauges).measure_work()
    assert gauges.values_of(metrics.MODEL_CALLS) == {("started",): 0, ("answered",): 0, ("refused",): 0, ("failed",): 1}
    setup.clock.forward(86_400)
    await keeper(setup, gauges).measure_work()
    assert gauges.values_of(metrics.MODEL_SPEND) == {(): 0}


async def test_actions_are_counted_by_state_with_the_wait_of_the_oldest_approval(setup: JobSetup) -> None:
    gauges = Gauges()
    await keeper(setup, gauges).measure_work()
    assert gauges.values_of(metrics.ACTIONS)[("approved_pending",)] == 0
    assert gauges.values_of(metrics.APPROVAL_AGE) == {(): 0}
    await setup.database.run(await ask_once(setup))
    setup.clock.forward(90)
    await keeper(setup, gauges).measure_work()
    assert gauges.values_of(metrics.ACTIONS)[("approved_pending",)] == 1
    assert gauges.values_of(metrics.APPROVAL_AGE) == {(): 90}
