"""The arguments and answers of the tools, the validation of arguments, and their JSON Schemas."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from postroom.core.errors import BadInput
from postroom.core.heartbeat import Heartbeat
from postroom.core.queue.envelope import Envelope, Moment
from postroom.core.strict import MOST_KEYS, shown_name
from postroom.core.suggestions import did_you_mean
from postroom.switchboard.problems import ProblemForm

MOST_IN_BATCH = 100
LONGEST_WAIT_S = 60


class Arguments(BaseModel):
    """The base of all arguments: unknown ones are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AnyArguments = TypeVar("AnyArguments", bound=Arguments)
# Text that both databases can store. The pattern also refuses invalid text, such as half a surrogate pair.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
QueueName = Annotated[Text, Field(description="The queue's name, such as `gateway`; `queue.stats` lists them.")]
# Validated by the intake and not here, so that one bad envelope in a batch does not refuse the others.
UncheckedEnvelope = Annotated[Envelope, SkipValidation]


class NoArguments(Arguments):
    """The arguments of tools that take none."""


class IngestArguments(Arguments):
    envelope: UncheckedEnvelope = Field(description="One message or event as ingest.v1.")


class IngestBatchArguments(Arguments):
    items: list[UncheckedEnvelope] = Field(
        min_length=1, max_length=MOST_IN_BATCH, description="1 to 100 messages or events, each as ingest.v1."
    )


class HeartbeatArguments(Arguments):
    report: Annotated[Heartbeat, SkipValidation] = Field(
        description="How the connector is doing, as connector.heartbeat.v1."
    )


ProviderId = Annotated[Text, StringConstraints(min_length=1, max_length=512)]


class MailChange(Arguments):
    """A change of one message in the mailbox since it was ingested or last reported."""

    message_id: ProviderId = Field(description="The provider's id of the message, its external_event_id.")
    labels_added: Annotated[list[ProviderId], Field(max_length=100)] = []
    labels_removed: Annotated[list[ProviderId], Field(max_length=100)] = []
    deleted: bool = False


class MailChangesArguments(Arguments):
    items: list[MailChange] = Field(
        min_length=1, max_length=MOST_IN_BATCH, description="1 to 100 changes; those of one message in order."
    )


class AccessTokenArguments(Arguments):
    refused: Text | None = Field(
        None, max_length=4096, description="A token that was given before and that the provider refused."
    )


class NextArguments(Arguments):
    queue: QueueName
    max: int = Field(1, ge=1, le=100, description="How many messages at most, 1 to 100.")
    wait_s: float = Field(
        0, ge=0, le=LONGEST_WAIT_S, description="How many seconds to wait if the queue is empty, 0 to 60."
    )


class LeaseRefForm(Arguments):
    message_id: UUID = Field(description="The message's id, as `queue.next` gave it.")
    lease_token: UUID = Field(description="The lease token that `queue.next` gave with the message.")


class AckArguments(Arguments):
    message_id: UUID | None = Field(None, description="The message's id, as `queue.next` gave it.")
    lease_token: UUID | None = Field(None, description="The lease token that `queue.next` gave with the message.")
    items: list[LeaseRefForm] | None = Field(
        None, min_length=1, max_length=MOST_IN_BATCH, description="1 to 100 messages, instead of a single one."
    )


class NackArguments(AckArguments):
    reason: Text = Field(min_length=1, max_length=500, description="Why it is returned, in 1 to 500 characters.")


class PeekArguments(Arguments):
    queue: QueueName
    max: int = Field(10, ge=1, le=100, description="How many messages at most, 1 to 100.")


class ReplayArguments(Arguments):
    queue: QueueName
    since: Moment = Field(description="Replay what was accepted at or after this time, such as 2026-11-15T08:00:00Z.")
    until: Moment | None = Field(None, description="And before this time; without it, up to now.")
    kinds: list[Text] = Field([], max_length=100, description="Only events of these kinds; empty means all.")
    ids: list[UUID] = Field([], max_length=1000, description="Only these messages, by id; empty means all.")
    max: int = Field(100, ge=1, le=1000, description="How many messages at most, 1 to 1000, oldest first.")


class IngestAnswer(TypedDict):
    request_id: str
    status: Literal["accepted"]
    duplicate: bool


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


