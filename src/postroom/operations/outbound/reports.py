"""Reports about mail that was sent: delivery reports (RFC 3464) and complaints (RFC 5965), as whole messages."""

import asyncio
import base64
import binascii
from typing import Annotated, assert_never

import structlog

from postroom.core.access import CONNECTORS
from postroom.core.bounds import own_identity
from postroom.core.errors import BadInput
from postroom.core.metrics import OUTBOUND_REPORT
from postroom.core.outbound.report_origins import ReportOrigin, origin_of
from postroom.core.outbound.reports import (
    LARGEST_REPORT,
    DeliveryReport,
    FeedbackReport,
    ReportedRecipient,
    read_report,
)
from postroom.core.outbound.strikes import USUAL_STRIKES, StrikeRule, is_strike
from postroom.core.tally import Tally
from postroom.operations.caller import Caller
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import ADDS_ONCE, Argument, tool
from postroom.store.accounts.accounts import AccountView, account_at
from postroom.store.engine.database import Database, Transaction
from postroom.store.outbound.outbound_reports import Bounce, ReportEffect, record_bounces, record_complaint
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

LONGEST_RAW = 4 * ((LARGEST_REPORT + 2) // 3)
RAW = "The message as the mailbox has it, with all headers, in base64; of a longer one its first MiB."


async def take_report(
    database: Database, raw: bytes, clock: Clock = wall_clock, rule: StrikeRule = USUAL_STRIKES
) -> int:
    """Record what a report says about mail of ours; return how many recipients that concerns. Callers vouch for it.

    Raises BadInput if the message is no report. One about mail that we do not know changes nothing.
    """
    effect = await database.run(_recording(_read(raw), clock, None, rule))
    return effect.recorded


@OUTBOUND.operation(CONNECTORS, tool("outbound.report", "Pass on a report about sent mail", ADDS_ONCE))
async def pass_on_report(
    by: Caller, rule: StrikeRule, tally: Tally, /, raw: Annotated[str, Argument(RAW, most=LONGEST_RAW)]
) -> ReportEffect:
    """Passes on a delivery report or a complaint that came to this connector's mailbox. It counts for mail that left
    through the mailbox, or by SMTP with its address as envelope sender, and only if the mailbox's provider has proven
    that it comes from a server that had the mail. Anything else changes nothing. Passing on the same again is safe.
    """
    identity = own_identity(by.program)
    try:
        message = base64.b64decode(raw, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("raw", "is not base64", "encode the bytes of the message as base64") from None
    account, effect = await by.run(account_at(identity)), ReportEffect()
    if account is not None:
        effect = await take_found_report(by.database, message, account, by.clock, rule)
    outcome = "recorded" if effect.recorded else "doubted" if effect.doubted else "ignored"
    tally.count(OUTBOUND_REPORT, outcome)
    log.info("outbound.report", outcome=outcome, recorded=effect.recorded, doubted=effect.doubted)
    return effect


async def take_found_report(
    database: Database, raw: bytes, account: AccountView, clock: Clock = wall_clock, rule: StrikeRule = USUAL_STRIKES
) -> ReportEffect:
    """Record what a report says that came to a mailbox, as far as it can be believed. What is no report says nothing:
    mail systems write other letters too.
    """
    # In a thread: a stranger decides how much there is to read.
    found = await asyncio.to_thread(_read_found, raw, account)
    if found is None:
        return ReportEffect()
    report, origin = found
    return await database.run(_recording(report, clock, origin, rule))


def _read_found(raw: bytes, account: AccountView) -> tuple[DeliveryReport | FeedbackReport, ReportOrigin] | None:
    report = read_report(raw)
    if report is None:
        return None
    kind = "delivery" if isinstance(report, DeliveryReport) else "complaint"
    return report, origin_of(raw, kind, account.id, account.endpoint_identity, account.email)


def _read(raw: bytes) -> DeliveryReport | FeedbackReport:
    report = read_report(raw)
    if report is None:
        raise BadInput("report", "the message is no delivery report and no complaint", "give a whole message")
    return report


def _recording(
    report: DeliveryReport | FeedbackReport, clock: Clock, origin: ReportOrigin | None, rule: StrikeRule
) -> Transaction[ReportEffect]:
    match report:
        case DeliveryReport():
            bounces = [_bounce(each) for each in report.recipients if each.action in ("failed", "delivered", "relayed")]
            return record_bounces(report.original, bounces, clock(), origin, rule)
        case FeedbackReport():
            return record_complaint(report.original, report.kind, report.recipients, clock(), origin)
        case _:
            assert_never(report)


def _bounce(recipient: ReportedRecipient) -> Bounce:
    said, has_arrived = recipient.reply, recipient.action != "failed"
    strikes = not has_arrived and is_strike(said, recipient.bounce_class)
    return Bounce(recipient.address, str(said), said.enhanced, recipient.bounce_class, has_arrived, strikes)
