"""Checks a requested job and builds it. Everything that enqueues goes through here."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from postroom.core.errors import BadInput
from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue, KeyLifetime, check_attempts, check_priority, check_text
from postroom.store.engine.codecs import json_text
from postroom.store.engine.ids import new_id
from postroom.telemetry.tracing import current_traceparent

LARGEST_PAYLOAD = 1024 * 1024


def new_job(
    catalogue: Catalogue,
    type: str,
    payload: Mapping[str, Any],
    *,
    key: str | None = None,
    priority: int = 0,
    not_before: datetime | None = None,
    max_attempts: int | None = None,
    traceparent: str | None = None,
    while_live: bool = False,
) -> NewJob:
    """Build a checked job with a new id, in the current trace unless another is given.

    With `while_live` its key is free again when it has ended, even where keys of its type are permanent. Raises
    BadInput that names the field and the remedy.
    """
    kind = catalogue[type]
    check_priority(priority)
    if key is not None:
        check_text("idempotency_key", key)
    if traceparent is None:
        traceparent = current_traceparent()
    else:
        check_text("traceparent", traceparent)
    if max_attempts is not None:
        check_attempts(max_attempts)
    return NewJob(
        new_id(),
        type,
        _payload_text(payload),
        priority,
        max_attempts or kind.retry.max_attempts,
        key,
        key is not None and (while_live or kind.key_lifetime is KeyLifetime.WHILE_LIVE),
        traceparent,
        None if not_before is None else _in_utc(not_before),
    )


def _in_utc(not_before: datetime) -> datetime:
    if not_before.tzinfo is None:
        raise BadInput("not_before", f"{not_before.isoformat()} has no time zone", "add one, such as +00:00")
    try:
        return not_before.astimezone(UTC)
    except OverflowError:
        raise BadInput("not_before", f"{not_before.isoformat()} is beyond the calendar", "use a nearer date") from None


def _payload_text(payload: object) -> str:
    if not isinstance(payload, dict):
        raise BadInput("payload", f"is a {type(payload).__name__}, not a JSON object", "use an object with text keys")
    text = json_text(cast("dict[str, Any]", payload))
    if len(text) > LARGEST_PAYLOAD:
        remedy = f"keep it under {LARGEST_PAYLOAD:,} and store large data elsewhere"
        raise BadInput("payload", f"has {len(text):,} characters", remedy)
    return text
