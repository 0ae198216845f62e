"""Estimates of backfills: stored as they were shown, and compared with what the backfill then did and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from postroom.core.backfill.estimate import FinishedBackfill
from postroom.core.backfill.window import Window
from postroom.core.errors import NotFound
from postroom.core.lifecycle import BackfillStatus
from postroom.core.views import Internal, Shown
from postroom.store.engine.codecs import from_json, json_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows


@dataclass(frozen=True, slots=True)
class StoredEstimate:
    """The question, and the answer as it was shown."""

    id: UUID
    endpoint_identity: str
    request: dict[str, Any]
    result: Annotated[dict[str, Any], "The counts, the cost, and what they are based on (reference/mcp.md)."]
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class BackfillOutcome:
    """The results and cost of a job so far, and the estimate that it was created with, if there was one.

    `waiting` are messages that it brought in and that wait for a decision.
    """

    job_id: Internal[UUID]
    status: Internal[BackfillStatus]
    rows_processed: int
    spent_micros: int
    read_by_model: int
    waiting: int
    estimate_id: Internal[UUID | None]
    estimate: Internal[dict[str, Any] | None]

    @property
    def is_final(self) -> Shown[bool]:
        return self.status in ("completed", "cancelled") and not self.waiting

    @property
    def expected_to_read(self) -> int | None:
        return None if self.estimate is None else int(self.estimate["to_read"]["expected"])


@transaction
def record_estimate(
    id: UUID,
    endpoint_identity: str,
    request: Mapping[str, Any],
    result: Mapping[str, Any],
    created_by: str,
    now: datetime,
) -> Script[None]:
    """Store an estimate."""
    yield sql("insert_backfill_estimate", id, endpoint_identity, json_text(request), json_text(result), created_by, now)


@query
def load_estimate(id: UUID) -> Script[StoredEstimate]:
    found = read_first(StoredEstimate, (yield sql("select_backfill_estimate", id)))
    if found is None:
        raise NotFound(f"there is no estimate {id}")
    return found


@query
def estimates_by_id(ids: Sequence[UUID]) -> Script[list[StoredEstimate]]:
    """Those of these estimates that exist."""
    return read_rows(StoredEstimate, (yield sql("select_backfill_estimates", list(ids)))) if ids else []


@query
def backfill_outcome(job_id: UUID) -> Script[BackfillOutcome]:
    """A job beside its estimate. Raises NotFound."""
    found = read_first(BackfillOutcome, (yield sql("select_backfill_outcome", job_id)))
    if found is None:
        raise NotFound(f"there is no backfill {job_id}; `postroom backfill list` shows all")
    return found


@query
def stored_in_categories(endpoint_identity: str, categories: Sequence[str], window: Window) -> Script[int]:
    """How many messages of a mailbox in these categories and days are stored in full."""
    [[count]] = yield sql("count_stored_in_categories", endpoint_identity, categories, window.start, window.end)
    return count


@query
def finished_backfills(endpoint_identity: str, most: int) -> Script[list[FinishedBackfill]]:
    """The last backfills of a mailbox that ended, with all of their mail decided, and were estimated before."""
    rows = yield sql("select_finished_backfills", endpoint_identity, most)
    return [FinishedBackfill(int(from_json(text)["uncorrected"]), int(read)) for text, read in rows]
