"""ingest.v1: the one form in which every event enters, strictly checked.

Unknown keys are refused by name, so that a producer's mistake is noticed instead of silently dropped.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError

from postroom.core.errors import BadInput
from postroom.core.mail.providers import PROVIDERS
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.strict import MOST_KEYS, Strict, fits_64_bits, is_crowded, problem_in

PolicyTier = Literal["high_priority", "interactive", "default"]
"""The tiers that an envelope can ask for, highest first."""
IngestionTier = Literal["full", "metadata"]
ON_DEMAND = "mail.on_demand"
"""The kind of mail that was fetched by a search, and that is older than live mail."""
LONGEST_KEY = 512
LARGEST_ENVELOPE = 10 * 1024 * 1024
DEEPEST_PAYLOAD = 100
MOST_ATTACHMENTS = 1000
MOST_HEADERS = 1000
BETWEEN = "\x1f"
# One line that is not blank, without control characters: it is compared, shown and joined into keys.
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"),
]
EventKind = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x20\x7f]+$")]


def _text_or_time(value: object) -> object:
    if not isinstance(value, str | datetime):
        raise ValueError("must be a time such as 2026-11-15T08:00:00Z")
    return value


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is beyond the calendar") from None


Moment = Annotated[AwareDatetime, BeforeValidator(_text_or_time), AfterValidator(_in_utc)]

MAIL = "email"
_PROGRAMS: Mapping[str, frozenset[str]] = {
    "api": frozenset({"internal"}),
    "mcp": frozenset({"internal"}),
    "telegram": frozenset({"telegram", "internal"}),
    "slack": frozenset({"slack", "internal"}),
    "discord": frozenset({"discord", "internal"}),
    "webhook": frozenset({"webhook", "internal"}),
    "redis": frozenset({"redis", "internal"}),
}
CHANNELS = (MAIL, *_PROGRAMS)


def providers_on(channel: str) -> frozenset[str]:
    """The providers that go with a channel: those of mailboxes, or programs."""
    return frozenset(PROVIDERS) if channel == MAIL else _PROGRAMS[channel]


def limit_size(value: object) -> object:
    """Refuse too many members before any of them is validated."""
    if is_crowded(value):
        raise ValueError(f"has more than {MOST_KEYS} members")
    return value


class Source(Strict):
    """Where it comes from."""

    channel: str
    provider: str
    endpoint_identity: Name

    @model_validator(mode="after")
    def _provider_fits_channel(self) -> "Source":
        if self.channel not in CHANNELS:
            raise ValueError(f"channel {self.channel!r} is unknown; use one of {', '.join(CHANNELS)}")
        if self.provider not in (fitting := providers_on(self.channel)):
            known = " or ".join(sorted(fitting))
            raise ValueError(f"provider {self.provider!r} does not go with channel {self.channel!r}; use {known}")
        return self


class Event(Strict):
    """The event itself."""

    external_event_id: Name
    observed_at: Moment
    external_thread_id: Name | None = None
    kind: EventKind | None = None


class Sender(Strict):
    """Who it is from."""

    identity: Name


class Attachment(Strict):
    """The description of an attachment, without its content."""

    filename: str | None = None
    mime_type: str | None = None
    size: Annotated[int, Field(ge=0, strict=True)] | None = None


class Metadata(Strict):
    """The fields that rules may check in mail ingested as metadata; nothing of its text."""

    headers: Annotated[tuple[tuple[str, str], ...], FailFast(), Field(max_length=MOST_HEADERS)] = ()
    labels: Annotated[tuple[str, ...], FailFast(), Field(max_length=MOST_HEADERS)] = ()
    sent_at: Moment | None = None
    size: Annotated[int, Field(ge=0, lt=2**63, strict=True)] | None = None
    reply_to_mine: Annotated[bool, Field(strict=True)] | None = None
    sender_doubt: SenderDoubt | None = None


class Payload(Strict):
    """The content: `raw` for full messages only, `metadata` for the others only."""

    raw: dict[str, Any] | None
    normalized_text: str
    metadata: Metadata | None = None
    attachments: Annotated[tuple[Attachment, ...], FailFast(), Field(max_length=MOST_ATTACHMENTS)] = ()

    @field_validator("raw")
    @classmethod
    def _is_plain_json(cls, raw: dict[str, Any] | None) -> dict[str, Any] | None:
        """Check that it is plain JSON: level by level, since recursion would fail on the nesting that this refuses."""
        level: list[Any] = [raw]
        for _ in range(DEEPEST_PAYLOAD):
            level = [inner for each in level if not isinstance(each, str) for inner in _inside(each)]
            numbers = [each for each in level if isinstance(each, (int, float))]
            if any(isinstance(each, float) and not math.isfinite(each) for each in numbers):
                raise ValueError("contains a number that JSON cannot represent")
            if any(isinstance(each, int) and not fits_64_bits(each) for each in numbers):
                raise ValueError("contains a whole number beyond 64 bits, which would be rounded; write it as text")
            if not level:
                return raw
        raise ValueError(f"is nested deeper than {DEEPEST_PAYLOAD} levels")


class Control(Strict):
    """How it is to be handled."""

    idempotency_key: Name | None = None
    trace_context: Annotated[dict[str, str], BeforeValidator(limit_size), Field(max_length=16)] | None = None
    policy_tier: PolicyTier = "default"
    ingestion_tier: IngestionTier = "full"
    backfill_job_id: str | None = None


class Envelope(Strict):
    """One message or event, as a producer sends it."""

    schema_version: Literal["ingest.v1"]
    source: Source
    event: Event
    sender: Sender
    payload: Payload
    control: Control = Control()

    @model_validator(mode="after")
    def _raw_goes_with_full(self) -> "Envelope":
        if (self.control.ingestion_tier == "full") != (self.payload.raw is not None):
            raise ValueError("payload.raw must be an object for ingestion_tier 'full' and null for 'metadata'")
        if self.control.ingestion_tier == "full" and self.payload.metadata is not None:
            raise ValueError("payload.metadata goes with ingestion_tier 'metadata' only; for 'full' use payload.raw")
        return self

    @property
    def event_key(self) -> str:
        """The identity of the event: source and event id, whatever idempotency key the producer gave."""
        source = self.source
        parts = (source.channel, source.provider, source.endpoint_identity, self.event.external_event_id)
        joined = BETWEEN.join(parts)
        return joined if len(joined) <= LONGEST_KEY else f"sha256:{_digest(*parts)}"

    @property
    def is_on_demand(self) -> bool:
        """Whether a search fetched this mail, which is older than live mail."""
        return self.event.kind == ON_DEMAND

    @property
    def identity(self) -> str:
        """The envelope's name in errors."""
        source = self.source
        return (
            f"{source.channel} {source.provider} {source.endpoint_identity} {self.event.external_event_id} "
            f"from {self.sender.identity}"
        )


