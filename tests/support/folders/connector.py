"""The connector of a mailbox in folders: every round takes in what it has not seen."""

import contextlib
from collections.abc import Generator
from datetime import datetime
from typing import Unpack

from postroom.mailboxes.following import reading_list
from postroom.mailboxes.following.connector import ConnectorTerms, MailConnector
from postroom.mailboxes.following.index_file import IndexFile
from postroom.mailboxes.following.running import ConnectorChores, ConnectorHome
from postroom.mailboxes.following.window import window_start
from postroom.sources.mcp_switchboard import McpSwitchboard
from support.folder_mailbox import Folders
from support.folders.source import FolderSource


class FolderConnector(MailConnector):
    def __init__(self, folders: Folders, switchboard: McpSwitchboard, **terms: Unpack[ConnectorTerms]) -> None:
        waiting = reading_list.ReadingList(IndexFile(None, reading_list.SCHEMA, "normal"))
        super().__init__(FolderSource(folders), switchboard, waiting, **terms)
        self._folders = folders
        self._seen: set[str] = set()

    async def _check_mailbox(self) -> None:
        """The password tells whose it is."""

    def _live_since(self) -> datetime:
        return window_start(self._clock(), None)

    async def _find_new(self) -> int:
        new = [id for id, kept in self._folders.messages.items() if kept.folder == "INBOX" and id not in self._seen]
        self._seen |= set(new)
        return await self._reader.take(new)


@contextlib.contextmanager
def connector_parts(home: ConnectorHome, folders: Folders) -> Generator[ConnectorChores[FolderConnector, FolderSource]]:
    yield home.chores(FolderConnector(folders, home.switchboard, **home.terms(())), FolderSource(folders))
