"""The `classify` job: decides about one message and, in one transaction, records that and enqueues what follows."""

from uuid import UUID

import structlog

from postroom.core.errors import Fatal, NotFound
from postroom.core.job_types import ACTION_GMAIL, Catalogue
from postroom.core.jobs import NewJob
from postroom.decide.engine import Verdict, decide
from postroom.handlers.payload import uuid_field
from postroom.jobs.run import JobRun
from postroom.store import actions, mail, rules
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.new_jobs import new_job

log = structlog.get_logger()


class Classify:
    """Rules, then the decision."""

    def __init__(self, database: Database, catalogue: Catalogue, clock: Clock = wall_clock) -> None:
        self._database = database
        self._catalogue = catalogue
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        try:
            message = await self._database.run(mail.load_message(uuid_field(run.job, "message_id")))
        except NotFound as error:
            raise Fatal(str(error)) from None
        verdict = decide(message, await self._database.run(rules.enabled_rules()))
        for rule, reason in verdict.outcome.broken:
            await self._database.run(rules.disable_rule(rule.id, reason, self._clock()))
            log.warning("rule.disabled", rule=str(rule.id))
        follow_up = self._follow_up(verdict, run)
        await run.complete(actions.record_decision(run.job, verdict.decision, verdict.action, follow_up, self._clock()))

    def _follow_up(self, verdict: Verdict, run: JobRun) -> NewJob | None:
        if verdict.action is None or verdict.action.state != "queued":
            return None
        account_id: UUID = verdict.decision.account_id
        return new_job(
            self._catalogue,
            ACTION_GMAIL.name,
            {"account_id": str(account_id), "action_id": str(verdict.action.id)},
            key=f"action.gmail:{account_id}:{verdict.action.id}",
            priority=run.job.priority,
        )