def parse_envelope(data: object) -> Envelope:
    """Check an envelope. Raises BadInput, which names the field and the remedy."""
    try:
        return Envelope.model_validate(data)
    except ValidationError as error:
        raise problem_in(error, Envelope, "ingest.v1", "see docs/reference/ingest.md") from None


def envelope_text(envelope: Envelope) -> str:
    """The envelope as it is stored. Raises BadInput for a payload that JSON cannot hold, or that is too large."""
    try:
        text = envelope.model_dump_json()
    except (PydanticSerializationError, UnicodeEncodeError, RecursionError):
        remedy = "send plain JSON values and well-formed text"
        raise BadInput("payload", "contains something that is not JSON", remedy) from None
    if len(text) > LARGEST_ENVELOPE:
        remedy = f"keep the envelope under {LARGEST_ENVELOPE // 2**20} MiB; leave large attachments out of payload.raw"
        raise BadInput("payload", f"has {len(text):,} characters", remedy)
    return text


def _digest(*parts: str) -> str:
    return hashlib.sha256(BETWEEN.join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _inside(value: object) -> Iterable[Any]:
    match value:
        case dict():
            return cast("dict[Any, Any]", value).values()
        case list() | tuple():
            return cast("Iterable[Any]", value)
        case _:
            return ()
