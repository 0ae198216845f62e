"""The tool that estimates a backfill before its owner agrees to it."""

from postroom.core.access import STEER
from postroom.core.errors import MailboxLater
from postroom.interfaces.http.mcp.backfill import BackfillArguments
from postroom.interfaces.http.mcp.tool import ADDS, Call, tool
from postroom.operations.backfill.backfill_estimate import EstimateForm, SampleFailed


class EstimateAnswer(EstimateForm):
    """Pass `estimate_id` to create_backfill_job, so that the estimate can be compared with what it then cost."""

    estimate_id: str


@tool("backfill.estimate", "Estimate a backfill", ADDS, roles=STEER.tokens)
async def estimate(call: Call, arguments: BackfillArguments) -> EstimateAnswer:
    """Estimates what a backfill would find, cost and take: its connector counts the messages and reads a sample of up
    to 200. Takes up to a minute and ingests nothing. Show the result to the owner of the mailbox before asking for
    consent.
    """
    wanted = arguments.wanted(call.services.parts.backfills.settings)
    try:
        made = await call.services.parts.estimates.estimate(wanted, call.signed())
    except SampleFailed:
        raise MailboxLater("the connector could not count; connector.list shows its state") from None
    return {**made.form, "estimate_id": str(made.id)}


TOOLS = (estimate,)
