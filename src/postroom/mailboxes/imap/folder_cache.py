"""The list of a mailbox's folders, read once for a while: it takes two commands, and changes seldom."""

import asyncio

from postroom.mailboxes.imap.folders import Folder, FolderMap
from postroom.mailboxes.imap.session import ImapSession

FRESH_S = 60.0


class CachedFolders:
    """The folders as last read. Whoever misses one, or has made one, reads them again."""

    def __init__(self) -> None:
        self._map: FolderMap | None = None
        self._read_at = 0.0

    async def of(self, session: ImapSession) -> FolderMap:
        now = asyncio.get_running_loop().time()
        if self._map is None or not self._read_at <= now < self._read_at + FRESH_S:
            return await self.read(session)
        return self._map

    async def read(self, session: ImapSession) -> FolderMap:
        self._map = FolderMap(
            await session.list_folders(), await session.namespace(), is_gmail=session.offers("X-GM-EXT-1")
        )
        self._read_at = asyncio.get_running_loop().time()
        return self._map

    def at(self, wire: bytes) -> Folder | None:
        """The folder of this name, as last read."""
        return None if self._map is None else self._map.at(wire)

    def listed(self) -> frozenset[bytes]:
        """The names of all folders, as last read."""
        return frozenset() if self._map is None else frozenset(each.wire for each in self._map.folders)
