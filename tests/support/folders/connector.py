"""The connector of a mailbox in folders: every round takes in what it has not seen."""

import contextlib
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

from postroom.core.mail.accounts import endpoint_of
from postroom.core.tally import Tally
from postroom.mailboxes.following import reading_list
from postroom.mailboxes.following.connector import MailConnector
from postroom.mailboxes.following.index_file import IndexFile
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.running import ConnectorChores, backfill_worker, caches_of
from postroom.mailboxes.following.window import window_start
from postroom.settings.reading import Settings
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.sources.runtime import ConnectorHealth
from postroom.system.wall_clock import wall_clock
from support.folder_mailbox import Folders
from support.folders.facts import NAME
from support.folders.source import FolderSource


class FolderConnector(MailConnector):
    def __init__(self, folders: Folders, switchboard: McpSwitchboard, **options: Any) -> None:
        waiting = reading_list.ReadingList(IndexFile(None, reading_list.SCHEMA, "normal"))
        super().__init__(FolderSource(folders), switchboard, waiting=waiting, **options)
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
def connector_parts(
    settings: Settings,
    folders: Folders,
    switchboard: McpSwitchboard,
    folder: Path,
    health: ConnectorHealth,
    email: str,
    tally: Tally,
) -> Generator[ConnectorChores]:
    contacts, filters = caches_of(settings, switchboard, folder, health)
    endpoint = endpoint_of(NAME, email)
    knowledge = Knowledge([email], contacts=contacts.addresses, policy=filters.policy, fetch_policy=filters.refresh)
    connector = FolderConnector(
        folders,
        switchboard,
        email=email,
        endpoint_identity=endpoint,
        clock=wall_clock,
        tally=tally,
        health=health,
        knowledge=knowledge,
        folder=folder,
    )
    backfills = backfill_worker(settings, switchboard, endpoint, connector, folder, None)
    yield ConnectorChores(connector, FolderSource(folders), contacts, filters, backfills)
