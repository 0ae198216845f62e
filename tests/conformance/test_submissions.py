"""Submitted mail: accepted within the limits of its sender, many at once, and only once for a key."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import Conflict, DailyLimitReached, IllegalMove, NotFound, SenderDisabled, SenderThrottled
from postroom.core.outbound.limits import DailyLimits
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, outbound_answers, senders, submissions
from postroom.store.outbound.outbound_turns import miscounted_turns
from postroom.store.outbound.submissions import Accepted, NewSubmission
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import ADA, added, throttle
from support.store.fault_cases_submissions import CONTENT, submission, submitted
from support.store.inbox_setup import select
from support.store.job_setup import JobSetup


async def content_of(setup: JobSetup, new: NewSubmission) -> bytes:
    return await setup.database.run(outbound.load_content(new.id))


async def test_mails_of_several_senders_are_accepted_together_and_each_keeps_its_content(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.org")
    news = [
        submission(sender, f"{place}@example.net", f"b{place}@example.net", content=CONTENT + b"\x00\xff%d" % place)
        for place, sender in enumerate([ada.id, bob.id, ada.id, bob.id])
    ]
    assert await submitted(setup, *news) == [Accepted(new.id) for new in news]
    assert [await content_of(setup, new) for new in news] == [new.content for new in news]
    view = await setup.database.run(submissions.load_submission(ada.id, news[2].id))
    assert [each.address for each in view.recipients] == ["2@example.net", "b2@example.net"]
    assert (view.state, view.subject, view.created_at) == ("queued", "Hello", setup.clock())
    shown = await setup.database.run(senders.load_sender(ADA, setup.clock()))
    assert shown.accepted_today == 4
    assert await setup.database.run(miscounted_turns()) == []


async def test_what_exceeds_the_limit_is_refused_and_the_rest_of_the_transaction_is_accepted(setup: JobSetup) -> None:
    ada, bob = await added(setup, daily_limit=3), await added(setup, "bob@example.org")
    news = [submission(ada.id, "a@x.example", "b@x.example"), submission(ada.id, "a@x.example", "b@x.example")]
    news += [submission(bob.id), submission(ada.id)]
    first, second, third, fourth = await submitted(setup, *news)
    assert isinstance(second, DailyLimitReached)
    assert [first, third, fourth] == [Accepted(news[0].id), Accepted(news[2].id), Accepted(news[3].id)]
    with pytest.raises(NotFound):
        await setup.database.run(submissions.load_submission(ada.id, news[1].id))


async def test_concurrent_submissions_keep_to_the_limit_exactly(setup: JobSetup) -> None:
    ada = await added(setup)
    answers = await asyncio.gather(
        *(submitted(setup, submission(ada.id), submission(ada.id), limits=DailyLimits(7)) for _ in range(8))
    )
    assert sum(isinstance(answer, Accepted) for pair in answers for answer in pair) == 7


async def test_a_disabled_or_throttled_sender_is_refused(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.org")
    await setup.database.run(senders.disable_sender(ADA, signed(), setup.clock()))
    await setup.database.run(senders.throttle_sender(bob.username, throttle(setup), signed(), setup.clock()))
    first, second = await submitted(setup, submission(ada.id), submission(bob.id))
    assert isinstance(first, SenderDisabled)
    assert isinstance(second, SenderThrottled)


async def test_the_same_request_under_the_same_key_is_accepted_once(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.org")
    first, again, others = (submission(each, key="k") for each in (ada.id, ada.id, bob.id))
    assert await submitted(setup, first) == [Accepted(first.id)]
    assert await submitted(setup, again, others) == [Accepted(first.id, repeated=True), Accepted(others.id)]
    assert (await setup.database.run(senders.load_sender(ADA, setup.clock()))).accepted_today == 1


async def test_the_same_request_twice_in_one_transaction_is_accepted_once(setup: JobSetup) -> None:
    ada = await added(setup)
    first, again = submission(ada.id, key="k"), submission(ada.id, key="k")
    assert await submitted(setup, first, again) == [Accepted(first.id), Accepted(first.id, repeated=True)]


async def test_concurrent_requests_under_one_key_are_accepted_once(setup: JobSetup) -> None:
    ada = await added(setup)
    answers = await asyncio.gather(*(submitted(setup, submission(ada.id, key="k")) for _ in range(8)))
    found = [answer for (answer,) in answers if isinstance(answer, Accepted)]
    assert len(found) == 8
    assert len({answer.id for answer in found}) == 1
    assert sum(not answer.repeated for answer in found) == 1


async def test_another_request_under_the_same_key_is_a_conflict(setup: JobSetup) -> None:
    ada = await added(setup)
    await submitted(setup, submission(ada.id, key="k"))
    (answer,) = await submitted(setup, submission(ada.id, key="k", request="b"))
    assert isinstance(answer, Conflict)


async def test_the_key_of_a_refused_request_stays_free(setup: JobSetup) -> None:
    ada = await added(setup, daily_limit=1)
    two = submission(ada.id, "a@x.example", "b@x.example", key="k")
    refused = await submitted(setup, two, submission(ada.id, "a@x.example", "b@x.example", key="k"))
    assert [type(each) for each in refused] == [DailyLimitReached, DailyLimitReached]
    one = submission(ada.id, key="k", request="b")
    assert await submitted(setup, one) == [Accepted(one.id)]


async def test_scheduled_mail_waits_and_can_be_canceled_before_it_leaves(setup: JobSetup) -> None:
    ada, due = await added(setup), setup.clock() + timedelta(days=2)
    new = submission(ada.id, not_before=due)
    await submitted(setup, new)
    assert not await setup.database.run(outbound.any_mail_due(setup.clock()))
    assert (await setup.database.run(submissions.load_submission(ada.id, new.id))).not_before == due
    canceling = submissions.cancel_submission(ada.id, new.id, signed(), setup.clock())
    assert await setup.database.run(canceling) == "canceled"
    assert not await setup.database.run(outbound.any_mail_due(due))
    assert (await setup.database.run(submissions.load_submission(ada.id, new.id))).state == "canceled"
    with pytest.raises(IllegalMove):
        await setup.database.run(canceling)


async def test_the_time_of_scheduled_mail_begins_when_it_is_due_or_a_person_sends_it_now(setup: JobSetup) -> None:
    ada, began = await added(setup), setup.clock()
    due = began + timedelta(days=20)
    waiting, hastened = (submission(ada.id, not_before=due) for _ in range(2))
    await submitted(setup, waiting, hastened)
    setup.clock.forward(3600)
    now = setup.clock()
    await setup.database.run(outbound_answers.hasten_mail(hastened.id, signed(), now))
    (first,) = await setup.database.run(outbound.lease_mail(new_id(), 10, now, due + timedelta(days=1)))
    assert (first.id, first.admitted_at) == (hastened.id, now)
    (second,) = await setup.database.run(outbound.lease_mail(new_id(), 10, due, due + timedelta(days=1)))
    assert (second.id, second.admitted_at, second.asked_at) == (waiting.id, due, began)


async def test_the_message_id_by_which_reports_find_a_mail_is_kept(setup: JobSetup) -> None:
    ada = await added(setup)
    await submitted(setup, submission(ada.id, message_id="<1@example.com>"), submission(ada.id))
    kept = await select(setup.database, "SELECT message_id FROM outbound_mail ORDER BY seq")
    assert [row[0] for row in kept] == ["<1@example.com>", None]


async def test_the_mail_of_another_sender_does_not_exist(setup: JobSetup) -> None:
    ada, bob = await added(setup), await added(setup, "bob@example.org")
    new = submission(ada.id)
    await submitted(setup, new)
    for sender_id, id in ((bob.id, new.id), (ada.id, new_id())):
        with pytest.raises(NotFound):
            await setup.database.run(submissions.load_submission(sender_id, id))
        with pytest.raises(NotFound):
            await setup.database.run(submissions.cancel_submission(sender_id, id, signed(), setup.clock()))
