"""Mail that automation is about to hide: canceled together with the undo of what it has hidden."""

from datetime import datetime
from uuid import UUID

from postroom.store.actions.decisions import CHANNEL
from postroom.store.actions.token_work import OpenAction, canceling
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature

BROUGHT_BACK = "a person has brought back all that was hidden"


@query
def count_open_hiding(account_id: UUID | None, since: datetime, until: datetime) -> Script[int]:
    """How many actions that hide a message have not been done yet."""
    return len((yield from _open(account_id, since, until)))


@transaction
def cancel_hiding(
    account_id: UUID | None, since: datetime, until: datetime, signed: Signature, now: datetime
) -> Script[int]:
    """Cancel the actions that hide a message and have not begun, such as those that wait for the end of a pause; ask
    those that have begun to stop. Return how many were canceled.
    """
    canceled = 0
    for action in (yield from _open(account_id, since, until)):
        canceled += yield from canceling(action, BROUGHT_BACK, signed, now)
    if canceled:
        yield Notify(CHANNEL, "canceled")
    return canceled


def _open(account_id: UUID | None, since: datetime, until: datetime) -> Script[list[OpenAction]]:
    account = None if account_id is None else str(account_id)
    return read_rows(OpenAction, (yield sql("select_open_hiding", account, since, until)))
