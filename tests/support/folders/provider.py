"""Mailboxes in folders, as a provider."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import BadInput
from postroom.core.mail.secret_fields import PASSWORD
from postroom.core.tally import Tally
from postroom.mailboxes.following.running import watch_within
from postroom.mailboxes.providers import AccessField, Provider, ProviderParts
from postroom.settings.reading import Settings
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.store.accounts.accounts import AccountView
from support.folder_mailbox import FolderCarrier, FolderMailbox, Folders
from support.folders.connector import connector_parts
from support.folders.facts import FACTS, NAME
from support.folders.source import FolderSource
from support.gates import BY_HAND

OPENS = "open sesame"
SERVED: dict[str, Folders] = {}
"""The mailboxes of the server, by address."""


class FolderProvider:
    def __init__(self, parts: ProviderParts) -> None:
        self._settings, self._book, self._gate = parts.settings, parts.book, parts.gate

    async def mailbox(self, account_id: UUID) -> FolderMailbox:
        return FolderMailbox(await self._opened(account_id), self._gate)

    async def mailbox_under(self, permit: Permit) -> FolderMailbox:
        return (await self.mailbox(permit.account_id)).under(permit)

    async def source(self, account_id: UUID) -> FolderSource:
        return FolderSource(await self._opened(account_id))

    async def sent_mail(self, account_id: UUID) -> FolderCarrier:
        return FolderCarrier(await self._opened(account_id), self._gate, BY_HAND)

    async def carrier(self, permit: Permit) -> FolderCarrier:
        return FolderCarrier(await self._opened(permit.account_id), self._gate, permit)

    def is_reachable(self, account: AccountView) -> bool:
        return account.email in SERVED

    async def watch(self, account: AccountView, switchboard: McpSwitchboard, tally: Tally) -> None:
        folders = await self._opened(account.id)
        await watch_within(
            self._settings,
            switchboard,
            NAME,
            account.email,
            lambda home: connector_parts(home, folders),
            0.1,
            tally=tally,
        )

    async def aclose(self) -> None:
        """Nothing stays open."""

    async def _opened(self, account_id: UUID) -> Folders:
        account, sealed = await self._book.with_secret(account_id, PASSWORD)
        assert sealed is not None
        assert self._book.open(sealed, account_id, PASSWORD) == OPENS
        return SERVED[account.email]


async def _sign_in(_settings: Settings, email: str, given: Mapping[str, str]) -> Sequence[str]:
    if email not in SERVED or given[PASSWORD] != OPENS:
        raise BadInput("password", "does not open the folders", "say it again")
    return ["A label moves the message to a folder."]


PROVIDER = Provider(FACTS, FolderProvider, fields=(AccessField(PASSWORD, "Password"),), sign_in=_sign_in)
