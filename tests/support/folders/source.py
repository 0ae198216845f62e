"""The folders as a connector reads them."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from postroom.core.errors import MailboxError
from postroom.core.mail.categories import Category
from postroom.core.mail.headers import Headers
from postroom.core.mail.mime import ParsedMessage, parse_message
from postroom.mailboxes.following.source import Form, Use
from support.folder_mailbox import Folders


@dataclass(frozen=True, slots=True)
class FolderMessage:
    id: str
    label_ids: frozenset[str]
    internal_date: datetime
    raw: bytes
    thread_id: str = ""
    history_id: int = 0
    snippet: str = ""

    @property
    def size_estimate(self) -> int:
        return len(self.raw)

    def parsed(self) -> ParsedMessage:
        return parse_message(self.raw)

    def readable_headers(self) -> Headers:
        return self.parsed().headers


@dataclass(frozen=True, slots=True)
class Listed:
    id: str


@dataclass(frozen=True, slots=True)
class WholeList:
    messages: Sequence[Listed]
    next_page_token: None = None

    @property
    def result_size_estimate(self) -> int:
        return len(self.messages)


class FolderSource:
    """It knows no search: every query finds all received mail, and what is in it decides."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    async def get_message(self, id: str, form: Form = "full", /) -> FolderMessage:
        del form
        kept = self._folders.get(id)
        return FolderMessage(id, kept.labels, kept.came_at, kept.content)

    async def get_messages(
        self, ids: Sequence[str], form: Form = "full", headers: Collection[str] = (), /
    ) -> Sequence[FolderMessage | MailboxError]:
        del headers
        return [await self._found(id, form) for id in ids]

    async def message_batches(
        self, ids: Sequence[str], /
    ) -> AsyncGenerator[Mapping[int, FolderMessage | MailboxError]]:
        yield dict(enumerate(await self.get_messages(ids)))

    async def message_pages(
        self, query: str = "", label_ids: Collection[str] = (), most: int = 100, /
    ) -> AsyncGenerator[WholeList]:
        del query
        found = [
            id
            for id, kept in reversed(self._folders.messages.items())
            if frozenset(label_ids) <= kept.labels and not kept.labels & {"SENT", "DRAFT"}
        ]
        yield WholeList([Listed(each) for each in found[:most]])

    async def category_queries(self, categories: Sequence[Category], user_address: str, /) -> Sequence[str]:
        del categories, user_address
        return [""]

    def for_use(self, use: Use, /) -> "FolderSource":
        del use
        return self

    async def room(self, most: int, within_s: float, /) -> int:
        del within_s
        return most

    async def _found(self, id: str, form: Form) -> FolderMessage | MailboxError:
        try:
            return await self.get_message(id, form)
        except MailboxError as error:
            return error
