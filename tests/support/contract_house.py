"""A house with something in most lists, and its pages. The time stands still and ids count: it is always the same."""

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import time_machine

from postroom import __version__
from postroom.interfaces.dashboard.navigation import GROUPS
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.acting import act_on_all_mail
from support.clocks import START
from support.hostile_pages import HostileHouse
from support.page_outline import outline
from support.page_setup import ARCHIVED, BILL, BILLS, LUNCH, PARCEL, SHOPS
from support.signed_in import Pages, running_pages
from support.store.fault_cases_backfill import active
from support.store.fault_cases_delivery import add_dkim_key, struck
from support.store.fault_cases_model import end_call
from support.store.fault_cases_people import opened
from support.submission import added_sender

TEXTS = ("alder", "birch", "cedar", "dogwood", "elm")
"""Stand for every text that a person or a stranger wrote."""
FORMS = (
    "/backfill/new",
    "/connectors/imap",
    "/connectors/new",
    "/outbound/simulate",
    "/rules/import",
    "/start",
    "/start/on",
    "/rules/new",
    "/rules/starter",
    "/settings/sign-in",
    "/nowhere",
)
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
HASH = re.compile(r"\b[0-9a-f]{64}\b")


class _CountingIds:
    """Random bits that count: ids sort by when they were made, also where the time stands still."""

    def __init__(self) -> None:
        self.pool: list[tuple[int, int]] = []
        self.made = 0

    def refill(self) -> list[tuple[int, int]]:
        self.made += 1
        return [(0, self.made)]


@contextmanager
def standing_still() -> Generator[time_machine.Traveller]:
    with patch("postroom.store.engine.ids._entropy", _CountingIds()), time_machine.travel(START, tick=False) as time:
        yield time


class House(HostileHouse):
    """The same house with plain texts, and also mail that was acted on, a backfill, a sender, a strike, a session."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        super().__init__(database, data_dir, TEXTS)

    async def begin(self) -> None:
        await super().begin()
        await act_on_all_mail(self.database)
        await self.box.work()
        await self.box.rules(SHOPS, BILLS)
        await self.box.acted(PARCEL, ARCHIVED)
        await self.box.decide(BILL, LUNCH)
        setup = self.box.setup
        await struck(setup, "strike@fig.example")
        await opened(self.database, self.clock)
        for each in (add_dkim_key, end_call):
            await self.database.run(await each(setup))

    async def fill(self) -> None:
        await super().fill()
        await added_sender(self.database, "grace@alder.example", self.clock)
        backfill = await active(self.box.setup)
        self.pages += [
            *(f"/mail/{self.box.ids[each]}" for each in ("done", "asked", "kept")),
            f"/backfill/{backfill.id}",
        ]


def page_texts(folder: Path) -> dict[str, str]:
    """The outline of every page, each in a file of its own, and of the frame around them."""
    with standing_still() as time:
        return asyncio.run(_page_texts(folder, time))


async def _page_texts(folder: Path, time: time_machine.Traveller) -> dict[str, str]:
    database = await open_database(folder)
    try:
        house, found = House(database, folder), dict[str, str]()
        await house.fill()
        time.move_to(house.clock(), tick=False)
        async with running_pages(database, house.clock, folder, sign_in=False) as pages:
            places = [place.address for group in GROUPS for place in group.places]
            for address in [*places, *FORMS, *house.pages]:
                text, frame = await _visited(pages, address)
                found.setdefault("pages/frame.txt", frame)
                found[_file_name(address, set(found))] = text
        async with running_pages(database, house.clock, folder) as pages:
            found["pages/sign-in.txt"], _ = await _visited(pages, "/sign-in")
        return {name: text.replace(str(folder), "FOLDER") for name, text in found.items()}
    finally:
        await database.close()


async def _visited(pages: Pages, address: str) -> tuple[str, str]:
    """The page at an address, and the frame around it."""
    answer = await pages.visitor().get(address)
    before, main, after = _parts(answer.text)
    title = re.search(r"<title>(.*?)</title>", answer.text, re.DOTALL)
    head = f"GET {address}: {answer.status_code}, {title[1] if title else 'no title'}"
    return _plain(f"{head}\n\n{outline(main)}", pages), _plain(outline(before + after), pages)


def _parts(html: str) -> tuple[str, str, str]:
    """What is before, in and after the part of the page that is its own."""
    before, begin, rest = html.partition("<main")
    main, end, after = rest.partition("</main>")
    return (before, begin + main + end, after) if begin else ("", html, "")


def _file_name(address: str, taken: set[str]) -> str:
    """A name from the address without its ids; a second page of the same kind gets a number."""
    plain = re.sub(r"[^a-z]+", "-", ID.sub("one", address).lower()).strip("-") or "overview"
    names = (f"pages/{plain}{'' if number == 1 else f'-{number}'}.txt" for number in range(1, 100))
    return next(each for each in names if each not in taken)


def _plain(text: str, pages: Pages) -> str:
    """Without what differs from run to run."""
    found = HASH.sub("HASH", ID.sub("ID", text)).replace(f"localhost:{pages.port}", "localhost:PORT")
    return found.replace(f"Postroom {__version__}", "Postroom VERSION")
