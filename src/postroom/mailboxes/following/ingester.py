"""Ingests messages that were read: learns from the user's own mail, and sends other mail with its tiers to the
switchboard.

Each message that has an outcome is recorded at once, so that it is not read again after a crash. One that the
switchboard refuses for good is recorded and skipped; one that it refuses for now is raised, and everything is tried
again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

import structlog

from postroom.core.errors import BadInput, Conflict, PostroomError
from postroom.core.mail.accounts import provider_of
from postroom.core.mail.ingestion import Extent
from postroom.core.mail.own_mail import is_own_mail
from postroom.core.mail.tiers import Known
from postroom.core.metrics import (
    KNOWN_CONTACT_DEGRADED,
    TIER_1_INGESTED,
    TIER_2_METADATA,
    TIER_3_SKIPPED,
    TIER_ASSIGNED,
    Metric,
)
from postroom.core.tally import Tally
from postroom.mailboxes.following.correspondents import Correspondents
from postroom.mailboxes.following.envelopes import PreparedMessage, prepare
from postroom.mailboxes.following.fetch import FetchResult
from postroom.mailboxes.following.ingested_ids import IngestedIds
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.refused import RefusedMail, reason_of
from postroom.mailboxes.following.source import SourceMessage
from postroom.sources.runtime import ConnectorHealth
from postroom.sources.switchboard_client import Receipt, SwitchboardClient

log = structlog.get_logger()

MOST_AT_ONCE = 100
# Drafts, spam and trash are not incoming mail. When a message loses these labels, it may become mail.
NOT_MAIL = frozenset({"DRAFT", "CHAT", "TRASH", "SPAM"})
EXTENTS: dict[Extent, Metric] = {"full": TIER_1_INGESTED, "metadata": TIER_2_METADATA, "skip": TIER_3_SKIPPED}


class IngestResult(NamedTuple):
    """The outcome of a message. `skipped` is left out on purpose, `refused` is final, `failed` is only for now."""

    end: Literal["new", "duplicate", "skipped", "gone", "refused", "failed"]
    reason: str | None = None


class MailIngester:
    """Ingests the mail of one mailbox."""

    def __init__(
        self,
        switchboard: SwitchboardClient,
        endpoint_identity: str,
        knowledge: Knowledge,
        ingested: IngestedIds,
        refused: RefusedMail,
        *,
        clock: Callable[[], datetime],
        tally: Tally,
        health: ConnectorHealth,
        people: Correspondents | None = None,
    ) -> None:
        self._switchboard = switchboard
        self._endpoint_identity = endpoint_identity
        self._provider = provider_of(endpoint_identity)
        self._knowledge = knowledge
        self._people = people or Correspondents(switchboard, knowledge)
        self._ingested = ingested
        self._refused = refused
        self._clock = clock
        self._tally = tally
        self._health = health
        self.ended = 0
        """How many messages have had their first outcome here: shows that a round makes progress."""
        if refused.count:
            health.counters["refused"] = refused.count

    def has(self, id: str) -> bool:
        """Whether the message was ingested, or has another outcome."""
        return id in self._ingested

    def newest(self, most: int) -> list[str]:
        """The messages that had an outcome last, newest first."""
        return self._ingested.newest(most)

    async def take(self, fetched: FetchResult, live_since: datetime | None = None) -> dict[str, IngestResult]:
        """Ingest messages that were read; return the outcome of each. Raises temporary errors; the other messages are
        done. With `live_since`, they were searched for: those from before that time are marked as not live.
        """
        ends = {id: self._give_up(id, error) for id, error in fetched.unreadable.items()}
        ends |= dict.fromkeys(fetched.gone, IngestResult("gone"))
        own = [message for message in fetched.read if "SENT" in message.label_ids]
        await self._people.learn(own)
        self._learn_hosts(fetched.read)
        known, policy, now = self._knowledge.known(), self._knowledge.policy(), self._clock()
        ready: list[PreparedMessage] = []
        for message in fetched.read:
            if not is_incoming(message, known):
                ends[message.id] = IngestResult("skipped", "it is not incoming mail")
                continue
            parsed = message.parsed()
            if message.id in fetched.problems:
                parsed = replace(parsed, problems=(fetched.problems[message.id], *parsed.problems))
            old = live_since is not None and message.internal_date < live_since
            ready.append(prepare(message, self._endpoint_identity, known, now, policy, parsed, on_demand=old))
        ends |= self._skip([each for each in ready if each.envelope is None])
        # Spam today may be mail tomorrow, and is then read again; a message refused before stays on that list. What is
        # gone may only be on its way: on IMAP, somebody may be moving it from folder to folder.
        only_now = {message.id for message in fetched.read if message.label_ids & NOT_MAIL} | {*fetched.gone}
        self._note_ended({id: end for id, end in ends.items() if id not in only_now})
        self._forget_refused(fetched.gone)
        return ends | await self._ingest_all([each for each in ready if each.envelope is not None])

    def _learn_hosts(self, read: Sequence[SourceMessage]) -> None:
        """Learn from the user's own mail that came back which hosts receive mail for this mailbox."""
        arrived = (message.readable_headers() for message in read if "SENT" not in message.label_ids)
        self._knowledge.hosts.learn(arrived, self._knowledge.known())

    async def report(self, reports: Sequence[dict[str, Any]]) -> None:
        """Report label changes and deletions, in order."""
        for at in range(0, len(reports), MOST_AT_ONCE):
            batch = reports[at : at + MOST_AT_ONCE]
            try:
                await self._switchboard.changes(batch)
            except BadInput as error:
                log.error("connector.changes_refused", reason=reason_of(error), changes=len(batch))
                self._health.counters["changes_refused"] += len(batch)
            else:
                self._health.counters["changes"] += len(batch)

    async def deliver(self, ready: Sequence[PreparedMessage]) -> dict[str, Receipt | PostroomError]:
        """Send the envelopes to the switchboard, and count what is new there; for each message, its receipt or its
        error. Remember nothing.
        """
        results: dict[str, Receipt | PostroomError] = {}
        for at in range(0, len(ready), MOST_AT_ONCE):
            batch = ready[at : at + MOST_AT_ONCE]
            answers = await self._switchboard.ingest_batch([each.envelope or {} for each in batch])
            for prepared, answer in zip(batch, answers, strict=True):
                result = await self._ingest_without_key(prepared) if isinstance(answer, Conflict) else answer
                if isinstance(result, Receipt) and not result.duplicate:
                    self._count_new(prepared)
                results[prepared.id] = result
        return results

    def count_skipped(self, prepared: PreparedMessage) -> None:
        """Count a message that the policy leaves out."""
        self._count(EXTENTS[prepared.decision.tier])

    async def _ingest_all(self, ready: Sequence[PreparedMessage]) -> dict[str, IngestResult]:
        ends: dict[str, IngestResult] = {}
        trouble: PostroomError | None = None
        for id, result in (await self.deliver(ready)).items():
            match result:
                case Receipt():
                    ends[id] = IngestResult("duplicate" if result.duplicate else "new")
                case BadInput():
                    ends[id] = self._give_up(id, result)
                case PostroomError():
                    trouble = trouble or result
        self._note_ended(ends)
        if trouble is not None:
            raise trouble
        return ends

    async def _ingest_without_key(self, prepared: PreparedMessage) -> Receipt | PostroomError:
        """Our key is already used for something else; the message is also identified by its own id."""
        envelope = prepared.envelope or {}
        control = {name: value for name, value in envelope["control"].items() if name != "idempotency_key"}
        try:
            return await self._switchboard.ingest({**envelope, "control": control})
        except PostroomError as error:
            return error

    def _count_new(self, prepared: PreparedMessage) -> None:
        tier, rule = prepared.assignment
        self._tally.count(TIER_ASSIGNED, self._provider, self._endpoint_identity, tier, rule)
        self._count(EXTENTS[prepared.decision.tier])
        counters = self._health.counters
        counters["ingested"] += 1
        counters[f"tier.{tier}"] += 1
        counters[f"rule.{rule}"] += 1
        if self._knowledge.is_degraded:
            self._count(KNOWN_CONTACT_DEGRADED)

    def _skip(self, prepared: Sequence[PreparedMessage]) -> dict[str, IngestResult]:
        """Count the message, and store nothing else."""
        for each in prepared:
            if each.id not in self._ingested:
                self.count_skipped(each)
        return {each.id: IngestResult("skipped", "an ingestion rule leaves it out") for each in prepared}

    def _note_ended(self, ends: Mapping[str, IngestResult]) -> None:
        self.ended += self._ingested.add(ends)
        self._forget_refused([id for id, end in ends.items() if end.end != "refused"])

    def _forget_refused(self, ids: Sequence[str]) -> None:
        if self._refused.forget(ids):
            self._health.counters["refused"] = self._refused.count

    def _count(self, metric: Metric) -> None:
        self._health.counters[metric.name.rpartition(".")[2]] += 1
        self._tally.count(metric, self._provider, self._endpoint_identity)

    def _give_up(self, id: str, error: Exception) -> IngestResult:
        end = IngestResult("refused", reason_of(error))
        self._refused.remember(id, error)
        self._note_ended({id: end})
        self._health.counters["refused"] = self._refused.count
        log.error("connector.message_refused", reason=end.reason)
        return end


def is_incoming(message: SourceMessage, known: Known) -> bool:
    """Whether the user received it; mail to themselves is both sent and received."""
    if message.label_ids & NOT_MAIL:
        return False
    return not is_own_mail(message.readable_headers(), message.label_ids, known)
