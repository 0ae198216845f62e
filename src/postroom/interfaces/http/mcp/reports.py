"""The tool by which connectors pass on reports about our own mail that came to their mailbox."""

import base64
import binascii

import structlog
from pydantic import Field
from typing_extensions import TypedDict

from postroom.core.bounds import own_identity
from postroom.core.errors import BadInput
from postroom.core.metrics import OUTBOUND_REPORT
from postroom.core.outbound.reports import LARGEST_REPORT
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import ADDS_ONCE, Arguments, Call, Text, tool
from postroom.operations.outbound.reports import take_found_report
from postroom.store.accounts.accounts import account_at
from postroom.store.outbound.outbound_reports import ReportEffect

log = structlog.get_logger()

LONGEST_RAW = 4 * ((LARGEST_REPORT + 2) // 3)


class ReportArguments(Arguments):
    raw: Text = Field(
        min_length=1,
        max_length=LONGEST_RAW,
        description="The message as the mailbox has it, with all headers, in base64; of a longer one its first MiB.",
    )


class ReportAnswer(TypedDict):
    """How many recipients it has changed, and about how many it was not believed."""

    recorded: int
    doubted: int


@tool("outbound.report", "Pass on a report about sent mail", ADDS_ONCE, roles={Role.CONNECTOR})
async def outbound_report(call: Call, arguments: ReportArguments) -> ReportAnswer:
    """Passes on a delivery report or a complaint that came to this connector's mailbox. It counts for mail that left
    through the mailbox, or by SMTP with its address as envelope sender, and only if the mailbox's provider has proven
    that it comes from a server that had the mail. Anything else changes nothing. Passing on the same again is safe.
    """
    identity, services = own_identity(call.principal), call.services
    try:
        raw = base64.b64decode(arguments.raw, validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("raw", "is not base64", "encode the bytes of the message as base64") from None
    account = await services.database.run(account_at(identity))
    effect = ReportEffect()
    if account is not None:
        effect = await take_found_report(services.database, raw, account, services.clock, services.parts.strikes)
    outcome = "recorded" if effect.recorded else "doubted" if effect.doubted else "ignored"
    services.tally.count(OUTBOUND_REPORT, outcome)
    log.info("outbound.report", outcome=outcome, recorded=effect.recorded, doubted=effect.doubted)
    return {"recorded": effect.recorded, "doubted": effect.doubted}


TOOLS = (outbound_report,)
