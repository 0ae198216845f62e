"""Searches in an IMAP mailbox: the same words find the same mail on Dovecot and Cyrus, also when the server lies, or
knows ASCII only.
"""

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage

import pytest

from postroom.core.errors import MailboxRefused
from postroom.mailboxes.imap import newest
from postroom.mailboxes.imap.errors import QueryRefused
from support.imap_mailbox import OpenedMailbox, opened_mailbox
from support.imap_server import ImapServer, address_of
from support.scripted_imap import Meddler


def message(name: str, **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["Message-ID"] = f"<{name}@x.example>"
    made["From"] = headers.pop("sender", "Ada <ada@example.com>")
    made["To"] = headers.pop("to", "mara@lindqvist.example")
    for header, value in headers.items():
        made[header.title()] = value
    made.set_content(f"The text of {name}.")
    return made


def filled(opened: OpenedMailbox) -> dict[str, str]:
    """The names of the messages by their ids."""
    harvest = message("harvest", subject="The harvest", cc="bob@example.net")
    greeting = message("greeting", subject="Viele Grüße", sender="Jörg Müller <joerg@example.de>")
    greeting.set_content("Ein Päckchen ist da.")
    quoted = message("quoted", subject='A "quoted" back\\slash {5} thing', to="Ops <ops@lindqvist.example>")
    attached = message("attached", subject="The picture")
    attached.add_attachment(b"\x89PNG" * 2000, maintype="image", subtype="png", filename="a.png")
    made = {
        "harvest": (harvest, "INBOX", "\\Flagged", "01-Nov-2026 10:00:00 +0000"),
        "greeting": (greeting, "INBOX", "\\Seen", "02-Nov-2026 23:30:00 +0000"),
        "quoted": (quoted, "Archive", "", "03-Nov-2026 00:30:00 +0000"),
        "attached": (attached, "Work", "Receipts", "04-Nov-2026 10:00:00 +0000"),
        "trashed": (message("trashed", subject="Old harvest"), "Trash", "", "05-Nov-2026 10:00:00 +0000"),
    }
    names: dict[str, str] = {}
    client = opened.beside.client
    client.create("Work")
    for name, (content, folder, flags, date) in made.items():
        before = set(opened.beside.ids(folder))
        assert client.append(folder, f"({flags})", f'"{date}"', content.as_bytes())[0] == "OK"
        (id,) = set(opened.beside.ids(folder)) - before
        names[id] = name
    return names


async def found(opened: OpenedMailbox, names: dict[str, str], query: str) -> str:
    return " ".join(names[id] for id in await opened.reader.find(query))


@pytest.fixture(params=[("dovecot", "all"), ("cyrus", "all"), ("dovecot", "bare")], ids=["dovecot", "cyrus", "bare"])
async def opened(request: pytest.FixtureRequest) -> AsyncGenerator[OpenedMailbox]:
    server, profile = request.param
    async with opened_mailbox(request.getfixturevalue(server), profile) as made:
        yield made


FINDS = {
    "": "attached quoted greeting harvest",
    "text of harvest": "harvest",
    "from:ada@example.com": "attached quoted harvest",
    "from:Müller": "greeting",
    "to:ops": "quoted",
    "to:bob@example.net": "harvest",
    "cc:bob": "harvest",
    "-to:ops from:ada": "attached harvest",
    'subject:"the harvest"': "harvest",
    "subject:grüße": "greeting",
    "Päckchen": "greeting",
    'subject:back\\slash "{5}"': "quoted",
    "subject:(harvest OR picture)": "attached harvest",
    "{harvest grüße} -is:starred": "greeting",
    "after:2026/11/02 before:2026/11/03": "greeting",
    "after:2026/11/03": "attached quoted",
    "after:1793662200 before:1793665800": "greeting",
    "in:inbox": "greeting harvest",
    "in:archive": "attached quoted",
    "in:trash": "trashed",
    "harvest in:anywhere": "trashed harvest",
    "in:chats": "",
    "-in:inbox -in:chats": "attached quoted",
    "label:Work": "attached",
    "label:receipts": "attached",
    "-label:receipts in:work": "",
    "is:unread": "attached quoted harvest",
    "is:starred": "harvest",
    "has:attachment": "attached",
    "-has:attachment from:ada": "quoted harvest",
    "larger:5k": "attached",
    "smaller:5k": "quoted greeting harvest",
    "rfc822msgid:quoted@x.example": "quoted",
    "rfc822msgid:quoted": "",
    "-(from:ada OR is:unread)": "greeting",
    "-(from:ada is:starred)": "attached quoted greeting",
}


async def test_the_same_words_find_the_same_mail(opened: OpenedMailbox) -> None:
    names = filled(opened)
    assert {query: await found(opened, names, query) for query in FINDS} == FINDS
    assert opened.beside.flags("INBOX") == [{"\\Flagged"}, {"\\Seen"}]


async def test_of_very_many_messages_the_newest_are_dated_first_with_the_same_result(
    opened: OpenedMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message is in a span of its own, or in one with others."""
    names, now = filled(opened), datetime.now(UTC)
    monkeypatch.setattr(newest, "MOST_AT_ONCE", 0)
    days = [(now - datetime(2026, 11, day, 12, tzinfo=UTC)) for day in (4, 3, 2)]
    for ages in (tuple(days), (), (timedelta(days=-1),)):
        monkeypatch.setattr(newest, "_AGES", ages)
        assert {query: await found(opened, names, query) for query in FINDS} == FINDS


async def test_a_search_that_lies_is_seen_through(dovecot: ImapServer) -> None:
    """The server returns every message for every search. Only words in the text are its to judge."""

    def lie(chunk: bytes) -> bytes:
        return re.sub(rb"\* SEARCH[ \d]*", b"* SEARCH 1 2 3 77", chunk)

    meddler = Meddler(answers=lie)
    async with (
        meddler.before(dovecot.port, address_of("bare")) as port,
        opened_mailbox(dovecot, "bare", port=port) as opened,
    ):
        names = filled(opened)
        believed = {query for query in FINDS if "of harvest" in query or "Päck" in query or '"{5}"' in query}
        believed |= {"{harvest grüße} -is:starred", "harvest in:anywhere"}
        truth = {query: names for query, names in FINDS.items() if query not in believed}
        assert {query: await found(opened, names, query) for query in truth} == truth


async def test_a_server_that_searches_ascii_only_has_its_messages_read(dovecot: ImapServer) -> None:
    def refuse(line: bytes) -> bytes | None:
        return line.split(b" ")[0] + b" NO [BADCHARSET (US-ASCII)] no\r\n" if b"CHARSET UTF-8" in line else None

    meddler = Meddler(replies=refuse)
    async with (
        meddler.before(dovecot.port, address_of("bare")) as port,
        opened_mailbox(dovecot, "bare", port=port) as opened,
    ):
        names = filled(opened)
        assert {query: await found(opened, names, query) for query in FINDS} == FINDS


@pytest.mark.parametrize("query", ["category:promotions", "harvest filename:pdf", "from:me", "a\r\nA1 LOGOUT", "invo*"])
async def test_a_search_that_cannot_be_expressed_is_refused_and_nothing_is_sent(
    dovecot: ImapServer, query: str
) -> None:
    meddler = Meddler()
    async with meddler.before(dovecot.port) as port, opened_mailbox(dovecot, port=port) as opened:
        with pytest.raises(QueryRefused, match="query: ") as refused:
            await opened.reader.find(query)
        assert isinstance(refused.value, MailboxRefused)
        assert not any(b"SEARCH" in each for each in meddler.heard)
