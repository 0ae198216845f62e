"""Everybody the user has ever written to is known: the whole sent folder is read, once, through kills."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from postroom.mailboxes.following import sent_mail
from postroom.mailboxes.following.contact_cache import ContactCache
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.gmail.errors import ServerError
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.contacts import list_contacts
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER, raw_mail

YEARS = timedelta(days=1500)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    yield opened
    await opened.close()


@pytest.fixture
async def setup(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SentIndex]:
    with closing(SentIndex(tmp_path / "state" / "sent.db")) as opened:
        yield opened


def connector(setup: GmailSetup, index: SentIndex) -> GmailConnector:
    cache = ContactCache(setup.folder / "contacts.json", setup.board, setup.clock)
    return setup.connector(knowledge=Knowledge([OWNER], sent=index, contacts=cache.addresses))


def write_to(setup: GmailSetup, *people: str, age: timedelta = YEARS) -> None:
    for number, each in enumerate(people):
        raw = raw_mail(f"to {each}", sender=OWNER, to=each, Message_ID=f"<{number}.{each}>")
        setup.mailbox.deliver(raw, {"SENT"}, setup.mailbox.clock() - age - timedelta(seconds=number))


async def people(database: Database) -> set[str]:
    return {each.address for each in await database.run(list_contacts(1000))}


async def test_whoever_was_written_to_years_ago_is_known_when_the_past_gets_its_tiers(
    setup: GmailSetup, database: Database, index: SentIndex
):
    write_to(setup, "ida@x.example", "Pat <pat.o'brien@x.example>")
    raw = raw_mail("old", sender=OWNER, to="a@x.example", Cc="b@x.example", Bcc="Cleo <c@x.example>")
    setup.mailbox.deliver(raw, {"SENT"}, setup.mailbox.clock() - YEARS)
    mail = {name: setup.mailbox.deliver(raw_mail("hello", sender=name)).id for name in ("ida@x.example", "c@x.example")}
    mail["stranger@x.example"] = setup.mailbox.deliver(raw_mail("hello", sender="stranger@x.example")).id
    await connector(setup, index).sync()
    found = await setup.waiting()
    tiers = {name: found[id]["control"]["policy_tier"] for name, id in mail.items()}
    assert tiers == {
        "ida@x.example": "high_priority",
        "c@x.example": "high_priority",
        "stranger@x.example": "interactive",
    }
    assert await people(database) == {f"{each}@x.example" for each in ("ida", "pat.o'brien", "a", "b", "c")}


@pytest.mark.parametrize(
    "marks",
    [
        {"X_Postroom_Delivery": "0190-1"},
        {"Auto_Submitted": "auto-replied"},
        {"Auto_Submitted": "auto-generated (rule)"},
    ],
    ids=["ours", "a reply", "a forward"],
)
@pytest.mark.parametrize("age", [timedelta(), YEARS], ids=["now", "years ago"])
async def test_mail_that_a_program_sent_makes_no_contacts_and_replies_to_it_are_not_lifted(
    setup: GmailSetup, database: Database, index: SentIndex, marks: dict[str, str], age: timedelta
):
    write_to(setup, "ida@x.example", age=age)
    sent = raw_mail("away", sender=OWNER, to="stranger@x.example", Message_ID="<away@x>", **marks)
    setup.mailbox.deliver(sent, {"SENT"}, setup.mailbox.clock() - age)
    live = connector(setup, index)
    await live.sync()
    await live.sent_mail.keep_reading()
    replies = {
        "next": raw_mail("Buy now", sender="stranger@x.example"),
        "reply": raw_mail("Re: away", sender="other@x.example", In_Reply_To="<away@x>"),
        "friend": raw_mail("Re: to ida", sender="cleo@x.example", In_Reply_To="<0.ida@x.example>"),
    }
    ids = {name: setup.mailbox.deliver(raw).id for name, raw in replies.items()}
    await live.sync()
    found = await setup.waiting()
    tiers = {name: found[id]["control"]["policy_tier"] for name, id in ids.items()}
    assert tiers == {"next": "interactive", "reply": "interactive", "friend": "high_priority"}
    assert found[ids["reply"]]["payload"]["raw"]["reply_to_mine"] is False
    assert await people(database) == {"ida@x.example"}


async def test_mail_that_says_it_was_not_sent_automatically_is_the_users(
    setup: GmailSetup, database: Database, index: SentIndex
):
    raw = raw_mail("hello", sender=OWNER, to="ida@x.example", Auto_Submitted="no")
    setup.mailbox.deliver(raw, {"SENT"}, setup.mailbox.clock() - YEARS)
    await connector(setup, index).sync()
    assert await people(database) == {"ida@x.example"}


async def test_the_whole_folder_is_read_once_through_troubles_and_starts(
    setup: GmailSetup, database: Database, index: SentIndex, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sent_mail, "PAGE", 40)
    written = [f"p{number}@x.example" for number in range(130)]
    write_to(setup, *written)
    await connector(setup, index).sent_mail.read(50)
    assert index.read_count == 65, "in batches of 25, each within a page"
    setup.emulator.faults.order(Fault(503, method="messages.list"))
    with pytest.raises(ServerError):
        await connector(setup, index).sent_mail.read()
    before = setup.calls["messages.get"]
    again = connector(setup, index)
    await again.sent_mail.keep_reading()
    assert index.is_filled
    assert await people(database) == set(written)
    assert setup.calls["messages.get"] - before <= 80 + 3, "what was read before is not read again"
    assert setup.health.counters["sent.read"] == 130
    assert setup.health.counters["sent.complete"] == 1
    await connector(setup, index).sent_mail.keep_reading()
    assert setup.calls["messages.get"] - before <= 80 + 3, "and never again once it is whole"


async def test_a_message_that_gmail_never_gives_holds_up_no_other(
    setup: GmailSetup, database: Database, index: SentIndex
):
    write_to(setup, "a@x.example", "b@x.example", "c@x.example")
    broken = next(each.id for each in setup.mailbox.search() if "to b@" in each.mail.header("Subject"))
    setup.emulator.faults.order(Fault(503, path=broken, share=0.9999))
    await connector(setup, index).sent_mail.keep_reading()
    assert await people(database) == {"a@x.example", "c@x.example"}
