"""connector.heartbeat.v1: a connector's report about itself, strictly checked, and the meaning of its silence.

A report is small by construction: every text has a maximum length, and counters are few and flat. An unknown key is
refused by name, with the nearest known one. A connector reports every two minutes. One that is late is `stale`, and one
that missed two reports is `offline`, regardless of its last report.
"""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from postroom.core.queue.envelope import Moment, Name, limit_size
from postroom.core.strict import Strict, problem_in

SCHEMA = "connector.heartbeat.v1"
Liveness = Literal["online", "stale", "offline"]
STALE_AFTER = timedelta(minutes=2)
OFFLINE_AFTER = timedelta(minutes=4)

MOST_COUNTERS = 64
LARGEST_COUNT = 2**63 - 1
LONGEST_UPTIME_S = 10_000_000_000

Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,64}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,128}$")]
CounterName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT, strict=True)]


class Reporter(Strict):
    """Which connector reports. Each running process of it is an instance of its own."""

    connector_type: Word = Field(description="a name such as gmail or redis-stream, of a-z 0-9 _ . -, up to 64 long")
    endpoint_identity: Name = Field(description="the endpoint it serves, as in its envelopes")
    instance_id: Line = Field(description="what distinguishes this process from others, without spaces, up to 128 long")
    version: Line | None = Field(None, description="its version, without spaces, up to 128 long, or leave it out")


class Status(Strict):
    """The state as the connector reports it."""

    state: Literal["healthy", "degraded", "error"] = Field(description="healthy, degraded or error")
    error_message: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] | None = Field(
        None, description="text of up to 500 characters, or leave it out"
    )
    uptime_s: float = Field(ge=0, le=LONGEST_UPTIME_S, strict=True, description="seconds since it started, 0 or more")


class Position(Strict):
    """How far it has read its source, and how fresh its contacts are."""

    cursor: Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00]*$")] | None = Field(
        None, description="text of up to 512 characters, or leave it out"
    )
    updated_at: Moment | None = Field(None, description="a time with its offset, such as 2026-11-15T08:00:00Z")
    contacts_generated_at: Moment | None = Field(
        None, description="a time with its offset, such as 2026-11-15T08:00:00Z"
    )


class Heartbeat(Strict):
    """One report."""

    schema_version: Literal["connector.heartbeat.v1"] = Field(description=SCHEMA)
    connector: Reporter = Field(description="an object with connector_type, endpoint_identity and instance_id")
    status: Status = Field(description="an object with state and uptime_s")
    counters: Annotated[dict[CounterName, Count], BeforeValidator(limit_size), Field(max_length=MOST_COUNTERS)] = Field(
        default_factory=dict[str, int],
        description=f"up to {MOST_COUNTERS} names of a-z 0-9 _ . (up to 64 long), each with a whole number, 0 or more",
    )
    checkpoint: Position | None = Field(None, description="an object with cursor and updated_at, or null")
    sent_at: Moment = Field(description="a time with its offset, such as 2026-11-15T08:00:00Z")


def parse_heartbeat(data: object) -> Heartbeat:
    """Check a report. Raises BadInput, which names the field and the remedy."""
    try:
        return Heartbeat.model_validate(data)
    except ValidationError as error:
        raise problem_in(error, Heartbeat, SCHEMA, f"give an object of {SCHEMA}") from None


def liveness(last_heartbeat_at: datetime, now: datetime) -> Liveness:
    """The verdict on the time since the last heartbeat. One from slightly in the future is fine; one from further ahead
    was dated by a clock that has been set back since, and counts as silence.
    """
    silence = abs(now - last_heartbeat_at)
    if silence < STALE_AFTER:
        return "online"
    return "stale" if silence < OFFLINE_AFTER else "offline"
