"""The tools to ingest messages and events. A connector ingests for its own endpoint and channels only."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict

from postroom.core.bounds import bound_identity, may_ingest, not_its_channel, not_its_identity
from postroom.core.errors import AccessRefused, PostroomError, Refused
from postroom.core.queue.envelope import Envelope
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import ADDS_ONCE, MOST_IN_BATCH, Arguments, Call, tool
from postroom.operations.problems import ProblemForm, problem_of
from postroom.store.intake.acceptance import Accepted

IDENTITY = "source.endpoint_identity"
# Validated by the intake and not here, so that one bad envelope in a batch does not refuse the others.
UncheckedEnvelope = Annotated[Envelope, SkipValidation]


class IngestArguments(Arguments):
    envelope: UncheckedEnvelope = Field(description="One message or event as ingest.v1.")


class IngestAnswer(TypedDict):
    request_id: str
    status: Literal["accepted"]
    duplicate: bool


@tool("ingest", "Ingest one message", ADDS_ONCE, roles={Role.CONNECTOR, Role.ADMIN})
async def ingest(call: Call, arguments: IngestArguments) -> IngestAnswer:
    """Ingests one message or event as an ingest.v1 envelope. When this answers, it is on disk. Ingesting the same again
    is safe: the answer is then the first request_id, with duplicate true. A connector's token may ingest for its own
    source.endpoint_identity only. On the error no_room or unavailable, wait retry_after_s and retry.
    """
    return await ingest_one(call, arguments.envelope)


async def ingest_one(call: Call, envelope: object) -> IngestAnswer:
    bound_to = bound_identity(call.principal)
    if not may_ingest(call.principal, envelope):
        raise not_its_channel(call.principal)
    try:
        accepted = await call.services.intake.ingest(envelope, bound_to)
    except Refused as error:
        raise not_its_identity(call.principal, IDENTITY) from error
    return {"request_id": str(accepted.request_id), "status": "accepted", "duplicate": accepted.duplicate}


class IngestBatchArguments(Arguments):
    items: list[UncheckedEnvelope] = Field(
        min_length=1, max_length=MOST_IN_BATCH, description="1 to 100 messages or events, each as ingest.v1."
    )


class BatchAccepted(TypedDict):
    index: int
    request_id: str
    status: Literal["accepted"]
    duplicate: bool


class BatchRefused(TypedDict):
    index: int
    status: Literal["refused"]
    error: ProblemForm


class IngestBatchAnswer(TypedDict):
    results: list[BatchAccepted | BatchRefused]
    accepted: int
    refused: int


@tool("ingest.batch", "Ingest up to 100 messages", ADDS_ONCE, roles={Role.CONNECTOR, Role.ADMIN})
async def ingest_batch(call: Call, arguments: IngestBatchArguments) -> IngestBatchAnswer:
    """Ingests 1 to 100 envelopes at once. Each has its own result, in order: the good ones are accepted and on disk;
    each bad one is listed by its index with the field and the remedy. Fix those and send only them again.
    """
    return await ingest_many(call, arguments.items)


async def ingest_many(call: Call, envelopes: Sequence[object]) -> IngestBatchAnswer:
    """Accept the good envelopes, list the bad ones by index. Foreign sources are audited once for the whole batch."""
    bound_to = bound_identity(call.principal)
    own = [each for each in envelopes if may_ingest(call.principal, each)]
    taken = iter(await call.services.intake.ingest_batch(own, bound_to) if own else [])
    foreign = not_its_channel(call.principal)
    outcomes = [next(taken) if may_ingest(call.principal, each) else foreign for each in envelopes]
    if len(own) < len(envelopes):
        await call.services.parts.refusals.note(call.principal, "ingest.batch", foreign)
    if any(isinstance(each, Refused) and not isinstance(each, AccessRefused) for each in outcomes):
        await call.services.parts.refusals.note(
            call.principal, "ingest.batch", not_its_identity(call.principal, IDENTITY)
        )
    results = [_batch_result(call, index, outcome) for index, outcome in enumerate(outcomes)]
    accepted = sum(isinstance(outcome, Accepted) for outcome in outcomes)
    return {"results": results, "accepted": accepted, "refused": len(outcomes) - accepted}


def _batch_result(call: Call, index: int, outcome: Accepted | PostroomError) -> BatchAccepted | BatchRefused:
    match outcome:
        case Accepted():
            return {
                "index": index,
                "request_id": str(outcome.request_id),
                "status": "accepted",
                "duplicate": outcome.duplicate,
            }
        case AccessRefused():
            problem = problem_of(outcome)
        case Refused():
            problem = problem_of(not_its_identity(call.principal, IDENTITY))
        case _:
            problem = problem_of(outcome)
    return {"index": index, "status": "refused", "error": problem.form}


TOOLS = (ingest, ingest_batch)
