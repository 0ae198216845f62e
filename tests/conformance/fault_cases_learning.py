"""For each writing verb that learns from the user: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_registry import signed
from conformance.mailroom import ENDPOINT, Letter, Mailroom
from postroom.core.rules.draft import RuleDraft
from postroom.store import mail_changes, proposals
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

SHOPS = RuleDraft("shops", {"sender_domain": "shop.example"}, "archive")


async def apply_changes(desk: Desk) -> Transaction[Any]:
    """One takes back what a rule did, one agrees with a rule in shadow and is the third of its kind, one is deleted."""
    room = await Mailroom(desk).opened()
    await room.rules(SHOPS, RuleDraft("too", {"sender_domain": "x.example"}, "archive", shadow=True))
    await room.acted(Letter("m1"), frozenset({"UNREAD"}))
    await room.decide(*(Letter(f"x{number}", "ida@x.example") for number in range(4)))
    for id in ("x0", "x1"):
        await room.user(id, remove="INBOX")
    changes = [
        mail_changes.Change("m1", frozenset({"INBOX"})),
        mail_changes.Change("x2", labels_removed=frozenset({"INBOX"})),
        mail_changes.Change("x3", deleted=True),
    ]
    return mail_changes.apply_changes(ENDPOINT, changes, desk.clock())


async def _proposed(desk: Desk) -> UUID:
    room = await Mailroom(desk).opened()
    await room.rules(SHOPS)
    await room.acted(Letter("m1"), frozenset({"UNREAD"}))
    await room.user("m1", "INBOX")
    [found] = await desk.database.run(proposals.list_proposals("open", 9))
    return found.id


async def accept_proposal(desk: Desk) -> Transaction[Any]:
    return proposals.accept_proposal(await _proposed(desk), new_id(), True, signed(), desk.clock())


async def dismiss_proposal(desk: Desk) -> Transaction[Any]:
    return proposals.dismiss_proposal(await _proposed(desk), signed(), desk.clock())


CASES: list[Case] = [
    apply_changes,
    accept_proposal,
    dismiss_proposal,
]
