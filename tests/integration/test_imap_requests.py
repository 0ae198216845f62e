"""Requests to the connector of a mailbox over IMAP: searches, counts, and messages that are ingested by their ids."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from postroom.core.mail.mailbox_requests import is_message_id
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.imap.errors import QueryRefused
from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.imap_setup import OWNER, ImapSetup, imap_setup
from support.sqlite import new_sqlite


def mail(subject: str) -> bytes:
    head = (
        f"From: Ada <ada@example.com>\r\nTo: {OWNER}\r\nSubject: {subject}\r\nMessage-ID: <{subject}+a%b@x.example>\r\n"
    )
    return f"{head}\r\nHello {subject}\r\n".encode()


@pytest.fixture(params=["dovecot", "cyrus"])
async def setup(
    request: pytest.FixtureRequest, migrated_sqlite: Path, clock: ManualClock, tmp_path: Path
) -> AsyncGenerator[ImapSetup]:
    database: Database = await new_sqlite(tmp_path, migrated_sqlite)
    async with imap_setup(request.getfixturevalue(request.param), database, clock, tmp_path) as made:
        yield made
    await database.close()


async def test_mail_is_searched_for_counted_and_ingested_on_request(setup: ImapSetup) -> None:
    harvest, lunch = setup.beside.put(mail("harvest")), setup.beside.put(mail("lunch"), "Archive")
    setup.beside.put(mail("draft"), "Drafts")
    assert is_message_id(harvest)
    connector = setup.connector()
    handlers = RequestHandlers(connector, connector.source)
    found = await handlers.search({"query": "from:ada subject:harvest"})
    assert [(each["id"], each["subject"]) for each in found["messages"]] == [(harvest, "harvest")]
    assert (await handlers.estimate({"query": "-in:drafts -in:chats"}))["messages"] == 2
    taken = await handlers.search({"query": "in:archive", "ingest": True})
    assert [(each["id"], each["end"]) for each in taken["messages"]] == [(lunch, "new")]
    asked = await handlers.ingest({"message_ids": [harvest, lunch]})
    assert [each["end"] for each in asked["messages"]] == ["new", "duplicate"]
    assert set(await setup.waiting()) == {harvest, lunch}
    assert setup.beside.flags() == [set()]


async def test_who_asks_for_what_imap_cannot_search_is_told_why(setup: ImapSetup) -> None:
    connector = setup.connector()
    handlers = RequestHandlers(connector, connector.source)
    with pytest.raises(QueryRefused, match="category: cannot be searched for here; leave it out"):
        await handlers.search({"query": "category:promotions"})
