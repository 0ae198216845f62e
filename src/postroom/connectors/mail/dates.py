"""When messages came, by their own word: read for as few of them as tell where on a page a window begins."""

from collections.abc import Sequence
from datetime import datetime

from postroom.connectors.checkpoint import ListPosition
from postroom.connectors.gmail.message_reader import NOT_ITS_OWN
from postroom.connectors.mail.fetch import CHUNK
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import BadAnswer, GmailError, NotThere, ServerError
from postroom.gmail.resources import Message

# There are messages that Gmail fails to give for ever; when so many fail in a row, it is Gmail that fails.
MOST_FAILURES = 3


class MessageDates:
    """Asks Gmail for the dates of messages of one mailbox."""

    def __init__(self, client: GmailClient) -> None:
        self._client = client

    async def last(self, ids: Sequence[str]) -> ListPosition | None:
        """The last message of a page whose date can be told; None when there is none."""
        failures = 0
        for id in reversed(ids[-CHUNK:]):
            try:
                return ListPosition(id, (await self._client.get_message(id, "minimal")).internal_date)
            except NotThere:
                continue
            except (ServerError, BadAnswer):
                failures += 1
                if failures == MOST_FAILURES:
                    raise
        return None

    async def below(self, passed: ListPosition, ids: list[str]) -> tuple[list[str], ListPosition | None]:
        """What of a page stands below a place in its list, and the place again while the page lies wholly above it.

        The message that marks the place may be gone; then its date tells.
        """
        if passed.id in ids:
            return ids[ids.index(passed.id) + 1 :], None
        last = await self.last(ids)
        if last is None:
            return ids, passed
        return ([], passed) if last.date > passed.date else (ids, None)

    async def inside(self, ids: Sequence[str], since: datetime) -> list[str]:
        """Those of a page, newest first, that came at `since` or later; one whose date cannot be told is among them.

        Evenly spaced messages tell between which two of them the window begins, and those between tell the rest.
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
        """Dates by ids; None where Gmail does not give the message. Raises when it gives none at all."""
        outcomes = await self._client.get_messages(ids, "minimal") if ids else []
        failures = [each for each in outcomes if isinstance(each, GmailError) and not isinstance(each, NotThere)]
        for error in failures:
            if isinstance(error, NOT_ITS_OWN) or len(failures) == len(outcomes):
                raise error
        return {
            id: each.internal_date if isinstance(each, Message) else None
            for id, each in zip(ids, outcomes, strict=True)
        }
