"""Ingests the selected messages of a backfill through the same intake, filters and keys as live mail.

They do not enter the memory of ingested messages: it holds the newest messages only, and history would push them out.
"""

from postroom.core.errors import BadInput, PostroomError
from postroom.mailboxes.backfill.reporting import End
from postroom.mailboxes.backfill.selection import Batch
from postroom.mailboxes.following.envelopes import PreparedMessage
from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.refused import reason_of
from postroom.sources.switchboard_client import Receipt


class BackfillDelivery:
    """The way of one backfill job to the switchboard. `message_cost_micros` is what a model will cost for a new message
    that is ingested in full.
    """

    def __init__(self, ingester: MailIngester, message_cost_micros: int) -> None:
        self._ingester = ingester
        self._message_cost_micros = message_cost_micros

    async def send(self, batch: Batch) -> PostroomError | None:
        """Ingest what has no outcome yet. Return the first error after which the rest has to be sent again."""
        for each in batch.ready:
            if each.envelope is None and each.id not in batch.ends:
                self._ingester.count_skipped(each)
                batch.ends[each.id] = End("skipped")
        results = await self._ingester.deliver([each for each in batch.ready if each.id not in batch.ends])
        trouble: PostroomError | None = None
        for each in batch.ready:
            match results.get(each.id):
                case Receipt() as receipt:
                    batch.ends[each.id] = self._processed_end(each, receipt, batch)
                case BadInput() as error:
                    batch.ends[each.id] = End("failed", reason_of(error))
                case PostroomError() as error:
                    trouble = trouble or error
                case None:
                    pass
        return trouble

    def _processed_end(self, prepared: PreparedMessage, receipt: Receipt, batch: Batch) -> End:
        is_read_by_model = not receipt.duplicate and prepared.decision.tier == "full"
        cost = self._message_cost_micros if is_read_by_model else 0
        return End("processed", categories=batch.categories[prepared.id], cost_micros=cost)
