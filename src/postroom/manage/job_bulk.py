"""Acts on many jobs at once: those that a filter finds, or those of one cause."""

from collections.abc import Mapping
from typing import NamedTuple

from postroom.core.errors import BadInput, NotFound
from postroom.manage.job_board import STAGES, JobFilters, Stage, select_page_jobs
from postroom.manage.job_causes import job_causes
from postroom.manage.jobs import Verb, apply_to_jobs
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database

VERBS: Mapping[str, tuple[Verb, ...]] = {
    "ready": ("cancel",),
    "running": ("cancel",),
    "scheduled": ("retry", "cancel"),
    "retrying": ("retry", "cancel"),
    "parked": ("cancel",),
    "failed": ("retry", "dismiss"),
    "canceled": ("retry",),
}
"""The acts that are possible on the jobs of each stage."""


class BulkOutcome(NamedTuple):
    """How many of the chosen jobs it was done to; the others have moved on meanwhile."""

    verb: Verb
    done: int
    chosen: int


def read_stage(given: str | None) -> Stage | None:
    """Read the name of a stage. Raise BadInput if there is none of that name."""
    for stage in STAGES:
        if stage == given:
            return stage
    if given:
        raise BadInput("stage", f"{given[:40]!r} is none of them", f"choose one of: {', '.join(STAGES)}")
    return None


async def apply_to_filtered(
    database: Database, verb: str, filters: JobFilters, begin: str, signed: Signature, clock: Clock = wall_clock
) -> BulkOutcome:
    """Act on the jobs that the filters find from a key on, which the list has shown. Raise BadInput."""
    known = _verb(verb, filters.stage)
    found = await select_page_jobs(database, filters, begin)
    named = {"stage": filters.stage, "type": filters.type, "account": filters.account, "error": filters.error}
    asked = {name: value for name, value in named.items() if value}
    done = await apply_to_jobs(database, known, [each.id for each in found.jobs], clock, signed, asked)
    return BulkOutcome(known, done, len(found.jobs))


async def apply_to_cause(
    database: Database, verb: str, key: str, signed: Signature, clock: Clock = wall_clock
) -> BulkOutcome:
    """Act on the jobs of one cause. They are found again, since some may have moved on. Raise NotFound, BadInput."""
    found = next((each for each in (await job_causes(database)).groups if each.key == key), None)
    if found is None:
        raise NotFound("no job has this cause any more")
    known = _verb(verb, found.stage)
    asked = {"stage": found.stage, "type": found.type, "cause": key}
    done = await apply_to_jobs(database, known, found.ids, clock, signed, asked)
    return BulkOutcome(known, done, len(found.ids))


def _verb(given: str, stage: Stage | None) -> Verb:
    for verb in VERBS.get(stage or "", ()):
        if verb == given:
            return verb
    problem = f"{given[:20]!r} cannot be done with jobs that are {stage or 'in any stage'}"
    raise BadInput("verb", problem, "choose a stage first, and one of the acts on its jobs")
