"""Ingesting messages and events. A connector ingests for its own endpoint and channels only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from pydantic import SkipValidation

from postroom.core.access import OPERATE
from postroom.core.bounds import bound_identity, may_ingest, not_its_channel, not_its_identity
from postroom.core.errors import AccessRefused, PostroomError, Refused
from postroom.core.queue.envelope import Envelope
from postroom.core.roles import Principal, Role
from postroom.intake.intake import LARGEST_BATCH, Intake
from postroom.operations.caller import Caller
from postroom.operations.nouns import MAIL
from postroom.operations.operation import ADDS_ONCE, Argument, tool
from postroom.operations.people.refusals import Refusals
from postroom.operations.problems import ProblemForm, problem_of
from postroom.store.intake.acceptance import Accepted

IDENTITY = "source.endpoint_identity"
# Validated by the intake and not by interfaces, so that one bad envelope in a batch does not refuse the others.
UncheckedEnvelope = Annotated[Envelope, SkipValidation]


class IngestAnswer(NamedTuple):
    request_id: UUID
    status: Literal["accepted"]
    duplicate: bool


@dataclass(frozen=True, slots=True)
class BatchAccepted:
    index: int
    request_id: UUID
    status: Literal["accepted"]
    duplicate: bool


@dataclass(frozen=True, slots=True)
class BatchRefused:
    index: int
    status: Literal["refused"]
    error: ProblemForm


class IngestBatchAnswer(NamedTuple):
    results: Sequence[BatchAccepted | BatchRefused]
    accepted: int
    refused: int


@MAIL.operation(OPERATE, tool("ingest", "Ingest one message", ADDS_ONCE, also={Role.CONNECTOR}))
async def ingest(
    by: Caller,
    intake: Intake,
    /,
    envelope: Annotated[UncheckedEnvelope, Argument("One message or event as ingest.v1.")],
) -> IngestAnswer:
    """Ingests one message or event as an ingest.v1 envelope. When this answers, it is on disk. Ingesting the same again
    is safe: the answer is then the first request_id, with duplicate true. A connector's token may ingest for its own
    source.endpoint_identity only. On the error no_room or unavailable, wait retry_after_s and retry.
    """
    return await ingest_one(by.program, intake, envelope)


async def ingest_one(who: Principal, intake: Intake, envelope: object) -> IngestAnswer:
    bound_to = bound_identity(who)
    if not may_ingest(who, envelope):
        raise not_its_channel(who)
    try:
        accepted = await intake.ingest(envelope, bound_to)
    except Refused as error:
        raise not_its_identity(who, IDENTITY) from error
    return IngestAnswer(accepted.request_id, "accepted", accepted.duplicate)


@MAIL.operation(OPERATE, tool("ingest.batch", "Ingest up to 100 messages", ADDS_ONCE, also={Role.CONNECTOR}))
async def ingest_batch(
    by: Caller,
    intake: Intake,
    refusals: Refusals,
    /,
    items: Annotated[
        Sequence[UncheckedEnvelope], Argument("1 to 100 messages or events, each as ingest.v1.", 1, LARGEST_BATCH)
    ],
) -> IngestBatchAnswer:
    """Ingests 1 to 100 envelopes at once. Each has its own result, in order: the good ones are accepted and on disk;
    each bad one is listed by its index with the field and the remedy. Fix those and send only them again.
    """
    return await ingest_many(by.program, intake, refusals, items)


async def ingest_many(
    who: Principal, intake: Intake, refusals: Refusals, envelopes: Sequence[object]
) -> IngestBatchAnswer:
    """Accept the good envelopes, list the bad ones by index. Foreign sources are audited once for the whole batch."""
    bound_to = bound_identity(who)
    allowed = [may_ingest(who, each) for each in envelopes]
    own = [each for each, is_allowed in zip(envelopes, allowed, strict=True) if is_allowed]
    taken = iter(await intake.ingest_batch(own, bound_to) if own else [])
    foreign = not_its_channel(who)
    outcomes = [next(taken) if is_allowed else foreign for is_allowed in allowed]
    if not all(allowed):
        await refusals.note(who, "ingest.batch", foreign)
    if any(isinstance(each, Refused) and not isinstance(each, AccessRefused) for each in outcomes):
        await refusals.note(who, "ingest.batch", not_its_identity(who, IDENTITY))
    results = [_batch_result(who, index, outcome) for index, outcome in enumerate(outcomes)]
    accepted = sum(isinstance(outcome, Accepted) for outcome in outcomes)
    return IngestBatchAnswer(results, accepted, len(outcomes) - accepted)


def _batch_result(who: Principal, index: int, outcome: Accepted | PostroomError) -> BatchAccepted | BatchRefused:
    match outcome:
        case Accepted():
            return BatchAccepted(index, outcome.request_id, "accepted", outcome.duplicate)
        case AccessRefused():
            problem = problem_of(outcome)
        case Refused():
            problem = problem_of(not_its_identity(who, IDENTITY))
        case _:
            problem = problem_of(outcome)
    return BatchRefused(index, "refused", problem.form)
