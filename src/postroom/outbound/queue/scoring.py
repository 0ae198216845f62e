"""Scores senders by what became of their mail, throttles those whose score is too high, and ends throttles.

Every pass looks at the senders with counts since the last one, and at all with a score or a throttle. Any number of
processes may do this at once: a throttle begins under the lock of its sender, and only once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import structlog

from postroom.core.errors import StoreError
from postroom.core.outbound.abuse import AbusePolicy, Score, abuse_score
from postroom.outbound.queue.notices import throttle_notice
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_builders import sender_notice_job
from postroom.store.outbound import senders
from postroom.store.outbound.sender_counts import ScoredSender, prune_sender_counts, record_scores, scored_senders
from postroom.store.outbound.sender_notices import SYSTEM
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

PERIOD = timedelta(minutes=5)
PAGE = 1000
ACTOR = "process:scoring"

Detection = Literal["off", "observe", "on"]
Channel = Literal["mail", "webhook"]


@dataclass(slots=True)
class Scored:
    """The result of a pass: how many senders it looked at, and how many throttles began and ended."""

    senders: int = 0
    throttled: int = 0
    ended: int = 0


@dataclass(eq=False, slots=True)
class Scoring:
    """With `observe` nobody is throttled; with `off` nobody is scored either. Throttles end in any case."""

    database: Database
    policy: AbusePolicy
    detection: Detection = "on"
    channels: Sequence[Channel] = ()
    period: timedelta = PERIOD
    clock: Clock = wall_clock

    async def run(self) -> None:
        """Run until canceled."""
        while True:
            try:
                await self.score()
            except StoreError as error:
                log.warning("senders.not_scored", error=type(error).__name__)
            await asyncio.sleep(self.period.total_seconds())

    async def score(self) -> Scored:
        """Look once at every sender whose score or throttle may have changed."""
        now, last_id, done = self.clock(), 0, Scored()
        while page := await self.database.run(scored_senders(now - self.period, last_id, PAGE, now)):
            await self._score_page(page, now, done)
            last_id = page[-1].id
        if done.senders:
            await self.database.run(prune_sender_counts(now))
        return done

    async def _score_page(self, page: Sequence[ScoredSender], now: datetime, done: Scored) -> None:
        scores = [(sender, self._score_of(sender, now)) for sender in page]
        changed = [(sender.id, score.points) for sender, score in scores if score.points != sender.abuse_score]
        if changed:
            await self.database.run(record_scores(changed))
        for sender, score in scores:
            match self.policy.verdict(score.points, sender.throttle, now):
                case "begin":
                    done.throttled += await self._throttle(sender, score, now)
                case "end":
                    done.ended += await self._end(sender, now)
                case "none" | "keep":
                    pass
        done.senders += len(page)

    def _score_of(self, sender: ScoredSender, now: datetime) -> Score:
        # That reports do not arrive is the fault of those who they are about; all the others wait for theirs.
        if self.detection == "off" or sender.tenant == SYSTEM:
            return Score(0)
        return abuse_score(sender.activity(now), now)

    async def _throttle(self, sender: ScoredSender, score: Score, now: datetime) -> bool:
        throttle = self.policy.throttle(score, now)
        facts = {"sender_id": sender.id, "score": score.points, "reason": score.reason}
        if self.detection == "observe":
            log.info("sender.would_be_throttled", **facts)
            return False
        notice = throttle_notice(sender, score, throttle)
        jobs = [sender_notice_job(channel, notice, now) for channel in self.channels]
        grounds = senders.Grounds(score.points, sender.first_sign(score))
        change = await self.database.run(
            senders.throttle_for_score(sender.id, throttle, grounds, jobs, self._signature(), now)
        )
        if change is not None:
            log.warning("sender.throttled", **facts, until=throttle.until.isoformat())
        return change is not None

    async def _end(self, sender: ScoredSender, now: datetime) -> bool:
        change = await self.database.run(senders.release_for_score(sender.id, self._signature(), now))
        if change is not None:
            log.info("sender.throttle_ended", sender_id=sender.id)
        return change is not None

    def _signature(self) -> Signature:
        return Signature(new_id(), ACTOR, "worker")
