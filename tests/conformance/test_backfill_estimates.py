"""Estimates of backfills: stored as shown, put beside what then happened, and learned from."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.estimate import FinishedBackfill, TokenUse
from postroom.core.backfill.job import BackfillJob
from postroom.core.errors import NotFound
from postroom.core.jobs.types import CATALOGUE
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.store.actions import model_calls
from postroom.store.actions.model_calls import CallEnd, Caps, NewCall
from postroom.store.backfill import backfill_estimates as estimates
from postroom.store.backfill.backfill_spend import BackfillCharge
from postroom.store.engine.ids import new_id
from support.mail import keep_account, keep_mail
from support.store.fault_cases_backfill import ENDPOINT, FINANCE, OWNER, WINDOW, active, day, load, reporting
from support.store.fault_cases_backfill_estimates import recording, result_of
from support.store.fault_cases_registry import signed
from support.store.inbox_setup import mail, metadata
from support.store.job_setup import JobSetup

END = BackfillCursor(WINDOW.date_from - timedelta(days=1), WINDOW.date_from - timedelta(days=1))
CAPS = Caps(day_micros=10_000_000, message_micros=1_000_000)


async def estimated(setup: JobSetup, classified: int = 40) -> UUID:
    id = new_id()
    await setup.database.run(recording(setup, id, classified))
    return id


async def begun(setup: JobSetup, classified: int = 40) -> BackfillJob:
    """A job with an estimate that a connector works on."""
    return await active(setup, replace(FINANCE, estimate_id=await estimated(setup, classified)))


async def read_by_model(setup: JobSetup, job: BackfillJob, messages: int) -> None:
    for _ in range(messages):
        call = await charged_call(setup, job)
        assert await setup.database.run(model_calls.reserve_call(call, CAPS, setup.clock())) is None
        end = CallEnd("answered", input_tokens=900, output_tokens=50, cost_micros=1_200)
        await setup.database.run(model_calls.end_call(call.id, end, setup.clock()))


async def charged_call(setup: JobSetup, job: BackfillJob) -> NewCall:
    """A call about a message of its own."""
    message_id = await keep_mail(setup.database, setup.clock, new_id())
    account = await keep_account(setup.database, setup.clock())
    charge = BackfillCharge(job.id, day(setup), signed())
    return NewCall(new_id(), account.id, message_id, "openai", "gpt-test", "1-test", 10_000, charge)


async def finish(setup: JobSetup, job: BackfillJob, **report: Any) -> None:
    job = await load(setup, job.id)
    await setup.database.run(reporting(setup, job, cursor=END, status="completed", **report))


async def learned(setup: JobSetup, most: int = 10) -> list[FinishedBackfill]:
    return await setup.database.run(estimates.finished_backfills(ENDPOINT, most))


async def test_an_estimate_is_stored_as_it_was_shown(setup: JobSetup):
    id = await estimated(setup)
    found = await setup.database.run(estimates.load_estimate(id))
    assert (found.id, found.endpoint_identity, found.created_by) == (id, ENDPOINT, "cli:ada")
    assert found.result == result_of(40)
    assert found.request["categories"] == ["finance"]
    assert found.created_at == setup.clock()


async def test_what_does_not_exist_is_not_found(setup: JobSetup):
    with pytest.raises(NotFound):
        await setup.database.run(estimates.load_estimate(new_id()))
    with pytest.raises(NotFound):
        await setup.database.run(estimates.backfill_outcome(new_id()))


async def test_estimate_and_truth_stand_side_by_side(setup: JobSetup):
    job = await begun(setup)
    await read_by_model(setup, job, 3)
    found = await setup.database.run(estimates.backfill_outcome(job.id))
    assert (found.status, found.read_by_model, found.spent_micros, found.waiting) == ("active", 3, 3_600, 0)
    assert found.estimate == result_of(40)
    assert found.expected_to_read == 80
    assert not found.is_final
    await finish(setup, job)
    assert (await setup.database.run(estimates.backfill_outcome(job.id))).is_final


async def test_a_job_without_an_estimate_has_only_the_truth(setup: JobSetup):
    job = await active(setup)
    found = await setup.database.run(estimates.backfill_outcome(job.id))
    assert (found.estimate_id, found.estimate, found.expected_to_read) == (None, None, None)
    await read_by_model(setup, job, 1)
    await finish(setup, job)
    assert await learned(setup) == []


async def test_a_message_that_the_model_was_asked_about_twice_counts_once(setup: JobSetup):
    job = await begun(setup)
    call = await charged_call(setup, job)
    for each in (call, replace(call, id=new_id())):
        await setup.database.run(model_calls.reserve_call(each, CAPS, setup.clock()))
        await setup.database.run(model_calls.end_call(each.id, CallEnd("refused", cost_micros=5), setup.clock()))
    assert (await setup.database.run(estimates.backfill_outcome(job.id))).read_by_model == 1


async def test_only_completed_jobs_are_learned_from_the_last_first(setup: JobSetup):
    for classified, read in ((40, 2), (10, 3)):
        job = await begun(setup, classified)
        await read_by_model(setup, job, read)
        assert len(await learned(setup)) == (classified == 10), "one that has not ended teaches nothing"
        await finish(setup, job)
        setup.clock.forward(60)
    assert await learned(setup) == [FinishedBackfill(10, 3), FinishedBackfill(40, 2)]
    assert await learned(setup, 1) == [FinishedBackfill(10, 3)]
    assert await setup.database.run(estimates.finished_backfills("gmail:user:other@example.com", 10)) == []


async def test_nothing_is_learned_while_mail_waits_for_its_decision(setup: JobSetup):
    job = await begun(setup)
    await read_by_model(setup, job, 1)
    await Intake(setup.database, None, setup.clock).ingest(mail(77, control={"backfill_job_id": str(job.id)}))
    await finish(setup, job)
    assert (await setup.database.run(estimates.backfill_outcome(job.id))).waiting == 1
    assert await learned(setup) == []


async def test_nothing_is_learned_from_mail_that_was_mostly_known(setup: JobSetup):
    job = await begun(setup)
    await read_by_model(setup, job, 1)
    intake = Intake(setup.database, None, setup.clock)
    for _ in range(3):
        await intake.ingest(metadata(mail(78, control={"backfill_job_id": str(job.id)})))
    await finish(setup, job)
    assert await learned(setup) == []


async def test_nothing_is_learned_from_a_job_that_cost_nothing(setup: JobSetup):
    await finish(setup, await begun(setup))
    assert await learned(setup) == []


async def test_tokens_are_averaged_over_messages_once_there_are_enough(setup: JobSetup):
    job = await begun(setup)
    await read_by_model(setup, job, model_calls.FEWEST_MEASURED - 1)
    assert await setup.database.run(model_calls.average_tokens()) is None
    await read_by_model(setup, job, 1)
    assert await setup.database.run(model_calls.average_tokens()) == TokenUse(900, 50, model_calls.FEWEST_MEASURED)


async def test_mail_that_is_stored_in_full_is_counted_by_mailbox_categories_and_days(setup: JobSetup):
    await keep_account(setup.database, setup.clock(), OWNER)
    intake, dispatcher = (
        Intake(setup.database, None, setup.clock),
        Dispatcher(setup.database, CATALOGUE, clock=setup.clock),
    )

    async def keep(
        number: int, subject: str, sent_at: datetime, form: Callable[[Any], Any] = lambda whole: whole
    ) -> None:
        raw = {"headers": [["From", "shop@store.example"], ["Subject", subject]], "sent_at": sent_at.isoformat()}
        await intake.ingest(form(mail(number, payload={"raw": raw, "normalized_text": "Thank you."})))

    second = timedelta(seconds=1)
    await keep(1, "Your invoice 7", WINDOW.start)
    await keep(2, "Your invoice 8", WINDOW.end - second)
    await keep(3, "Your invoice 9", WINDOW.end)
    await keep(4, "Your invoice 10", WINDOW.start - second)
    await keep(5, "Lunch", WINDOW.start)
    await keep(6, "Your invoice 11", WINDOW.start, metadata)
    assert await dispatcher.tick() == 6

    async def counted(*categories: str, endpoint: str = ENDPOINT) -> int:
        return await setup.database.run(estimates.stored_in_categories(endpoint, categories, WINDOW))

    assert await counted("finance") == await counted("finance", "travel") == 2
    assert await counted("travel") == await counted("finance", endpoint="gmail:user:other@example.com") == 0
