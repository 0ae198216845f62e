"""Gmail's search language, and page tokens that are valid for one list only."""

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from email.message import EmailMessage
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.mime import as_words
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
        ("older_than:1y", "old"),
        ("older_than:14m", ""),
        ("older_than:13m", "old"),
        ("newer_than:1m larger:1K", "bill"),
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


@pytest.fixture(scope="module")
def people() -> Mailbox:
    """Mail whose searches differ only in who, which words and when. Each subject is one word."""
    mailbox = Mailbox(OWNER, Random(3), clock=CLOCK)

    def deliver(subject: str, text: str = "-", sender: str = "x@y.example", at: str = "", **headers: str) -> None:
        received = datetime.fromisoformat(at) if at else CLOCK()
        mailbox.deliver(raw_mail(subject, text, sender, **headers), received_at=received)

    deliver("taxi", "Taxi receipts and taxonomies", "Zoë Müller <zoe@mail.post.example>")
    deliver("tax", "Income TAX of the café", "Ann <ann@b.example>", To="list@b.example")
    deliver("joann", "no word of it", "jo.ann@b.example", To="list@b.example", Cc=f"Mara <{OWNER}>")
    deliver("lookalike", "a domain that only begins alike", "ann@b.example.org", To="list@b.example")
    deliver("own", "sent by the owner", f"Mara <{OWNER}>", To="Ann <ann@b.example>")
    deliver("alias", "from another of her addresses", "m@alias.example", To="ann@b.example")
    deliver("forwarded", Delivered_To=OWNER, Reply_To="Desk <desk@support.example>", To="list@b.example")
    deliver("link", "Read https://docs.post.example/a-b/c?id=42&x=1, or call 040/123-456. Really long\n  dinner notes.")
    deliver("tagged", "foo_bar of R&D, C++", To="Mara <mara+shop@lindqvist.example>")
    deliver("early", at="2026-01-02T07:59:00+00:00")
    deliver("late", at="2026-01-02T08:00:00+00:00")
    mailbox.own_addresses = lambda: frozenset({OWNER, "m@alias.example"})
    return mailbox


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        # Whole words: no beginnings, no middles.
        ("tax", "tax"),
        ("TAX", "tax"),
        ("taxi", "taxi"),
        ("ax", ""),
        ("receipt", ""),
        # Accents are folded, in what is searched and in what is written.
        ("cafe", "tax"),
        ("café", "tax"),
        ("from:zoe", "taxi"),
        ("from:muller", "taxi"),
        ('from:"zoë müller"', "taxi"),
        ("from:müll", ""),
        # People: by exactly this address, or by the words of names, addresses and domains.
        ("from:ann@b.example", "tax"),
        ("from:ANN@B.Example", "tax"),
        ("from:(ann@b.example OR jo.ann@b.example)", "joann tax"),
        ("from:ann@", "lookalike joann tax"),
        ("from:ann@b", ""),
        ("from:jo.ann", "joann"),
        ("from:b.example", "lookalike joann tax"),
        ("from:@b.example", "lookalike joann tax"),
        ("from:example.org", "lookalike"),
        ("from:post.example", "taxi"),
        ("from:ost.example", ""),
        ("from:ann", "lookalike joann tax"),
        ("to:ann@b.example", "alias own"),
        ("replyto:desk@support.example", "forwarded"),
        ("replyto:desk", "forwarded"),
        # The owner.
        ("from:me", "alias own"),
        ("to:me subject:tagged", "tagged"),
        (f"to:{OWNER} subject:tagged", "tagged"),
        (f"from:{OWNER}", "own"),
        ("from:me to:ann@b.example", "alias own"),
        ("to:me", "tagged link joann taxi late early"),
        ("cc:me", "joann"),
        ("-to:me -from:me", "forwarded lookalike tax"),
        ("deliveredto:me", "forwarded"),
        # Addresses of pages and words with marks are text.
        ("https://docs.post.example/a-b/c?id=42&x=1", "link"),
        ("https://docs.post.example/a-b", "link"),
        ("https://docs.post.example/b", ""),
        ('"040/123-456"', "link"),
        ("040/123-456", "link"),
        ("hint:nothing", ""),
        ("foo", ""),
        ("foo_bar", "tagged"),
        ("r&d", "tagged"),
        ("d", ""),
        ("c++", "link tagged"),
        ("foo_bar+of", "tagged"),
        ("of+foo_bar", "tagged"),
        ('"of+foo_bar"', ""),
        ("of-foo_bar", ""),
        ('"long dinner"', "link"),
        ('"dinner long"', ""),
        ("dinner ...", "link"),
        # Dates in both orders, with slashes or hyphens, begin at midnight in PST; seconds are exact.
        ("after:2026/01/02 before:2026/01/03", "late"),
        ("after:01/02/2026 before:1/3/2026", "late"),
        ("after:2026-1-2 before:2026-01-03", "late"),
        ("after:1767340740 before:1767340800", "early"),
        ("before:2026/01/02", "early"),
    ],
)
def test_words_people_and_dates(people: Mailbox, q: str, expected: str) -> None:
    found = {message.mail.header("Subject") for message in people.search(q)}
    assert found == set(expected.split())


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("category:primary", "primary"),
        ("category:personal", "primary"),
        ("category:Promotions", "offer"),
        ("category:purchases", ""),
        ("is:read", "offer"),
        ("is:unread is:important", "primary"),
        ("is:starred OR is:important", "primary"),
        ("list:news.post.example", "offer"),
        ("list:news@post.example", "offer"),
        ("list:ews.post.example", ""),
        ("size:2000", "offer"),
        ("larger:2K", "offer"),
        ("smaller:2K", "primary"),
        ("larger:1M", ""),
        ("rfc822msgid:one@post.example", "offer"),
        ("rfc822msgid:<one@post.example>", "offer"),
        ("rfc822msgid:<neighbour-one@post.example>", ""),
        ("filename:Résumé.pdf", "offer"),
        ("filename:resume", "offer"),
        ("filename:sume", ""),
        ("in:spam", "junk"),
        ("is:spam in:anywhere", "junk"),
        ("in:spam OR is:important", "junk primary"),
        ("-in:inbox in:anywhere", "junk"),
    ],
)
def test_states_places_sizes_and_files(q: str, expected: str) -> None:
    mailbox = Mailbox(OWNER, Random(3), clock=CLOCK)
    mailbox.deliver(raw_mail("primary"), ["INBOX", "UNREAD", "IMPORTANT", "CATEGORY_PERSONAL"])
    headers = b"List-Id: News <news.post.example>\r\nMessage-ID: <one@post.example>\r\n"
    mailbox.deliver(headers + attached("offer", "Résumé.pdf"), ["INBOX", "CATEGORY_PROMOTIONS"])
    mailbox.deliver(raw_mail("junk"), ["SPAM", "UNREAD"])
    assert {message.mail.header("Subject") for message in mailbox.search(q)} == set(expected.split())


