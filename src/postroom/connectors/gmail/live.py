"""Live mail: what has arrived since the checkpoint, each handed in once, the checkpoint moved only afterwards.

The first look, and the one after Gmail has forgotten our place in its history, takes the last days, newest first.
Handing in twice is harmless: the switchboard recognises what it has.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import structlog

from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.parse import headers_of, to_envelope
from postroom.connectors.switchboard_client import SwitchboardClient
from postroom.core.errors import BadInput, IntakeRefused, StoreError
from postroom.core.tiers import Known, values
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import GmailError, HistoryExpired, MessageNotFound, RateLimited
from postroom.gmail.resources import Message, MessageRef

log = structlog.get_logger()

FIRST_LOOK = "newer_than:7d"
PAGE = 100
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
    ) -> None:
        self._client = client
        self._switchboard = switchboard
        self._checkpoint = checkpoint
        self._endpoint_identity = endpoint_identity
        self._email = email.lower()
        self._sent_ids: set[str] = set()
        self._clock = clock

    async def run(self, poll: timedelta) -> None:
        """Looks again and again until canceled. Trouble makes it wait longer, never end."""
        troubles = 0
        while True:
            pause = poll
            try:
                await self.sync()
                troubles = 0
            except IntakeRefused as refused:
                log.warning("connector.intake_refused", retry_after_s=refused.retry_after.total_seconds())
                pause = refused.retry_after
            except (GmailError, StoreError, OSError) as error:
                troubles += 1
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
        self._checkpoint.write(profile.history_id)
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
                self._checkpoint.write(reached)
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
        fresh = 0
        for message in messages:
            if message.label_ids & NOT_MAIL or "SENT" in message.label_ids:
                continue
            try:
                envelope = to_envelope(message, self._endpoint_identity, known, self._clock())
                receipt = await self._switchboard.ingest(envelope)
            except (BadInput, ValueError, RecursionError) as error:
                log.error("connector.message_refused", message=message.id, error=type(error).__name__)
                continue
            fresh += not receipt.duplicate
        return fresh
