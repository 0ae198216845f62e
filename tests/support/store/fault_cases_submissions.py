"""For each writing verb of submissions: a database in which it has something to do."""

from typing import Any

from postroom.core.outbound.limits import DailyLimits
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import submissions
from postroom.store.outbound.submissions import Answer, NewSubmission, SubmissionKey
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.fault_cases_senders import added
from support.store.job_setup import JobSetup

CONTENT = b"From: ada@example.com\r\n\r\nHello.\r\n"


def submission(sender_id: int, *to: str, key: str | None = None, request: str = "a", **more: Any) -> NewSubmission:
    recipients = to or ("bob@example.net",)
    kept = None if key is None else SubmissionKey(key, request * 64)
    more.setdefault("content", CONTENT)
    sent_to = tuple(map(Recipient, recipients))
    return NewSubmission(new_id(), sender_id, "ada@example.com", sent_to, "Hello", key=kept, **more)


async def submitted(setup: JobSetup, *news: NewSubmission, limits: DailyLimits | None = None) -> list[Answer]:
    return await setup.database.run(submissions.submit_mails(news, setup.clock(), limits))


async def submit_mails(setup: JobSetup) -> Transaction[Any]:
    """One that is accepted, one that repeats an earlier one, and one whose key is released again."""
    ada, bob = await added(setup), await added(setup, "bob@example.org", daily_limit=1)
    await submitted(setup, submission(ada.id, key="a"), submission(bob.id))
    news = [submission(ada.id, key="b"), submission(ada.id, key="a"), submission(bob.id, key="c"), submission(bob.id)]
    return submissions.submit_mails(news, setup.clock())


async def cancel_submission(setup: JobSetup) -> Transaction[Any]:
    ada = await added(setup)
    new = submission(ada.id)
    await submitted(setup, new)
    return submissions.cancel_submission(ada.id, new.id, signed(), setup.clock())


CASES: list[Case] = [submit_mails, cancel_submission]
