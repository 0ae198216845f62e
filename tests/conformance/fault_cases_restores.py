"""For each writing verb of restores: a database in which it has something to do."""

from datetime import timedelta
from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_outbound import SENDER, admitted, stored
from conformance.fault_cases_registry import signed
from postroom.store import restores, timeline
from postroom.store.database import Transaction
from postroom.store.ids import new_id


async def observed(desk: Desk, place: str = "file 1") -> timeline.Timeline:
    return await desk.database.run(timeline.observe_timeline(new_id(), place, None, signed(), desk.clock()))


async def restored(desk: Desk) -> restores.PendingCheck:
    """A mailbox that has to be compared: the database was found in another place."""
    await observed(desk)
    desk.clock.forward(3600)
    assert (await observed(desk, "file 2")).noticed_by == "place"
    (check,) = await desk.database.run(restores.pending_checks())
    return check


async def observe_timeline(desk: Desk) -> Transaction[Any]:
    await stored(desk)
    await observed(desk)
    return timeline.observe_timeline(new_id(), "file 2", None, signed(), desk.clock.forward(60))


async def mark_restored(desk: Desk) -> Transaction[Any]:
    await stored(desk)
    seen = timeline.Seen(new_id(), 4, 9)
    return timeline.mark_restored(new_id(), "file 2", seen, desk.clock(), signed(), desk.clock.forward(60))


async def suspect_restore(desk: Desk) -> Transaction[Any]:
    await stored(desk)
    await observed(desk)
    return timeline.suspect_restore(signed(), desk.clock.forward(60))


async def settle_restored(desk: Desk) -> Transaction[Any]:
    """One that was sent, one that is a draft, one of which nobody knows, and one that the database knew nothing of."""
    about = await stored(desk)
    sent = await admitted(desk, "forward", about, "b@example.com")
    draft = await admitted(desk, "forward", about, "c@example.com")
    await admitted(desk, "forward", about, "d@example.com")
    check = await restored(desk)
    now = desk.clock.forward(60)
    found = [
        restores.SentMail("18c1", sent.id, None, now),
        restores.SentMail("18c2", new_id(), "a-key", now - timedelta(minutes=1), SENDER),
    ]
    drafts = [restores.MarkedDraft("r-1", "18c3", draft.id)]
    return restores.settle_restored(check, found, drafts, new_id(), signed(), now)


CASES: list[Case] = [observe_timeline, mark_restored, suspect_restore, settle_restored]
