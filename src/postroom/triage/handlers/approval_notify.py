"""The `approval.notify` job: keep the notices of an action that needs approval up to date.

While the action waits, every channel asks once; when it is answered, the notices show the answer. Beyond a number of
notices an hour, people get one digest on the hour instead.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog

from postroom.core.errors import Fatal, JobError, NotFound, Retryable
from postroom.jobs.run import JobRun
from postroom.store.actions import approvals
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import digest_job
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.act.approval_notice import digest_of
from postroom.triage.act.approvals import Channel
from postroom.triage.handlers.payload import uuid_field

log = structlog.get_logger()

HOURLY = 20


class ApprovalNotify:
    """Without a channel nobody is asked: the page and the command line show the action."""

    def __init__(
        self, database: Database, channels: Sequence[Channel], clock: Clock = wall_clock, hourly: int = HOURLY
    ) -> None:
        self._database = database
        self._channels: dict[str, Channel] = {channel.name: channel for channel in channels}
        self._clock = clock
        self._hourly = hourly

    async def __call__(self, run: JobRun) -> None:
        if run.job.payload.get("digest") is True:
            _raise_worst(await self._tell_digest(run))
            return
        account_id, action_id = uuid_field(run.job, "account_id"), uuid_field(run.job, "action_id")
        try:
            approval = await self._database.run(approvals.show_approval(action_id))
        except NotFound as error:
            raise Fatal(str(error)) from None
        if approval.account_id != account_id:
            raise Fatal(f"action {action_id} belongs to another account than the job says")
        if approval.is_waiting and await self._may_ask(approval):
            _raise_worst(await self._ask(run, approval))
        elif approval.is_settled(self._clock()):
            _raise_worst(await self._close(run, approval))

    async def _may_ask(self, approval: approvals.Approval) -> bool:
        if not self._channels:
            return True
        now = self._clock()
        next_hour = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return await self._database.run(approvals.take_slot(approval.id, self._hourly, digest_job(next_hour), now))

    async def _tell_digest(self, run: JobRun) -> list[JobError]:
        waiting = await self._database.run(approvals.count_without_notice())
        errors: list[JobError] = []
        for channel in self._channels.values() if waiting else ():
            try:
                await run.step(f"digest:{channel.name}", partial(channel.post_digest, run.job.id, digest_of(waiting)))
            except Exception as error:
                errors.append(_in_channel(channel.name, error))
        return errors

    async def _ask(self, run: JobRun, approval: approvals.Approval) -> list[JobError]:
        """Ask on every channel, even if others fail."""
        asked = {notice.channel for notice in await self._database.run(approvals.notices_of(approval.id))}
        errors: list[JobError] = []
        for channel in self._channels.values():
            if channel.name in asked:
                continue
            try:
                reference = await channel.post(approval, again=run.job.attempts > 1)
            except Exception as error:
                errors.append(_in_channel(channel.name, error))
            else:
                await self._database.run(approvals.keep_notice(approval.id, channel.name, reference, self._clock()))
        # An answer given while we were asking did not know of these notices, and closes none of them.
        after = await self._database.run(approvals.show_approval(approval.id))
        return await self._close(run, after) if after.is_settled(self._clock()) else errors

    async def _close(self, run: JobRun, approval: approvals.Approval) -> list[JobError]:
        errors: list[JobError] = []
        for notice in await self._database.run(approvals.notices_of(approval.id)):
            if not notice.is_open:
                continue
            try:
                if (channel := self._channels.get(notice.channel)) is not None:
                    await channel.close(approval, notice.reference)
            except Exception as raised:
                error = _in_channel(notice.channel, raised)
                errors.append(error)
                if isinstance(error, Retryable) and not run.job.is_last_attempt:
                    continue
                # It cannot be reached; its buttons no longer work anyway, because of the action's state.
                log.warning("approval.notice_left", channel=notice.channel, action_id=str(approval.id))
            await self._database.run(approvals.close_notice(approval.id, notice.channel, self._clock()))
        return errors


def _in_channel(name: str, error: Exception) -> JobError:
    """Describe an unexpected error by its type alone: its text may quote the mail, or a secret."""
    if isinstance(error, JobError):
        return error
    log.error("approval.channel_broken", channel=name, error=type(error).__name__)
    return Retryable(f"the channel {name} failed unexpectedly ({type(error).__name__})")


def _raise_worst(errors: Sequence[JobError]) -> None:
    """Raise a retryable error if there is one: as long as one channel may succeed, the job is tried again."""
    for error in sorted(errors, key=lambda each: isinstance(each, Fatal)):
        raise error