class HeartbeatAnswer(TypedDict):
    """`outdated`: a later report of the same instance was received before."""

    status: Literal["recorded", "outdated"]


class MailChangesAnswer(TypedDict):
    """How many stored messages were changed."""

    changed: int


class AccessTokenAnswer(TypedDict):
    access_token: str
    expires_in_s: float
    email: str
    level: str
    scopes: list[str]


class Message(TypedDict):
    """A leased message: the caller's until `lease_until`. Text by strangers is under `envelope.untrusted`."""

    message_id: str
    lease_token: str
    lease_until: str
    tier: str
    promoted_from: str | None
    members: list[str]
    member_count: int
    attempts: int
    envelope: dict[str, Any]


class NextAnswer(TypedDict):
    messages: list[Message]


class LeaseOutcome(TypedDict):
    message_id: str
    status: Literal["acked", "returned", "lost"]
    error: NotRequired[ProblemForm]


class LeaseAnswer(TypedDict):
    """`status` for a single message, `results` for a list."""

    status: NotRequired[Literal["acked", "returned"]]
    results: NotRequired[list[LeaseOutcome]]


class PeekedMessage(TypedDict):
    message_id: str
    queue: str
    tier: str
    state: str
    attempts: int
    accepted_at: str
    waited_s: float
    kind: str | None
    channel: str
    envelope: dict[str, Any]


class PeekAnswer(TypedDict):
    messages: list[PeekedMessage]


class TierForm(TypedDict):
    tier: str
    waiting: int
    leased: int
    oldest_waiting_at: str | None
    streak: int
    guard: int


class QueueForm(TypedDict):
    queue: str
    tiers: list[TierForm]


class StatsAnswer(TypedDict):
    queues: list[QueueForm]


class ReplayAnswer(TypedDict):
    message_ids: list[str]
    replayed: int


class UntrustedError(TypedDict):
    error: str | None


class ConnectorForm(TypedDict):
    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str | None
    liveness: Literal["online", "stale", "offline"]
    state: str
    uptime_s: float
    counters: dict[str, int]
    checkpoint: dict[str, Any] | None
    first_seen_at: str
    last_heartbeat_at: str
    untrusted: UntrustedError


class ConnectorListAnswer(TypedDict):
    connectors: list[ConnectorForm]


def read_arguments(tool: str, form: type[AnyArguments], given: Mapping[str, Any] | None) -> AnyArguments:
    """Validate the arguments. Raises BadInput, which names the wrong one."""
    try:
        if given is not None and len(given) > MOST_KEYS:
            raise BadInput("arguments", f"are more than {MOST_KEYS}", f"{tool} takes {', '.join(form.model_fields)}")
        return form.model_validate(given or {})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [shown_name(str(part)) for part in first["loc"]]
    field = ".".join(path) or "arguments"
    match first["type"]:
        case "extra_forbidden":
            takes = ", ".join(form.model_fields) or "no arguments"
            remedy = did_you_mean(path[-1], form.model_fields, f"leave it out; {tool} takes {takes}")
            raise BadInput(field, f"is not an argument of {tool}", remedy)
        case "missing":
            raise BadInput(field, "is missing", _described(form, field))
        case "timezone_aware":
            raise BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
        case _:
            raise BadInput(field, first["msg"], _described(form, field))


def _described(form: type[Arguments], path: str) -> str:
    """The description of the argument, also for a field inside it."""
    field = form.model_fields.get(path.partition(".")[0])
    return (field and field.description) or "see the tool's input schema"


@cache
def input_schema(form: type[Arguments]) -> dict[str, Any]:
    schema = _without_titles(form.model_json_schema())
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


@cache
def output_schema(form: type[Any]) -> dict[str, Any]:
    return _without_titles(TypeAdapter[Any](form).json_schema(mode="serialization"))


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove pydantic's titles, which repeat the names: a model that reads the schema pays for each word."""
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            plain[key] = {name: _without_titles(inner) for name, inner in cast("dict[str, Any]", value).items()}
        elif key != "title":
            plain[key] = _plain(value)
    return plain


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return _without_titles(cast("dict[str, Any]", value))
        case list():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return value
