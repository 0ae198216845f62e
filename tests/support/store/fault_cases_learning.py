"""For each writing verb that learns from the user: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail_changes
from postroom.store.rules import outcomes, proposals
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.mail_setup import ENDPOINT, MailSetup, Sample

SHOPS = RuleDraft("shops", {"sender_domain": "shop.example"}, "archive")


async def apply_changes(setup: JobSetup) -> Transaction[Any]:
    """One takes back what a rule did, one agrees with a rule in shadow and is the third of its kind, one is deleted."""
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(SHOPS, RuleDraft("too", {"sender_domain": "x.example"}, "archive", shadow=True))
    await mail_setup.acted(Sample("m1"), frozenset({"UNREAD"}))
    await mail_setup.decide(*(Sample(f"x{number}", "ida@x.example") for number in range(4)))
    for id in ("x0", "x1"):
        await mail_setup.user(id, remove="INBOX")
    changes = [
        mail_changes.Change("m1", frozenset({"INBOX"})),
        mail_changes.Change("x2", labels_removed=frozenset({"INBOX"})),
        mail_changes.Change("x3", deleted=True),
    ]
    return mail_changes.apply_changes(ENDPOINT, changes, setup.clock())


async def _proposed(setup: JobSetup) -> UUID:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(SHOPS)
    await mail_setup.acted(Sample("m1"), frozenset({"UNREAD"}))
    await mail_setup.user("m1", "INBOX")
    [found] = await setup.database.run(proposals.list_proposals("open", 9))
    return found.id


async def accept_proposal(setup: JobSetup) -> Transaction[Any]:
    return proposals.accept_proposal(await _proposed(setup), new_id(), True, signed(), setup.clock())


async def dismiss_proposal(setup: JobSetup) -> Transaction[Any]:
    return proposals.dismiss_proposal(await _proposed(setup), signed(), setup.clock())


async def record_mistake(setup: JobSetup) -> Transaction[Any]:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(SHOPS)
    done = await mail_setup.acted(Sample("m1"), frozenset({"UNREAD"}))
    assert done.decision_id is not None
    return outcomes.record_mistake(done.decision_id, done.message_id, signed(), setup.clock())


CASES: list[Case] = [
    apply_changes,
    record_mistake,
    accept_proposal,
    dismiss_proposal,
]
