"""Outgoing mail of the past, as the simulator replays it."""

from datetime import datetime
from typing import NamedTuple

from postroom.core.outbound.lanes import Lane
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, query, sql


class SentMail(NamedTuple):
    """A mail that was accepted: when, by which tenant, domain and sender, and the lane of the sender."""

    seconds: float
    path: tuple[int, int, int]
    weights: tuple[float, float, float]
    lane: Lane
    recipients: int
    bulk: bool


@query
def list_sent_mail(since: datetime, after: int, most: int) -> Script[tuple[list[SentMail], int]]:
    """Mail accepted since then, in the order of acceptance, after this place in it; and the place of the last."""
    mails: list[SentMail] = []
    for row in (yield sql("select_sent_mail", since, after, most)):
        after, accepted_at, tenant, domain, sender, *weights, lane, recipients, message_class = row
        path, bulk = (tenant, domain, sender), message_class == "bulk"
        mails.append(SentMail(as_time(accepted_at).timestamp(), path, tuple(weights), lane, max(1, recipients), bulk))
    return mails, after
