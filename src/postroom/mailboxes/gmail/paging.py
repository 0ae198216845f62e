"""Iterates over the pages of a list, and detects loops and endless lists."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeVar

from postroom.mailboxes.gmail.errors import EndlessPages

# A mailbox of five million messages in pages of 500.
MOST_PAGES = 10_000
# Gmail may return an empty page, but not hundreds of them in a row.
MOST_EMPTY_PAGES = 200


class ListingPage(Protocol):
    @property
    def next_page_token(self) -> str | None: ...

    def __len__(self) -> int: ...


PageT = TypeVar("PageT", bound=ListingPage)


async def pages(
    fetch: Callable[[str | None], Awaitable[PageT]], page_token: str | None = None, most: int = MOST_PAGES
) -> AsyncGenerator[PageT]:
    """Every page from `page_token` on, each fetched only when the one before was used."""
    seen = {page_token}
    empty = 0
    for _ in range(most):
        page = await fetch(page_token)
        yield page
        page_token = page.next_page_token
        if page_token is None:
            return
        if page_token in seen:
            raise EndlessPages("a page token leads back to a page that was read already")
        seen.add(page_token)
        empty = 0 if len(page) else empty + 1
        if empty >= MOST_EMPTY_PAGES:
            raise EndlessPages(f"{empty} empty pages came in a row")
    raise EndlessPages(f"more than {most} pages came")
