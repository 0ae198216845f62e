"""Takes messages in by their ids: reads them, a batch at a time, and hands each batch in before the next is read."""

from collections.abc import Iterable, Sequence

from postroom.connectors.gmail.desk import Desk
from postroom.connectors.gmail.fetch import CHUNK, fetch
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import GmailError, RateLimited


class Taking:
    """From the mailbox to the switchboard."""

    def __init__(self, client: GmailClient, desk: Desk) -> None:
        self._client = client
        self._desk = desk

    async def take(self, ids: Iterable[str]) -> int:
        """Hands in all that were not before; returns how many were new to the switchboard.

        What the rate limit kept back is asked for once more at the end. Any other trouble ends it: who goes on asking a
        Gmail that fails spends calls for nothing, and the next round begins with a cheap one.
        """
        wanted = [id for id in dict.fromkeys(ids) if not self._desk.has(id)]
        fresh, left = await self._take(wanted)
        if left:
            again, left = await self._take(list(left))
            fresh += again
        for error in left.values():
            raise error
        return fresh

    async def _take(self, ids: Sequence[str]) -> tuple[int, dict[str, GmailError]]:
        fresh = 0
        limited: dict[str, GmailError] = {}
        for at in range(0, len(ids), CHUNK):
            fetched = await fetch(self._client, ids[at : at + CHUNK])
            fresh += await self._desk.take(fetched)
            for id, error in fetched.left.items():
                if not isinstance(error, RateLimited):
                    raise error
                limited[id] = error
        return fresh, limited
