"""The overview page's data: the newest messages, totals, accounts, and whether changes are allowed now.

Every text in a `MessageLine` may come from a stranger's mail. Nothing here is trusted; the page makes it safe to show.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from postroom.core.actions.steps import shown
from postroom.core.queue.queues import EMAIL
from postroom.manage.account_status import AccountLine, account_lines
from postroom.manage.kill_switch import pause_changes, resume_changes
from postroom.store import acceptance, accounts, decisions, feed, history, jobs, pauses
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database

QUEUE = "email"


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One message: how it arrived, what was decided and why, and the result."""

    inbox_id: UUID
    seq: int
    accepted_at: datetime
    tier: str
    assignment_rule: str | None
    sender: str
    subject: str
    state: str
    """`waiting`, `leased`, `done` or `failed`."""
    decision: str | None = None
    """For example `archive`, `apply_label Receipts` or `keep`."""
    source: str | None = None
    """Who decided: `deterministic` for a rule, `model`, …"""
    rule_name: str | None = None
    rationale: str | None = None
    action_state: str | None = None
    action_error: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts at the top of the page."""

    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    """Messages that wait in the buffer, by tier, in the order of the tiers."""
    decided: int = 0
    actions_completed: int = 0
    actions_failed: int = 0
    approvals: int = 0
    """Actions that wait for approval."""
    jobs_queued: int = 0
    jobs_running: int = 0
    jobs_failed: int = 0


@dataclass(frozen=True, slots=True)
class ControlState:
    """Whether changes are allowed now, and which model decides besides the rules."""

    paused_since: datetime | None = None
    paused_because: str = ""
    paused_everywhere: bool = True
    model: str | None = None


class Overview:
    """Read the overview from the database, signal announced changes, and operate the kill switch."""

    def __init__(self, database: Database, clock: Clock = wall_clock, *, model: str | None = None) -> None:
        self._database = database
        self._clock = clock
        self._model = model

    async def lines(self, limit: int) -> list[MessageLine]:
        """Return the newest messages, newest first."""
        return [_line(row) for row in await self._database.run(feed.recent_messages(limit))]

    async def totals(self) -> Totals:
        depths = await self._database.run(history.depths())
        messages = {(each.queue, each.tier, each.state): each.count for each in depths}
        actions_by_state = await self._database.run(feed.count_actions())
        jobs_by_state = await self._database.run(jobs.count_jobs())
        return Totals(
            waiting={tier: messages.get((QUEUE, tier, "waiting"), 0) for tier in EMAIL.tiers},
            decided=await self._database.run(feed.count_decisions()),
            actions_completed=actions_by_state.get("completed", 0),
            actions_failed=actions_by_state.get("failed", 0),
            approvals=actions_by_state.get("awaiting_approval", 0),
            jobs_queued=jobs_by_state.get("queued", 0),
            jobs_running=jobs_by_state.get("running", 0),
            jobs_failed=jobs_by_state.get("failed", 0),
        )

    async def accounts(self) -> list[AccountLine]:
        return await account_lines(self._database, self._clock())

    async def control_state(self) -> ControlState:
        found = await self._database.run(pauses.standing_pauses())
        if not found:
            return ControlState(model=self._model)
        everywhere = [each for each in found if each.scope == pauses.ALL]
        first = (everywhere or found)[0]
        return ControlState(first.since, first.reason, bool(everywhere), self._model)

    async def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever something may have changed since the last value was taken.

        Changes are coalesced: many of them while the reader is busy make one value ready, and none is lost. Changes by
        other processes may go unannounced.
        """
        changed = asyncio.Event()
        channels = (acceptance.CHANNEL, accounts.CHANNEL, decisions.CHANNEL, jobs.CHANNEL, pauses.CHANNEL)
        subscriptions = [self._database.subscribe(each, lambda _message: changed.set()) for each in channels]
        try:
            while True:
                yield
                await changed.wait()
                changed.clear()
        finally:
            for subscription in subscriptions:
                subscription.close()

    async def pause(self, signed: Signature) -> None:
        """Stop all changes to mailboxes, for the reason in the signature."""
        await pause_changes(self._database, None, signed.reason or "", signed, self._clock)

    async def resume(self, signed: Signature) -> None:
        await resume_changes(self._database, None, signed, self._clock)


def _line(row: feed.FeedRow) -> MessageLine:
    return MessageLine(
        row.inbox_id,
        row.seq,
        row.accepted_at,
        row.tier,
        None,
        row.sender,
        row.subject,
        row.state,
        _decision(row),
        None if row.source == "none" else row.source,
        row.rule_name,
        row.rationale or row.reason,
        row.action_state,
        row.action_error,
    )


def _decision(row: feed.FeedRow) -> str | None:
    match row.action_type:
        case None:
            return None
        case "none":
            return "keep"
        case other:
            return shown(other, row.parameters)
