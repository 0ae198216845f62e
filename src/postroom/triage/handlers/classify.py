"""The `classify` job: decide about one message, and record the decision and its follow-up job in one transaction."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import structlog

from postroom.core.actions.safety import Policy
from postroom.core.errors import Fatal, JobError, ModelError, NotFound, Retryable, ShareSpent
from postroom.core.jobs.types import Catalogue
from postroom.core.rules.rule import Outcome
from postroom.core.rules.rulebook import Rulebook
from postroom.jobs.run import JobRun
from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import StoredMessage
from postroom.store.mail.message_context import MessageContext, message_context
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.act.action_requests import APPROVAL_TIME, action_and_job
from postroom.triage.decide.engine import Advice, Safeguards, Verdict, apply_rules
from postroom.triage.decide.model import job_error
from postroom.triage.decide.rulebooks import Rulebooks
from postroom.triage.handlers.payload import uuid_field

log = structlog.get_logger()

LONGEST_WAIT = timedelta(days=2)
"""A message for which the model's budget has no share by then is left alone."""


class Adviser(Protocol):
    """A model that can be asked about a message."""

    async def advise(self, message: StoredMessage) -> Advice:
        """Return its decision. Raise a ModelError if it makes none."""
        ...


class Classify:
    """Apply rules, then a model if there is one, then safety, then record the decision."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        clock: Clock = wall_clock,
        *,
        policy: Policy | None = None,
        adviser: Adviser | None = None,
        approval_time: timedelta = APPROVAL_TIME,
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._clock = clock
        self._policy = policy or Policy()
        self._adviser = adviser
        self._approval_time = approval_time
        self._rulebooks = Rulebooks(database)

    async def __call__(self, run: JobRun) -> None:
        try:
            context = await self._database.run(message_context(uuid_field(run.job, "message_id"), self._clock()))
        except NotFound as error:
            raise Fatal(str(error)) from None
        last = context.last
        if last is not None and last.source != "none" and "again" not in run.job.payload:
            # The full message of one already decided by its metadata: nothing is done to a message twice.
            return
        generation = 1 if last is None else last.generation + 1
        safeguards = Safeguards(context.restraints, self._policy, generation, self._clock())
        verdict = await self._judge(run, context, safeguards)
        await self._record(run, verdict, context.message.backfill_job_id is not None)

    async def _judge(self, run: JobRun, context: MessageContext, safeguards: Safeguards) -> Verdict:
        message, book = context.message, await self._rulebooks.current(context.rules_mark)
        await self._disable_broken(book)
        outcome = await _apply_rules(book, message, self._clock)
        by_rules_alone = message.ingestion_tier != "full" or (message.on_demand and "again" not in run.job.payload)
        if outcome.matched is not None or self._adviser is None or by_rules_alone or message.is_own:
            return safeguards.by_rules(message, outcome)
        try:
            return safeguards.by_model(message, await self._adviser.advise(message), outcome)
        except ModelError as error:
            ending: JobError | None = job_error(error, self._clock(), run.job.attempts)
            if isinstance(error, ShareSpent) and self._has_waited(message):
                ending = None
            if ending is not None and not (isinstance(ending, Retryable) and run.job.is_last_attempt):
                raise ending from error
            return safeguards.left_alone(message, str(error), outcome)

    def _has_waited(self, message: StoredMessage) -> bool:
        return message.stored_at is not None and message.stored_at < self._clock() - LONGEST_WAIT

    async def _disable_broken(self, book: Rulebook) -> None:
        for rule, reason in book.broken:
            signed = Signature(new_id(), "process:classify", "worker", reason)
            await self._database.run(rules.disable_rule(rule.id, reason, self._clock(), signed))
            log.warning("rule.disabled", rule=str(rule.id))

    async def _record(self, run: JobRun, verdict: Verdict, is_backfilled: bool) -> None:
        now, action, follow_up = self._clock(), None, None
        if verdict.ruling is not None and verdict.has_action:
            actor = "model" if verdict.decision.source == "llm" else "rule"
            action, follow_up = action_and_job(
                self._catalogue,
                verdict.decision,
                verdict.ruling,
                actor,
                now,
                self._approval_time,
                run.job.priority,
            )
        if action is not None and "batch_id" in run.job.payload:
            action = replace(action, batch_id=uuid_field(run.job, "batch_id"))
        await run.complete(
            decisions.record_decision(
                run.job,
                verdict.decision,
                action,
                follow_up,
                now,
                verdict.shadows,
                is_backfilled=is_backfilled,
                hiding=self._policy.hiding_caps(now),
            )
        )


async def _apply_rules(book: Rulebook, message: StoredMessage, clock: Clock) -> Outcome:
    """Apply the rules; search long texts in a thread, so that nothing else waits for them."""
    if book.is_heavy(message.facts):
        return await asyncio.to_thread(apply_rules, message, book, clock())
    return apply_rules(message, book, clock())
