"""Every attempt at a recipient of outgoing mail: when, with which server, how protected, what it replied.

A recipient's own row holds only what became of it last. While mail is held back (a pause, a destination that has enough
mail under way), one row counts how often, with the latest reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from postroom.core.views import Untrusted
from postroom.store.engine.codecs import rows_text
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_rows

if TYPE_CHECKING:
    from postroom.store.outbound.outbound_recipients import RecipientChange

MOST_SHOWN = 500

AttemptOutcome = Literal["sent", "deferred", "bounced", "rejected", "expired", "canceled", "unknown", "held"]


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt at one recipient. `times` is how often it was held back, for `held`."""

    address: Untrusted[str]
    number: int
    outcome: AttemptOutcome
    started_at: datetime
    ended_at: datetime
    times: int
    host: Untrusted[str | None]
    tls: str | None
    reply: Untrusted[str | None]

    @property
    def took(self) -> timedelta:
        return max(self.ended_at - self.started_at, timedelta(0))


@query
def list_attempts(mail_id: UUID, most: int = MOST_SHOWN) -> Script[list[AttemptView]]:
    """The latest attempts at a mail, in their order."""
    return read_rows(AttemptView, (yield sql("select_attempts", mail_id, most)))[::-1]


def recording_attempts(changes: "Sequence[tuple[UUID, RecipientChange]]", now: datetime) -> Script[None]:
    """Part of a transaction, after the recipients were changed: keep what the attempts found."""
    rows: list[tuple[object, ...]] = []
    for mail_id, each in changes:
        outcome = "held" if each.uncounted else each.state
        reply = each.held if each.uncounted else each.reply
        rows.append((mail_id, each.position, int(each.uncounted), outcome, each.host, each.tls, reply))
    if rows:
        yield sql("insert_attempts", rows_text(rows), now)
