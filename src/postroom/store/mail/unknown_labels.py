"""Labels seen on messages before they are known: the mailbox's labels are synced at once."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from postroom.store.engine.database import Script, sql
from postroom.store.jobs.job_builders import labels_job
from postroom.store.jobs.jobs import enqueue_many


def noticing_labels(account_id: UUID, label_ids: Iterable[str], now: datetime) -> Script[None]:
    """Part of a transaction: enqueue a label sync if one of these ids is unknown. One at a time is enough.

    Only for labels of the user: Gmail's own have ids in capitals, and not all of them are listed.
    """
    of_user = sorted({id for id in label_ids if not id.isupper()})
    if of_user and (yield sql("select_unknown_labels", account_id, of_user)):
        yield from enqueue_many.script([labels_job(account_id)], now)
