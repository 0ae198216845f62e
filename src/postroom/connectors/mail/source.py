"""The mailbox that a connector reads from, and its messages, whichever provider gives them."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from postroom.core.errors import MailboxError
from postroom.core.mail.headers import Headers
from postroom.core.mail.mime import ParsedMessage

Form = Literal["full", "metadata", "minimal", "raw"]
"""How much of a message is read: all of it, its headers, only its labels and date, or its bytes."""

CHUNK = 25
"""How many messages one request asks for."""


class SourceMessage(Protocol):
    """A message as the mailbox gives it. `raw` are its bytes, where those were asked for."""

    @property
    def id(self) -> str: ...
    @property
    def thread_id(self) -> str: ...
    @property
    def label_ids(self) -> frozenset[str]: ...
    @property
    def history_id(self) -> int: ...
    @property
    def internal_date(self) -> datetime: ...
    @property
    def snippet(self) -> str: ...
    @property
    def raw(self) -> bytes | None: ...

    def parsed(self) -> ParsedMessage:
        """What can be read of it. Never raises."""
        ...

    def readable_headers(self) -> Headers: ...


class ListedMessage(Protocol):
    @property
    def id(self) -> str: ...


class ListPage(Protocol):
    """A part of a list; there is more if there is a token for the next. The estimate is of the whole list."""

    @property
    def messages(self) -> Sequence[ListedMessage]: ...
    @property
    def next_page_token(self) -> str | None: ...
    @property
    def result_size_estimate(self) -> int: ...


class MailSource(Protocol):
    """One mailbox, for reading. An error of a whole request is raised; one of a message stands in its place."""

    def message_batches(self, ids: Sequence[str], /) -> AsyncGenerator[Mapping[int, SourceMessage | MailboxError]]:
        """The whole messages as they come, request by request, by their places in `ids`."""
        ...

    async def get_message(self, id: str, form: Form = "full", /) -> SourceMessage: ...

    async def get_messages(
        self, ids: Sequence[str], form: Form = "full", headers: Collection[str] = (), /
    ) -> Sequence[SourceMessage | MailboxError]:
        """In the order of the ids. `headers` are those wanted of the form `metadata`; all without."""
        ...

    def message_pages(
        self, query: str = "", label_ids: Collection[str] = (), most: int = 100, /
    ) -> AsyncGenerator[ListPage]:
        """What a search in the provider's own words finds, the newest first, at most so many to a page."""
        ...

    def for_use(self, use: Literal["live", "bulk"], /) -> "MailSource":
        """The same mailbox; bulk use takes what live use leaves of the mailbox's patience."""
        ...
