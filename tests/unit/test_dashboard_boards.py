"""The boards of a page: one reader per address and role, each visitor with their own token, few tabs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from postroom.core.visitors import PersonRole, Visitor
from postroom.interfaces.dashboard.boards import MAX_TABS, MAX_TABS_OF_ONE, TOKEN_MARKER, Boards
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.people.form_tokens import unmasked


def visit(name: str = "ada", role: PersonRole = "viewer", filters: Mapping[str, str] | None = None) -> Visit:
    return Visit("/mail", {}, filters or {}, Visitor(name, role, f"token-of-{name}"))


class Reader:
    def __init__(self) -> None:
        self.reads: list[str] = []
        self.changed = asyncio.Event()

    async def read(self, seen: Visit) -> str:
        self.reads.append(f"{seen.address} {seen.visitor.role}")
        return f"{seen.address} {TOKEN_MARKER}"

    async def changes(self) -> AsyncIterator[None]:
        yield
        await self.changed.wait()

    def boards(self, *, personal: bool = False, tabs_of: Counter[str] | None = None) -> Boards:
        return Boards(self.read, self.changes, UpdateIntervals(reread=3600), personal=personal, tabs_of=tabs_of)


async def test_each_visitor_gets_the_token_of_their_own() -> None:
    boards = Reader().boards()
    board = await boards.board(visit("ada"))
    assert unmasked(board.removeprefix("/mail ")) == b"token-of-ada"
    frames = boards.frames(visit("bob"))
    frame = (await anext(frames)).decode()
    assert unmasked(frame.removeprefix("data: /mail ").strip()) == b"token-of-bob"
    await frames.aclose()


async def test_people_of_one_role_at_one_address_share_a_reader() -> None:
    reader = Reader()
    boards = reader.boards()
    seen = [visit("ada"), visit("bob"), visit("cas", "admin"), visit("dee", filters={"q": "x"})]
    tabs = [boards.frames(each) for each in seen]
    await asyncio.gather(*map(anext, tabs))
    assert sorted(reader.reads) == ["/mail admin", "/mail viewer", "/mail?q=x viewer"]
    for tab in tabs:
        await tab.aclose()


async def test_a_personal_page_is_read_for_each_person() -> None:
    reader = Reader()
    boards = reader.boards(personal=True)
    tabs = [boards.frames(visit(name)) for name in ("ada", "bob")]
    await asyncio.gather(*map(anext, tabs))
    assert len(reader.reads) == 2
    for tab in tabs:
        await tab.aclose()


async def test_the_number_of_tabs_is_bounded_over_all_boards_of_a_page() -> None:
    boards = Reader().boards()
    tabs = [boards.frames(visit(f"v{index}", filters={"q": str(index % 3)})) for index in range(MAX_TABS)]
    await asyncio.gather(*map(anext, tabs))
    ada = visit("ada").visitor
    assert not boards.has_room_for(ada)
    await tabs.pop().aclose()
    assert boards.has_room_for(ada)
    boards.close()
    assert not boards.has_room_for(ada)
    for tab in tabs:
        await tab.aclose()


async def test_one_person_cannot_take_all_places_with_tabs_on_several_pages() -> None:
    tabs_of = Counter[str]()
    pages = [Reader().boards(tabs_of=tabs_of), Reader().boards(tabs_of=tabs_of)]
    tabs = [pages[index % 2].frames(visit("ada")) for index in range(MAX_TABS_OF_ONE)]
    await asyncio.gather(*map(anext, tabs))
    assert not any(each.has_room_for(visit("ada").visitor) for each in pages)
    assert all(each.has_room_for(visit("bob").visitor) for each in pages)
    await tabs.pop().aclose()
    assert all(each.has_room_for(visit("ada").visitor) for each in pages)
    for tab in tabs:
        await tab.aclose()


async def test_boards_that_nobody_has_open_are_forgotten() -> None:
    reader = Reader()
    boards = reader.boards()
    for index in range(200):
        await boards.board(visit(filters={"q": str(index)}))
    assert len(boards._boards) <= 33  # pyright: ignore[reportPrivateUsage]
