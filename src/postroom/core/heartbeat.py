"""connector.heartbeat.v1: what a connector says of itself, strictly checked, and what its silence means.

A report is small by construction: every text has a longest length, and counters are few and flat. Unknown keys are
refused by name, with the nearest known one. A connector reports every two minutes, so one that is late is `stale`,
and one that missed two reports is `offline`, whatever it last said of itself.
"""

import difflib
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from postroom.core.envelope import Moment, Name
from postroom.core.errors import BadInput

SCHEMA = "connector.heartbeat.v1"
Liveness = Literal["online", "stale", "offline"]
STALE_AFTER = timedelta(minutes=2)
OFFLINE_AFTER = timedelta(minutes=4)

MOST_COUNTERS = 64
LARGEST_COUNT = 2**63 - 1
LONGEST_UPTIME_S = 10_000_000_000
LONGEST_SHOWN = 80

Word = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,64}$")]
Line = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,128}$")]
CounterName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reporter(_Strict):
    """Which connector reports. Each running process of it is an instance of its own."""

    connector_type: Word = Field(description="a name such as gmail or redis-stream, of a-z 0-9 _ . -, up to 64 long")
    endpoint_identity: Name = Field(description="the endpoint it serves, as in its envelopes")
    instance_id: Line = Field(description="what tells this process from others, without spaces, up to 128 long")
    version: Line | None = Field(None, description="its version, without spaces, up to 128 long, or leave it out")


class Status(_Strict):
    """How it is, by its own account."""

    state: Literal["healthy", "degraded", "error"] = Field(description="healthy, degraded or error")
    error_message: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] | None = Field(
        None, description="text of up to 500 characters, or leave it out"
    )
    uptime_s: float = Field(ge=0, le=LONGEST_UPTIME_S, strict=True, description="seconds since it started, 0 or more")


class Position(_Strict):
    """How far it has read its source."""

    cursor: Annotated[str, StringConstraints(max_length=512, pattern=r"^[^\x00]*$")] | None = Field(
        None, description="text of up to 512 characters, or leave it out"
    )
    updated_at: Moment | None = Field(None, description="a time with its offset, such as 2026-11-15T08:00:00Z")


class Heartbeat(_Strict):
    """One report."""

    schema_version: Literal["connector.heartbeat.v1"] = Field(description=SCHEMA)
    connector: Reporter = Field(description="an object with connector_type, endpoint_identity and instance_id")
    status: Status = Field(description="an object with state and uptime_s")
    counters: Annotated[dict[CounterName, Count], Field(max_length=MOST_COUNTERS)] = Field(
        default_factory=dict[str, int],
        description=f"up to {MOST_COUNTERS} names of a-z 0-9 _ . (up to 64 long), each with a whole number, 0 or more",
    )
    checkpoint: Position | None = Field(None, description="an object with cursor and updated_at, or null")
    sent_at: Moment = Field(description="a time with its offset, such as 2026-11-15T08:00:00Z")


def parse_heartbeat(data: object) -> Heartbeat:
    """A checked report, or BadInput that names the field and the remedy."""
    try:
        return Heartbeat.model_validate(data)
    except ValidationError as error:
        raise _problem(error) from None


def liveness(last_heartbeat_at: datetime, now: datetime) -> Liveness:
    """What the time since the last heartbeat says. A heartbeat from just ahead of our clock is no silence."""
    silence = now - last_heartbeat_at
    if silence < STALE_AFTER:
        return "online"
    return "stale" if silence < OFFLINE_AFTER else "offline"


def _problem(error: ValidationError) -> BadInput:
    """The unknown key before all else: when a name is mistyped, that it is also missing is no news."""
    found = error.errors(include_url=False, include_input=False)
    worst = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [str(part) for part in worst["loc"]]
    field = ".".join(_shown(part) for part in path) or "heartbeat"
    above = _model_at(path[:-1])
    if worst["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path[-1], list(above.model_fields), n=1) if above else []
        remedy = f"did you mean {near[0]!r}?" if near else "leave it out"
        return BadInput(field, f"is not a field of {SCHEMA}", remedy)
    if worst["type"] == "timezone_aware":
        return BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
    return BadInput(field, worst["msg"], f"give {_allowed(path)}")


def _allowed(path: list[str]) -> str:
    """What the innermost named field on the path may hold."""
    for length in range(len(path), 0, -1):
        model = _model_at(path[: length - 1])
        if model is not None and path[length - 1] in model.model_fields:
            return model.model_fields[path[length - 1]].description or "what the schema allows"
    return f"an object of {SCHEMA}"


def _model_at(path: list[str]) -> type[BaseModel] | None:
    model: type[BaseModel] = Heartbeat
    for part in path:
        field = model.model_fields.get(part)
        inner = _models_in(field.annotation) if field is not None else []
        if not inner:
            return None
        model = inner[0]
    return model


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models among what an annotation such as `Position | None` allows."""
    parts = (annotation, *get_args(annotation))
    return [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]


def _shown(part: str) -> str:
    """A name from outside as a message may repeat it: not at any length, and without what moves a cursor."""
    shown = part if part.isprintable() else ascii(part)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"
