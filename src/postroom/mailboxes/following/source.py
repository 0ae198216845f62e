"""The mailbox that a connector reads from, and its messages, for any provider."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, Protocol

from postroom.core.errors import MailboxError
from postroom.core.mail.categories import Category
from postroom.core.mail.headers import Headers, head_of, read_head, with_line_ends
from postroom.core.mail.mime import ParsedMessage, parse_message

Form = Literal["full", "metadata", "minimal", "raw"]
"""How much of a message to read: all, its headers, only its labels and date, or its bytes."""

Use = Literal["live", "steady", "bulk"]
"""Mail that seems urgent and what a person waits for, other new mail, and all that may take its time."""

CHUNK = 25
"""How many messages one request asks for."""
LARGEST_HEAD = 256 * 1024


class SourceMessage(Protocol):
    """A message from the mailbox. `raw` are its bytes, if those were requested."""

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
    def size_estimate(self) -> int: ...
    @property
    def snippet(self) -> str: ...
    @property
    def raw(self) -> bytes | None: ...

    def parsed(self) -> ParsedMessage:
        """The parsed message, as far as possible. Never raises."""
        ...

    def readable_headers(self) -> Headers: ...


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message of which `content` was read, from its beginning. `raw` are its bytes if that is all of it."""

    id: str
    label_ids: frozenset[str]
    internal_date: datetime
    size_estimate: int
    content: bytes
    raw: bytes | None
    thread_id: str = ""
    history_id: int = 0
    snippet: str = ""

    def parsed(self) -> ParsedMessage:
        found = parse_message(self.content)
        if self.raw is not None or not self.content:
            return found
        problem = f"only the first {len(self.content):,} of its {self.size_estimate:,} bytes were read"
        return replace(found, problems=(problem, *found.problems))

    def readable_headers(self) -> Headers:
        return read_head(head_of(with_line_ends(self.content[:LARGEST_HEAD]))).headers


class ListedMessage(Protocol):
    @property
    def id(self) -> str: ...


class ListPage(Protocol):
    """A page of a list; there are more if it has a token for the next. The estimate is for the whole list."""

    @property
    def messages(self) -> Sequence[ListedMessage]: ...
    @property
    def next_page_token(self) -> str | None: ...
    @property
    def result_size_estimate(self) -> int: ...


class MailSource(Protocol):
    """One mailbox, for reading. An error of a whole request is raised; one of a message takes its place."""

    def message_batches(self, ids: Sequence[str], /) -> AsyncGenerator[Mapping[int, SourceMessage | MailboxError]]:
        """The full messages as they arrive, request by request, by their index in `ids`."""
        ...

    async def get_message(self, id: str, form: Form = "full", /) -> SourceMessage: ...

    async def get_messages(
        self, ids: Sequence[str], form: Form = "full", headers: Collection[str] = (), /
    ) -> Sequence[SourceMessage | MailboxError]:
        """The messages in the order of the ids. `headers` are those wanted for the form `metadata`; by default all."""
        ...

    def message_pages(
        self, query: str = "", label_ids: Collection[str] = (), most: int = 100, /
    ) -> AsyncGenerator[ListPage]:
        """Search, in the syntax of `core/mail/mailbox_query.py`; results newest first, at most this many per page. A
        provider may understand more; what it does not understand it refuses.
        """
        ...

    async def category_queries(self, categories: Sequence[Category], user_address: str, /) -> Sequence[str]:
        """The searches that together find all mail that may be in these categories. Each is one part: a date range may
        be put before it.
        """
        ...

    def for_use(self, use: Use, /) -> "MailSource":
        """The same mailbox for another use; steady and bulk take the quota that live leaves."""
        ...

    async def room(self, most: int, within_s: float, /) -> int:
        """How many messages, up to `most`, may be read together now for this use. Wait for it at most so long; 0 if
        none may be read by then.
        """
        ...
