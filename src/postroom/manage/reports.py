"""Reports about mail that was sent: delivery reports (RFC 3464) and complaints (RFC 5965), as whole messages."""

from typing import assert_never

from postroom.core.errors import BadInput
from postroom.core.outbound.reports import DeliveryReport, FeedbackReport, ReportedRecipient, read_report
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.outbound_reports import Bounce, record_bounces, record_complaint


async def take_report(database: Database, raw: bytes, clock: Clock = wall_clock) -> int:
    """Record what a report says about mail of ours; return how many recipients that concerns.

    Raises BadInput if the message is no report. One about mail that we do not know changes nothing.
    """
    report = read_report(raw)
    match report:
        case None:
            raise BadInput("report", "the message is no delivery report and no complaint", "give a whole message")
        case DeliveryReport():
            bounces = [_bounce(each) for each in report.recipients if each.action in ("failed", "delivered", "relayed")]
            return await database.run(record_bounces(report.original, bounces, clock()))
        case FeedbackReport():
            return await database.run(record_complaint(report.original, report.kind, report.recipients, clock()))
        case _:
            assert_never(report)


def _bounce(recipient: ReportedRecipient) -> Bounce:
    said, has_arrived = recipient.reply, recipient.action != "failed"
    return Bounce(recipient.address, str(said), said.enhanced, recipient.bounce_class, has_arrived)
