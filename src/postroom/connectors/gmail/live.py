"""Live mail: what has arrived since the checkpoint, each handed in once, the checkpoint moved only afterwards.

The first look, and the one after Gmail has forgotten our place in its history, takes the last days, newest first.
Handing in twice is harmless: the switchboard recognises what it has.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog

from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.parse import headers_of, to_envelope
from postroom.connectors.runtime import Vitals
from postroom.connectors.switchboard_client import Receipt, SwitchboardClient
from postroom.core.errors import (
    BadInput,
    Conflict,
    IntakeRefused,
    PostroomError,
    Refused,
    StoreError,
    SwitchboardUnavailable,
)
from postroom.core.metrics import TIER_ASSIGNED
from postroom.core.tally import Tally
from postroom.core.tiers import Assignment, Known, values
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import GmailError, HistoryExpired, MessageNotFound, RateLimited
from postroom.gmail.resources import Message, MessageRef

log = structlog.get_logger()

FIRST_LOOK = "newer_than:7d"
PAGE = 100
BATCH = 50
QUOTA_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(seconds=60)
NOT_MAIL = frozenset({"DRAFT", "CHAT", "TRASH", "SPAM"})


class GmailLive:
    """One mailbox, watched."""

    def __init__(
        self,
        client: GmailClient,
        switchboard: SwitchboardClient,
        checkpoint: Checkpoint,
        *,
        email: str,
        endpoint_identity: str,
        clock: Callable[[], datetime],
        tally: Tally | None = None,
        vitals: Vitals | None = None,
    ) -> None:
        self._client = client
        self._switchboard = switchboard
        self._checkpoint = checkpoint
        self._endpoint_identity = endpoint_identity
        self._email = email.lower()
        self._sent_ids: set[str] = set()
        self._clock = clock
        self._tally = tally or Tally()
        self._vitals = vitals or Vitals(clock)

    async def run(self, poll: timedelta) -> None:
        """Looks again and again until canceled. Trouble makes it wait longer, never end."""
        troubles = 0
        while True:
            pause = poll
            try:
                await self.sync()
                self._vitals.well()
                troubles = 0
            except IntakeRefused as refused:
                log.warning("connector.intake_refused", retry_after_s=refused.retry_after.total_seconds())
                self._vitals.ail("degraded", refused)
                pause = refused.retry_after
            except (GmailError, StoreError, SwitchboardUnavailable, Refused, OSError) as error:
                troubles += 1
                self._vitals.ail("error" if isinstance(error, Refused) else "degraded", error)
                asked = error.retry_after if isinstance(error, RateLimited) else None
                pause = asked or min(LONGEST_PAUSE, poll * 2 ** min(troubles, 10))
                log.warning("connector.waiting", error=type(error).__name__, seconds=pause.total_seconds())
            await asyncio.sleep(pause.total_seconds())

    async def sync(self) -> int:
        """Hands in everything new; returns how many messages were new to the switchboard."""
        since = self._checkpoint.read()
        if since is None:
            return await self._look_back()
        try:
            return await self._follow(since)
        except HistoryExpired:
            log.warning("connector.history_expired")
            return await self._look_back()

    async def _look_back(self) -> int:
        """The place in history is taken first, so that what arrives while we look is found afterwards."""
        profile = await self._client.get_profile()
        seen, fresh, page_token = 0, 0, None
        while True:
            page = await self._client.list_messages(q=FIRST_LOOK, page_token=page_token, max_results=PAGE)
            fresh += await self._hand_in(await self._fetched(page.messages))
            seen += len(page.messages)
            page_token = page.next_page_token
            if page_token is None:
                break
            log.info("connector.looking_back", messages=seen, new=fresh)
        self._reached(profile.history_id)
        log.info("connector.looked_back", messages=seen, new=fresh)
        return fresh

    async def _follow(self, since: int) -> int:
        """Each page is handed in and its place kept before the next is asked for."""
        fresh, place, page_token = 0, since, None
        while True:
            page = await self._client.list_history(since, page_token, history_types=("messageAdded",))
            refs = {ref.id: ref for record in page.records for ref in record.messages_added}
            fresh += await self._hand_in(await self._fetched(refs.values()))
            page_token = page.next_page_token
            reached = page.history_id if page_token is None else max((each.id for each in page.records), default=place)
            if reached != place:
                self._reached(reached)
                place = reached
            if page_token is None:
                return fresh

    async def _fetched(self, refs: Iterable[MessageRef]) -> list[Message]:
        return [message for ref in refs if (message := await self._fetch(ref)) is not None]

    async def _fetch(self, ref: MessageRef) -> Message | None:
        """None when it is gone already: there is nothing to hand in. Too many requests are waited out here."""
        while True:
            try:
                return await self._client.get_message(ref.id)
            except MessageNotFound:
                return None
            except RateLimited as limited:
                pause = limited.retry_after or QUOTA_PAUSE
                log.warning("connector.rate_limited", seconds=pause.total_seconds())
                await asyncio.sleep(pause.total_seconds())

    async def _hand_in(self, messages: list[Message]) -> int:
        """The user's own mail is not handed in; its ids tell which incoming mail is a reply."""
        for message in messages:
            if "SENT" in message.label_ids:
                self._sent_ids.update(values(headers_of(message), "message-id"))
        known = Known(frozenset({self._email}), frozenset(), self._sent_ids)
        ready: list[tuple[dict[str, Any], Assignment]] = []
        for message in messages:
            if message.label_ids & NOT_MAIL or "SENT" in message.label_ids:
                continue
            try:
                ready.append(to_envelope(message, self._endpoint_identity, known, self._clock()))
            except (ValueError, RecursionError) as error:
                self._refused(error)
        return sum([await self._hand_in_batch(ready[at : at + BATCH]) for at in range(0, len(ready), BATCH)])

    async def _hand_in_batch(self, batch: Sequence[tuple[dict[str, Any], Assignment]]) -> int:
        """What is refused for good is noted and left; what is refused for now is raised, and all is tried again."""
        fresh = 0
        results = await self._switchboard.ingest_batch([envelope for envelope, _ in batch])
        for (envelope, assignment), result in zip(batch, results, strict=True):
            match result:
                case Receipt(_, duplicate):
                    fresh += not duplicate
                    if not duplicate:
                        self._count(assignment)
                case Conflict():
                    fresh += await self._hand_in_without_key(envelope, assignment)
                case BadInput():
                    self._refused(result)
                case PostroomError():
                    raise result
        return fresh

    async def _hand_in_without_key(self, envelope: dict[str, Any], assignment: Assignment) -> int:
        """Our key stands for something else, whoever did that; the message is known by its own id as well."""
        control = {name: value for name, value in envelope["control"].items() if name != "idempotency_key"}
        try:
            receipt = await self._switchboard.ingest({**envelope, "control": control})
        except BadInput as error:
            self._refused(error)
            return 0
        if not receipt.duplicate:
            self._count(assignment)
        return int(not receipt.duplicate)

    def _count(self, assignment: Assignment) -> None:
        self._tally.count(TIER_ASSIGNED, "gmail", self._endpoint_identity, assignment.tier, assignment.rule)
        self._vitals.counters["ingested"] += 1
        self._vitals.counters[f"tier.{assignment.tier}"] += 1
        self._vitals.counters[f"rule.{assignment.rule}"] += 1

    def _refused(self, error: Exception) -> None:
        self._vitals.counters["refused"] += 1
        log.error("connector.message_refused", error=type(error).__name__)

    def _reached(self, history_id: int) -> None:
        """Everything up to here is with the switchboard."""
        self._checkpoint.write(history_id)
        self._vitals.reach(str(history_id))
