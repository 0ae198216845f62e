"""The page's content, read from the store."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

from postroom.core.heartbeat import liveness
from postroom.core.mail.account_repair import consent_command, dies_soon, repair_in, resume_command, retry_command
from postroom.core.queue.queues import EMAIL
from postroom.dashboard.feed import AccountLine, ControlState, MessageLine, Totals
from postroom.manage.pausing import stop
from postroom.store import acceptance, accounts, connectors, decisions, feed, history, jobs, pauses
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id

QUEUE = "email"
ON_THE_PAGE = "on the page"


class StoreFeed:
    """What the store holds, and word of every change that this database announces."""

    def __init__(
        self, database: Database, clock: Clock = wall_clock, *, model: str | None = None, may_resume: bool = False
    ) -> None:
        self._database = database
        self._clock = clock
        self._model = model
        self._may_resume = may_resume

    async def lines(self, limit: int) -> list[MessageLine]:
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
        known = await self._database.run(accounts.list_accounts())
        reports = connectors.last_reports(await self._database.run(connectors.list_connectors()))
        now = self._clock()
        return [_account(each, reports.get(each.endpoint_identity), now) for each in known if each.state != "removed"]

    async def standing(self) -> ControlState:
        found = await self._database.run(pauses.standing_pauses())
        if not found:
            return ControlState(model=self._model)
        everywhere = [each for each in found if each.scope == pauses.ALL]
        first = (everywhere or found)[0]
        return ControlState(first.since, first.reason, bool(everywhere), self._model, self._may_resume)

    async def changes(self) -> AsyncIterator[None]:
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


def _account(account: accounts.AccountView, report: connectors.ConnectorView | None, now: datetime) -> AccountLine:
    consent = account.consent
    level = None if consent is None else consent.level
    dies_at = consent.dies_at if consent is not None and dies_soon(consent.dies_at, now) else None
    line = AccountLine(account.email, account.state, account.state_reason, level)
    match account.state:
        case "paused":
            line = replace(line, command=resume_command(account.email))
        case "needs_consent" if mending := repair_in(account.state_reason, account.email):
            line = replace(line, reason=mending.problem, remedy=mending.remedy, command=resume_command(account.email))
        case "needs_consent":
            line = replace(line, command=consent_command(account.email, level))
        case _ if dies_at is not None:
            line = replace(line, dies_at=dies_at, command=consent_command(account.email, level))
        case _:
            pass
    if report is None:
        return line
    refused, aside = report.counters.get("refused", 0), report.counters.get("set_aside", 0)
    return replace(
        line,
        connector=liveness(report.last_heartbeat_at, now),
        heard_at=report.last_heartbeat_at,
        trouble=None if report.state == "healthy" else report.error or report.state,
        ingested=report.counters.get("ingested", 0),
        refused=refused,
        set_aside=aside,
        retry=retry_command(account.email) if refused or aside else None,
    )


def _decision(row: feed.FeedRow) -> str | None:
    match row.action_type:
        case None:
            return None
        case "none":
            return "keep"
        case "apply_label" | "remove_label":
            return f"{row.action_type} {row.parameters.get('label', '')}".strip()
        case other:
            return other


class StoreSwitch:
    """The kill switch in the store."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock

    async def pause(self) -> None:
        await stop(self._database, pauses.ALL, ON_THE_PAGE, self._signed(), self._clock)

    async def resume(self) -> None:
        await self._database.run(pauses.resume(pauses.ALL, self._signed(), self._clock()))

    def _signed(self) -> Signature:
        return Signature(new_id(), "dashboard", "dashboard", ON_THE_PAGE)
