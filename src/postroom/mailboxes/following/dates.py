"""Finds where on a page a window begins, reading the dates of as few messages as possible."""

from collections.abc import Sequence
from datetime import datetime

from postroom.core.errors import MailboxError, MailboxFailed, NotInMailbox, UnreadableAnswer
from postroom.mailboxes.following.message_reader import NOT_ITS_OWN
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage
from postroom.sources.checkpoint import ListPosition

# A mailbox may never return some messages; but when this many fail in a row, the mailbox itself is failing.
MOST_FAILURES = 3


class MessageDates:
    """Reads the dates of messages of one mailbox."""

    def __init__(self, source: MailSource) -> None:
        self._source = source

    async def last(self, ids: Sequence[str]) -> ListPosition | None:
        """The last message of a page whose date is known; None if there is none."""
        failures = 0
        for id in reversed(ids[-CHUNK:]):
            try:
                return ListPosition(id, (await self._source.get_message(id, "minimal")).internal_date)
            except NotInMailbox:
                continue
            except (MailboxFailed, UnreadableAnswer):
                failures += 1
                if failures == MOST_FAILURES:
                    raise
        return None

    async def below(self, passed: ListPosition, ids: list[str]) -> tuple[list[str], ListPosition | None]:
        """The part of a page below a position in its list, and the position again while the whole page is above it.

        The message at the position may be gone; then its date decides.
        """
        if passed.id in ids:
            return ids[ids.index(passed.id) + 1 :], None
        last = await self.last(ids)
        if last is None:
            return ids, passed
        return ([], passed) if last.date > passed.date else (ids, None)

    async def inside(self, ids: Sequence[str], since: datetime) -> list[str]:
        """The messages of a page, newest first, that came at `since` or later, including those without a known date.

        Evenly spaced messages show between which two of them the window begins; those between are then read too.
        """
        step = max(1, len(ids) // CHUNK)
        probes = range(step - 1, len(ids), step)
        dates = await self._read([ids[place] for place in probes])
        inside = [place for place in probes if (date := dates.get(ids[place])) is not None and date >= since]
        start = inside[-1] + 1 if inside else 0
        between = ids[start : start + step]
        dates |= await self._read([id for id in between if id not in dates])
        return [*ids[:start], *(id for id in between if (date := dates.get(id)) is None or date >= since)]

    async def _read(self, ids: Sequence[str]) -> dict[str, datetime | None]:
        """Dates by id; None for a message that the mailbox does not return. Raises if it returns none at all."""
        outcomes: Sequence[SourceMessage | MailboxError] = (
            await self._source.get_messages(ids, "minimal") if ids else ()
        )
        failures = [each for each in outcomes if isinstance(each, MailboxError) and not isinstance(each, NotInMailbox)]
        for error in failures:
            if isinstance(error, NOT_ITS_OWN) or len(failures) == len(outcomes):
                raise error
        return {
            id: None if isinstance(each, MailboxError) else each.internal_date
            for id, each in zip(ids, outcomes, strict=True)
        }
