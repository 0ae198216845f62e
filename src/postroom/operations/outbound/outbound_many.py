"""Settle, send or cancel many outgoing mails at once: of a tenant, to a destination, in a state, of a span of time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.errors import BadInput, IllegalMove, NotFound
from postroom.core.lifecycle import DeliveryState
from postroom.operations.caller import Caller
from postroom.operations.operation import Argument
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound_answers
from postroom.store.outbound.outbound_answers import find_mail_ids
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock

MOST = 100_000
AT_ONCE = 20

ManyAct = Literal["sent", "not_sent", "retry", "cancel"]
STATES: Mapping[ManyAct, tuple[DeliveryState, ...]] = {
    "sent": ("unknown",),
    "not_sent": ("unknown",),
    "retry": ("queued", "deferred"),
    "cancel": ("queued", "deferred", "unknown", "sending"),
}
"""The states in which mail can be settled so."""


@dataclass(frozen=True, slots=True)
class MailFilter:
    """Which mails: everything given must fit. `destination` is the domain of a recipient."""

    tenant: Annotated[str | None, Argument("Many: all mail of this tenant.")] = None
    destination: Annotated[
        str | None, Argument("Many: mail with a recipient at this domain.", typed_as="--destination DOMAIN")
    ] = None
    state: Annotated[str | None, Argument("Many: only mail in this state.")] = None
    since: Annotated[datetime | None, Argument("Many: asked for since then.")] = None
    until: Annotated[datetime | None, Argument("Many: asked for before then.")] = None


async def find_mail(database: Database, act: ManyAct, wanted: MailFilter) -> list[UUID]:
    """The mails that fit and can be settled so, oldest first."""
    states = STATES[act]
    if wanted.state is not None and wanted.state not in states:
        raise BadInput("state", f"is {wanted.state!r}, in which this cannot be done", f"use {', '.join(states)}")
    chosen = states if wanted.state is None else (wanted.state,)
    domain = None if wanted.destination is None else wanted.destination.lower().removeprefix("@")
    return await database.run(find_mail_ids(chosen, wanted.tenant, domain, wanted.since, wanted.until, MOST))


async def settle_many(by: Caller, act: ManyAct, ids: Sequence[UUID]) -> int:
    """Settle each mail in a transaction of its own, with its own entry in the audit log; return how many.

    Those that are in another state by then stay as they are.
    """
    settle, done = _settling(act, by.signature, by.clock), 0
    for start in range(0, len(ids), AT_ONCE):
        batch = ids[start : start + AT_ONCE]
        outcomes = await asyncio.gather(*(_try_settling(by.database, settle(id)) for id in batch))
        done += sum(outcomes)
    return done


async def _try_settling(database: Database, settling: Transaction[Any]) -> bool:
    try:
        await database.run(settling)
    except (IllegalMove, NotFound):
        return False
    return True


def _settling(act: ManyAct, signed: Signature, clock: Clock) -> Callable[[UUID], Transaction[Any]]:
    def again() -> Signature:
        """The same signature, for an entry of its own."""
        return signed._replace(entry_id=new_id())

    match act:
        case "sent" | "not_sent":
            return lambda id: outbound_answers.resolve_mail(id, act, again(), clock())
        case "retry":
            return lambda id: outbound_answers.hasten_mail(id, again(), clock())
        case "cancel":
            return lambda id: outbound_answers.cancel_mail(id, again(), clock())
