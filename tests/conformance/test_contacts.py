"""Stored contacts: each address once per mailbox, the best known name, and pages for export."""

import pytest

from postroom.core.errors import BadInput, ConstraintBroken
from postroom.core.mail.contacts import Contact, ContactSource
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.mail.contacts import (
    EVERY_MAILBOX,
    MOST_AT_ONCE,
    ContactsKept,
    export_contacts,
    keep_contacts,
    list_contacts,
    note_correspondents,
)
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.fault_cases_registry import signed

ADA, BEN = "gmail:user:ada@example.com", "gmail:user:ben@example.com"


class Book:
    """An address book on one database and one clock."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock

    async def keep(
        self, *contacts: tuple[str, str], source: ContactSource = "vcard", of: str = EVERY_MAILBOX
    ) -> ContactsKept:
        given = [Contact(*each) for each in contacts]
        return await self.database.run(keep_contacts(given, source, of, signed(), self.clock()))

    async def rows(self) -> list[tuple[str, str, str, str]]:
        found = await self.database.run(list_contacts(1000))
        return [(each.address, each.name, each.source, each.endpoint_identity) for each in found]


@pytest.fixture
def book(database: Database, clock: ManualClock) -> Book:
    return Book(database, clock)


async def test_an_import_says_what_was_new_what_changed_and_what_was_so_before(book: Book) -> None:
    assert await book.keep(("mara@x.example", "Mara"), ("ivo@x.example", "")) == ContactsKept(2, 0, 0)
    assert await book.keep(("mara@x.example", "Mara L."), ("ivo@x.example", ""), ("uta@x.example", "")) == ContactsKept(
        1, 1, 1
    )
    assert await book.rows() == [
        ("ivo@x.example", "", "vcard", ""),
        ("mara@x.example", "Mara L.", "vcard", ""),
        ("uta@x.example", "", "vcard", ""),
    ]


async def test_an_address_that_is_there_twice_is_kept_once(book: Book) -> None:
    assert await book.keep(("mara@x.example", "One"), ("mara@x.example", "Two")) == ContactsKept(1, 0, 0)
    assert len(await book.rows()) == 1


async def test_a_name_is_never_replaced_by_none(book: Book) -> None:
    await book.keep(("mara@x.example", "Mara"))
    assert await book.keep(("mara@x.example", ""), source="csv") == ContactsKept(0, 1, 0)
    assert await book.rows() == [("mara@x.example", "Mara", "csv", "")]


async def test_someone_the_user_wrote_to_is_a_contact_in_the_one_form_of_the_address(book: Book) -> None:
    written = ["Mara@X.Example", "mara@x.example", "not an address", "nul\0@x.example", "\ud800@x.example", ""]
    assert await book.database.run(note_correspondents(written, book.clock())) == ContactsKept(1, 0, 0)
    assert await book.rows() == [("mara@x.example", "", "sent", "")]


async def test_that_the_user_wrote_to_a_contact_leaves_what_the_address_book_says(book: Book) -> None:
    await book.keep(("mara@x.example", "Mara"))
    first = book.clock()
    later = book.clock.forward(3600)
    assert await book.database.run(note_correspondents(["mara@x.example"], later)) == ContactsKept(0, 0, 1)
    [found] = await book.database.run(list_contacts(10))
    assert (found.name, found.source, found.first_seen_at, found.last_seen_at) == ("Mara", "vcard", first, later)


async def test_an_address_book_takes_over_someone_the_user_wrote_to(book: Book) -> None:
    await book.database.run(note_correspondents(["mara@x.example"], book.clock()))
    assert await book.keep(("mara@x.example", "Mara")) == ContactsKept(0, 1, 0)
    assert await book.rows() == [("mara@x.example", "Mara", "vcard", "")]


async def test_a_mailbox_is_reported_its_own_contacts_and_those_of_all(book: Book) -> None:
    await book.keep(("all@x.example", ""), ("both@x.example", ""))
    await book.keep(("own@x.example", ""), ("both@x.example", ""), of=ADA)
    await book.keep(("other@x.example", ""), of=BEN)
    assert await book.database.run(export_contacts(ADA, "", 100)) == [
        "all@x.example",
        "both@x.example",
        "own@x.example",
    ]
    assert "own@x.example" not in await book.database.run(export_contacts(BEN, "", 100))


async def test_pages_hold_every_contact_once_in_one_order_on_both_databases(book: Book) -> None:
    names = sorted(f"{name}@x.example" for name in ("a-b", "ab", "a.b", "äb", "z", "1", "a_b", "éa", "b"))
    await book.keep(*((name, "") for name in names))
    found: list[str] = []
    while page := await book.database.run(export_contacts(ADA, found[-1] if found else "", 2)):
        found += page
    assert found == names
    listed = await book.database.run(list_contacts(3))
    last = listed[-1]
    rest = await book.database.run(list_contacts(100, (last.address, last.endpoint_identity)))
    assert [each.address for each in [*listed, *rest]] == names


async def test_nobody_new_is_nothing_new(book: Book) -> None:
    before = await dump(book.database)
    assert await book.database.run(note_correspondents(["nobody"], book.clock())) == ContactsKept(0, 0, 0)
    assert await dump(book.database) == before


async def test_too_many_at_once_are_refused(book: Book) -> None:
    many = [(f"{number}@x.example", "") for number in range(MOST_AT_ONCE + 1)]
    with pytest.raises(BadInput, match="at most 5,000"):
        await book.keep(*many)
    assert await book.keep(*many[:-1]) == ContactsKept(MOST_AT_ONCE, 0, 0)


async def test_an_import_is_audited_with_its_numbers_and_without_its_addresses(book: Book) -> None:
    await book.keep(("mara@x.example", "Mara"))
    [entry] = await book.database.run(list_audit(10))
    assert (entry.action, entry.object_id) == ("contacts.add", "all")
    assert entry.after == {"source": "vcard", "added": 1, "updated": 0, "unchanged": 0}
    assert "mara" not in repr(entry)


async def test_the_schema_refuses_a_source_that_does_not_exist(book: Book) -> None:
    await book.keep(("mara@x.example", "Mara"))

    @transaction
    def break_it() -> Script[None]:
        yield Text("UPDATE contacts SET source = 'rumour'")

    with pytest.raises(ConstraintBroken):
        await book.database.run(break_it())
