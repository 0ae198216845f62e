"""Gmail's search language, and page tokens that are valid for one list only."""

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from email.message import EmailMessage
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.refusal import Refusal
from support.clocks import ManualClock
from support.sandbox import OWNER, Sandbox, raw_mail, running_sandbox

CLOCK = ManualClock()


def attached(subject: str, filename: str) -> bytes:
    message = EmailMessage()
    message["From"] = "shop@store.example"
    message["Subject"] = subject
    message.set_content("see the file")
    message.add_attachment(b"%PDF" * 1000, "application", "pdf", filename=filename)
    return message.as_bytes()


@pytest.fixture(scope="module")
def mailbox() -> Mailbox:
    mailbox = Mailbox(OWNER, Random(3), clock=CLOCK)
    now = CLOCK()
    mailbox.labels.create("Work/Big Library", {})
    mailbox.deliver(
        raw_mail("old", "the tender of spring", sender="Tom <tom@old.example>"), received_at=now - timedelta(400)
    )
    mailbox.deliver(attached("bill", "Invoice-7.pdf"), ["INBOX"], now - timedelta(20))
    mailbox.deliver(
        raw_mail("dinner", "a film afterwards", Cc="Wei <wei@b.example>"), ["INBOX", "STARRED"], now - timedelta(6)
    )
    mailbox.deliver(raw_mail("movie", "the long dinner", sender="wei@b.example"), ["Label_1"], now - timedelta(5))
    mailbox.deliver(raw_mail("sent", sender=OWNER, To="Tom <tom@old.example>"), ["SENT"], now - timedelta(4))
    mailbox.deliver(raw_mail("junk"), ["SPAM"], now - timedelta(3))
    mailbox.deliver(raw_mail("gone"), ["TRASH"], now - timedelta(2))
    mailbox.deliver(raw_mail("note"), ["DRAFT"], now - timedelta(1))
    return mailbox


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("dinner", "movie dinner"),
        ("dinner OR movie", "movie dinner"),
        ("subject:dinner OR subject:old", "dinner old"),
        ("subject:(dinner OR movie)", "movie dinner"),
        ("subject:{dinner movie}", "movie dinner"),
        ("{from:wei subject:dinner}", "movie dinner"),
        ("{from:wei cc:wei} -is:starred", "movie"),
        ("from:wei OR cc:wei is:starred", "dinner"),
        ("(from:wei is:starred) OR subject:bill", "bill"),
        ("-(subject:dinner OR subject:movie) in:inbox", "bill old"),
        ("-{subject:dinner subject:movie} in:inbox", "bill old"),
        ('"long dinner"', "movie"),
        ('-"long dinner" dinner', "dinner"),
        ("to:tom", "sent"),
        ("to:wei", "dinner"),
        ("bcc:wei", ""),
        ("from:(tom@old.example)", "old"),
        ("has:attachment", "bill"),
        ("-has:attachment in:inbox", "dinner old"),
        ("filename:pdf", "bill"),
        ("filename:invoice-7", "bill"),
        ("filename:docx", ""),
        ("larger:4k", "bill"),
        ("smaller:1K subject:dinner", "dinner"),
        ("in:drafts", "note"),
        ("is:draft", "note"),
        ("in:sent", "sent"),
        ("in:trash", "gone"),
        ("in:spam OR in:trash", "gone junk"),
        ("in:anywhere older_than:2d newer_than:4d", "junk sent"),
        ("label:work-big-library", "movie"),
        ("has:userlabels", "movie"),
        ("has:nouserlabels in:inbox", "dinner bill old"),
        ("after:2026/11/09 before:2026/11/11", "movie dinner"),
        ("older:2026/01/01", "old"),
        ("newer:2026/11/13", "note"),
        ("AND dinner AND movie", "movie"),
        ("", "note sent movie dinner bill old"),
    ],
)
def test_a_search_finds(mailbox: Mailbox, q: str, expected: str) -> None:
    assert [message.mail.header("Subject") for message in mailbox.search(q)] == expected.split()


@pytest.mark.parametrize("q", ["circle:friends", "after:yesterday", "newer_than:soon", "larger:huge", "a )", "(" * 60])
def test_a_search_that_is_not_understood_is_refused(mailbox: Mailbox, q: str) -> None:
    with pytest.raises(Refusal):
        list(mailbox.search(q))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='abc-:(){}" OR infromhas', max_size=40))
def test_any_text_is_a_search_or_is_refused(q: str) -> None:
    mailbox = Mailbox(OWNER, Random(3), clock=CLOCK)
    mailbox.deliver(raw_mail())
    with contextlib.suppress(Refusal):
        list(mailbox.search(q))


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    def fill(mailbox: Mailbox) -> None:
        for number in range(7):
            mailbox.deliver(raw_mail(f"number {number}"))

    async with running_sandbox(clock, fill) as running:
        yield running


async def test_a_page_token_fits_the_list_it_came_from_and_no_other(sandbox: Sandbox) -> None:
    token = (await sandbox.json("GET", "/messages?maxResults=3"))["nextPageToken"]
    assert (await sandbox.ask("GET", f"/messages?maxResults=3&pageToken={token}")).status_code == 200
    for other in (f"/messages?q=number&pageToken={token}", f"/threads?pageToken={token}", f"/drafts?pageToken={token}"):
        answer = await sandbox.ask("GET", other)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "Invalid pageToken"


def shorter(token: str) -> str:
    return token[:-1]


def longer(token: str) -> str:
    return token + "A"


def invented(token: str) -> str:
    return "x"


@pytest.mark.parametrize("spoil", [shorter, longer, invented, str.swapcase])
async def test_a_made_up_page_token_is_refused(sandbox: Sandbox, spoil: Callable[[str], str]) -> None:
    token = (await sandbox.json("GET", "/messages?maxResults=3"))["nextPageToken"]
    assert (await sandbox.ask("GET", "/messages", params={"pageToken": spoil(token)})).status_code == 400


async def test_a_page_token_tells_nothing(sandbox: Sandbox) -> None:
    page = await sandbox.json("GET", "/messages?maxResults=3")
    assert page["messages"][2]["id"] not in page["nextPageToken"]


async def test_only_the_fields_asked_for_are_given(sandbox: Sandbox) -> None:
    page = await sandbox.json("GET", "/messages?maxResults=2&fields=messages(id),nextPageToken")
    assert page.keys() == {"messages", "nextPageToken"}
    assert [each.keys() for each in page["messages"]] == [{"id"}, {"id"}]
    message = await sandbox.json("GET", f"/messages/{page['messages'][0]['id']}?fields=payload/headers/name,labelIds")
    assert message.keys() == {"payload", "labelIds"}
    assert message["payload"]["headers"][0] == {"name": "From"}
    assert (await sandbox.ask("GET", "/messages?fields=messages(id")).status_code == 400
