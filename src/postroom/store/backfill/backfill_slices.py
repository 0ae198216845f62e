"""The jobs that drive backfills inside one process, slice by slice."""

from datetime import datetime
from uuid import UUID, uuid5

from postroom.core.jobs.types import CATALOGUE, Catalogue
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.jobs.job_builders import backfill_job
from postroom.store.jobs.jobs import enqueue_many, hastening


@transaction
def enqueue_slices(catalogue: Catalogue, seed: UUID, now: datetime) -> Script[int]:
    """Enqueue a slice for each mailbox that has a backfill to work on and no slice yet; return how many. Their ids
    derive from the seed.
    """
    accounts = [as_uuid(id) for (id,) in (yield sql("select_accounts_with_backfills"))]
    if not accounts:
        return 0
    wanted = [backfill_job(catalogue, id)._replace(id=uuid5(seed, str(id)), traceparent=None) for id in accounts]
    enqueued = yield from enqueue_many.script(wanted, now)
    return sum(not each.duplicate for each in enqueued)


def beginning(backfill_id: UUID, seed: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: let work on a backfill begin at once, also if the mailbox's slice sleeps. The
    slice's id derives from the seed.

    The minute's check is for what this misses: a slice that is just ending.
    """
    for (account_id,) in (yield sql("select_account_to_backfill", backfill_id)):
        slice = backfill_job(CATALOGUE, as_uuid(account_id))
        wanted = slice._replace(id=uuid5(seed, str(account_id)), traceparent=None)
        [enqueued] = yield from enqueue_many.script([wanted], now)
        if enqueued.duplicate:
            yield from hastening(enqueued.id, now)
