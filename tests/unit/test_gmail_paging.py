"""Pages of a list, and lists that never end."""

from collections.abc import Callable

import pytest

from postroom.mailboxes.gmail.errors import EndlessPages
from postroom.mailboxes.gmail.paging import MOST_EMPTY_PAGES, pages
from postroom.mailboxes.gmail.resources import MessagePage, MessageRef


class List:
    """A list whose page tokens are made to order; `size` messages on each page."""

    def __init__(self, following: Callable[[int], str | None], size: int = 1) -> None:
        self.asked: list[str | None] = []
        self._following = following
        self._size = size

    async def __call__(self, token: str | None) -> MessagePage:
        self.asked.append(token)
        messages = (MessageRef("18c2", "18c2"),) * self._size
        return MessagePage(messages, self._following(len(self.asked)), 0)


async def read(listed: List, token: str | None = None, most: int = 1000) -> int:
    return len([page async for page in pages(listed, token, most)])


async def test_pages_are_read_to_the_last() -> None:
    listed = List(lambda number: f"t{number}" if number < 3 else None)
    assert await read(listed) == 3
    assert listed.asked == [None, "t1", "t2"]


async def test_the_next_page_is_asked_for_only_when_it_is_wanted() -> None:
    listed = List(lambda number: f"t{number}")
    async for _ in pages(listed):
        break
    assert listed.asked == [None]


@pytest.mark.parametrize("length", [1, 5])
async def test_tokens_that_lead_in_a_circle_are_noticed(length: int) -> None:
    listed = List(lambda number: f"t{number % length}")
    with pytest.raises(EndlessPages, match="leads back"):
        await read(listed)
    assert len(listed.asked) <= length + 1


async def test_a_token_that_leads_back_to_where_we_began_is_noticed() -> None:
    listed = List(lambda number: "begun")
    with pytest.raises(EndlessPages, match="leads back"):
        await read(listed, "begun")
    assert listed.asked == ["begun"]


async def test_pages_that_never_end_are_given_up() -> None:
    with pytest.raises(EndlessPages, match="more than 10 pages"):
        await read(List(lambda number: f"t{number}"), most=10)


async def test_a_few_empty_pages_are_allowed_and_very_many_are_not() -> None:
    assert await read(List(lambda number: f"t{number}" if number < 100 else None, size=0)) == 100
    with pytest.raises(EndlessPages, match="empty pages"):
        await read(List(lambda number: f"t{number}", size=0))
    assert MOST_EMPTY_PAGES < 1000
