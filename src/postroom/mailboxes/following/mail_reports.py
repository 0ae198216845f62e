"""Passes on reports about our own mail: delivery reports and complaints that have come to the mailbox.

A report is passed on before its message is ingested, so that none is lost if the switchboard is away: both are done
again in the next round, and the switchboard counts a report once. It is still ingested as any mail is.
"""

import structlog

from postroom.core.errors import BadInput, MailboxError, NotInMailbox, UnreadableAnswer
from postroom.core.mail.tiers import Known
from postroom.core.outbound.reports import may_be_report
from postroom.mailboxes.following.fetch import FetchResult
from postroom.mailboxes.following.ingester import is_incoming
from postroom.mailboxes.following.refused import reason_of
from postroom.mailboxes.following.reports import TakesReports
from postroom.mailboxes.following.source import MailSource, SourceMessage
from postroom.sources.runtime import ConnectorHealth

log = structlog.get_logger()

# Whose mailbox it is does not matter for a report.
NOBODY = Known(frozenset())


class MailReports:
    """The reports among the messages of one mailbox."""

    def __init__(self, switchboard: object, health: ConnectorHealth) -> None:
        self._switchboard = switchboard
        self._health = health

    async def pass_on(self, source: MailSource, fetched: FetchResult) -> None:
        """Pass on the reports among these messages. One whose bytes the mailbox does not return is left for later."""
        if not isinstance(self._switchboard, TakesReports):
            return
        for message in [each for each in fetched.read if is_report(each)]:
            try:
                raw = await _bytes_of(source, message)
            except MailboxError as error:
                fetched.read.remove(message)
                fetched.left[message.id] = error
                continue
            if raw is not None:
                await self._pass_on(self._switchboard, raw)

    async def _pass_on(self, switchboard: TakesReports, raw: bytes) -> None:
        try:
            await switchboard.report(raw)
        except BadInput as error:
            log.warning("connector.report_refused", reason=reason_of(error))
        else:
            self._health.counters["reports"] += 1


def is_report(message: SourceMessage) -> bool:
    """Whether a received message may be a report, of delivery or of a complaint."""
    return is_incoming(message, NOBODY) and may_be_report(message.readable_headers())


async def _bytes_of(source: MailSource, message: SourceMessage) -> bytes | None:
    """The message as it came; None if nobody can read it any more, or it is too large to be fetched."""
    if message.raw is not None:
        return message.raw
    try:
        return (await source.get_message(message.id, "raw")).raw
    except (NotInMailbox, UnreadableAnswer) as error:
        log.warning("connector.report_unreadable", reason=reason_of(error))
        return None