def test_a_label_is_named_with_hyphens_for_spaces_and_marks() -> None:
    mailbox = Mailbox(OWNER, Random(3), clock=CLOCK)
    for name in ("Bills & Taxes (2026)", "R&D/Plans"):
        mailbox.deliver(raw_mail(name), ["INBOX", mailbox.labels.create(name, {}).id])
    for q, expected in (
        ("label:bills-&-taxes-2026", []),
        ("label:bills---taxes--2026-", ["Bills & Taxes (2026)"]),
        ('label:"bills & taxes (2026)"', ["Bills & Taxes (2026)"]),
        ("label:r-d-plans", ["R&D/Plans"]),
        ("label:R&D/Plans", ["R&D/Plans"]),
    ):
        assert [message.mail.header("Subject") for message in mailbox.search(q)] == expected, q


def test_a_heap_of_accents_is_folded_in_linear_time() -> None:
    assert as_words("Cafe" + "\u0301\u0323" * 500_000 + " Straße ŒUVRE ﬁle") == " cafe strasse œuvre file "


@pytest.mark.parametrize(
    "q",
    [
        *("circle:friends", "has:youtube", "a AROUND 5 b", "after:yesterday", "after:13/01/2026", "before:2026/1"),
        *("newer_than:soon", "larger:huge", "is:odd", "a )", "(" * 60),
    ],
)
def test_a_search_that_is_not_understood_is_refused(mailbox: Mailbox, q: str) -> None:
    with pytest.raises(Refusal):
        list(mailbox.search(q))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='abc-:(){}" OR infromhas@.+?&~#/é', max_size=40))
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
