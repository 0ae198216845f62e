"""Search in stored mail: the same on both databases, always up to date, and safe against query syntax."""

import asyncio
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from postroom.core.errors import BadInput, NotFound, TookTooLong
from postroom.core.mail.folding import folded
from postroom.core.mail.search import read_query, words_of
from postroom.store.engine.database import Database, Dialect, Script, Text, bounded_query, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.mail.mail_views import MailRow, read_mail
from postroom.store.mail.search import NEWEST, SEARCH_LIMIT_S, check_message, search_mail
from postroom.store.mail.search_backlog import index_older_mail
from postroom.triage.act.maintenance import maintenance_tasks
from support.clocks import ManualClock
from support.mail import OWNER, keep_account, keep_mail
from support.scale import scale
from support.search import unindex


async def search(database: Database, query: str, account_id: UUID | None = None) -> list[MailRow]:
    page = await database.run(search_mail(read_query(query), database.dialect, 50, account_id=account_id))
    assert page.following is None
    return page.found


async def subjects(database: Database, query: str, account_id: UUID | None = None) -> list[str]:
    return [each.subject for each in await search(database, query, account_id)]


async def test_words_are_found_in_subject_sender_and_text_the_newest_first(database: Database, clock: ManualClock):
    await keep_mail(database, clock, 1, subject="Invoice 17", sent_at="2026-11-10T08:00:00Z")
    await keep_mail(
        database, clock, 2, subject="Second", body="The INVOICE is attached", sent_at="2026-11-12T08:00:00Z"
    )
    await keep_mail(database, clock, 3, subject="Third", sender="invoice@shop.example", sent_at="2026-11-11T08:00:00Z")
    await keep_mail(database, clock, 4, subject="Nothing of it", body="voice in")
    assert await subjects(database, "invoice") == ["Second", "Third", "Invoice 17"]
    assert await subjects(database, "invoice ATTACHED") == ["Second"]


async def test_words_end_at_any_sign(database: Database, clock: ManualClock):
    await keep_mail(
        database, clock, 1, subject="Счет №512", body="\ufeffHello from Widgets™ at 20℃", sender="a@b.example"
    )
    for query in ("512", "hello", "widgets", "20", "№512", "subject:512", '"from widgets™ at"'):
        assert await subjects(database, query) == ["Счет №512"], query


async def test_mail_with_more_words_than_an_index_takes_is_stored_and_found(database: Database, clock: ManualClock):
    """Each word is another one, of characters of four bytes."""
    name, subject, body = (
        " ".join(_rare_words(start, count)) for start, count in ((0, 60_000), (90, 60_000), (180, 66_000))
    )
    headers = [("From", f'"{name}" <ada@b.example>'), ("To", f'"{name}" <bob@b.example>')]
    await keep_mail(
        database, clock, 1, subject=f"Long {subject}", body=f"start {body}", sender="ada@b.example", headers=headers
    )
    for query in ("subject:long", "from:ada", "start"):
        assert len(await subjects(database, query)) == 1, query


def _rare_words(start: int, count: int) -> list[str]:
    return [chr(0x20000 + start + number // 1000) + chr(0x21000 + number % 1000) for number in range(count)]


FITS = [
    "budget plan",
    '"plan the budget"',
    "plan-the-budget",
    "bud*",
    "from:lindqvist",
    "from:lindqvist.example",
    "from:mara@lindqvist.example",
    "subject:quarter",
    "subject:quarter*",
    'subject:"next quarter"',
    "größe",
    "Größe",
    "GRÖßE",
    "GRÖß*",
    "GRÖSSE",
    "grosse",
    "naïve",
    "naive",
    "don't",
    "-travel",
    "budget -travel",
    '-"budget plan"',
    "-from:budget",
    "budget -subject:budget",
    'from:"Mara Lindqvist"',
    "from:mära",
    'to:"Ada King"',
    f"to:{OWNER}",
    "to:bob",
    "to:ada subject:quarter budget -travel",
    "has:attachment",
    "in:inbox",
    "in:receipts",
    "in:anywhere",
    "-in:trash",
    "is:read",
    "-label:travel",
    "it’s",
    "quoted",
    "smile",
    "हिन्दी",
    "foo_bar",
    "bar",
    "3.14",
    "label:inbox",
    "label:receipts",
    "label:RECEIPTS label:INBOX",
    "label:Label_7",
    "after:2026-11-15",
    "after:2026/11/15 before:2026-11-16",
    "before:2026-11-15T09:00:01+01:00",
    f"account:{OWNER}",
    "account:ADA@example.com budget",
]
FITS_NOT = [
    '"budget plan"',
    "bud",
    "udget",
    '"the bud*"',
    "from:budget",
    "subject:budget",
    'subject:"quarter next"',
    '"quarter we"',
    '"example next"',
    '"quarter mara"',
    '"example we"',
    "invoice and nothing",
    '"NOT" budget',
    "-budget",
    "plan -budget",
    '-"plan the budget"',
    "-from:mara",
    "plan -from:mara",
    "-to:bob",
    "bob",
    "king",
    "to:mara",
    '"lindqvist next"',
    "-has:attachment",
    "in:archive",
    "in:trash",
    "-in:inbox",
    "is:unread",
    "-label:receipts",
    'budget "OR"',
    "label:travel",
    "budget label:travel",
    "after:2026-11-16",
    "before:2026-11-15T08:00:00Z",
    "re: budget",
    "http://budget",
]


async def test_a_query_means_the_same_on_both_databases(database: Database, clock: ManualClock):
    account = await keep_account(database, clock())
    labels = [SeenLabel("INBOX", "INBOX", "system"), SeenLabel("Label_7", "Receipts", "user")]
    await database.run(sync_labels(account.id, labels, clock()))
    body = (
        "We plan the budget. Die Größe zählt, naïve. don't, it’s “quoted”, smile😀 हिन्दी foo_bar π=3.14 "
        "https://wiki.example/path?x=1"
    )
    headers = [("From", "Mára Lindqvist <mara@lindqvist.example>"), ("To", f"Ada King <{OWNER}>")]
    headers.append(("Cc", '"Böb" <bob@example.org>'))
    await keep_mail(
        database,
        clock,
        subject="Next quarter",
        body=body,
        labels=("INBOX", "Label_7"),
        headers=headers,
        files=("minutes.pdf",),
    )
    assert [query for query in FITS if not await search(database, query)] == []
    assert [query for query in FITS_NOT if await search(database, query)] == []


async def test_what_was_known_by_its_metadata_is_found_by_its_text_once_that_is_here(
    database: Database, clock: ManualClock
):
    first = await keep_mail(database, clock, subject="Your parcel", tier="metadata")
    assert await subjects(database, "parcel") == ["Your parcel"]
    assert await subjects(database, "doorstep") == []
    second = await keep_mail(database, clock, subject="Your parcel, again", body="It lies on the doorstep.")
    assert second == first
    assert await subjects(database, "doorstep") == ["Your parcel, again"]
    assert await subjects(database, "parcel -") == ["Your parcel, again"]


async def test_what_the_mailbox_has_lost_is_not_found_and_labels_are_those_of_now(
    database: Database, clock: ManualClock
):
    await keep_mail(database, clock, 1, subject="Kept")
    await keep_mail(database, clock, 2, subject="Lost")
    lost = Change("mail-2", deleted=True)
    moved = Change("mail-1", frozenset({"STARRED"}), frozenset({"INBOX"}))
    await database.run(apply_changes(f"gmail:user:{OWNER}", [lost, moved], clock()))
    assert await subjects(database, "words") == ["Kept"]
    assert await subjects(database, "label:starred") == ["Kept"]
    assert await subjects(database, "label:inbox") == []


async def test_mail_that_comes_back_over_imap_is_found_again(database: Database, clock: ManualClock):
    await keep_mail(database, clock, 1, subject="Restored", provider="imap")
    await keep_mail(database, clock, 2, subject="Lost", provider="gmail")
    gone, back = Change("mail-1", deleted=True), Change("mail-1", frozenset({"INBOX"}))
    for provider, number in (("imap", 1), ("gmail", 2)):
        for change in (gone, back):
            named = replace(change, message_id=f"mail-{number}")
            await database.run(apply_changes(f"{provider}:user:{OWNER}", [named], clock()))
    assert await subjects(database, "words") == ["Restored"]
    assert await subjects(database, "restored") == ["Restored"]


@transaction
def _remove_messages() -> Script[None]:
    yield Text("DELETE FROM messages")


async def test_removed_messages_leave_no_words_behind(database: Database, clock: ManualClock):
    await keep_mail(database, clock, 1)
    await database.run(_remove_messages())
    assert await subjects(database, "words") == []
    await keep_mail(database, clock, 2, subject="Another")
    assert await subjects(database, "words") == ["Another"]


async def test_whoever_sees_one_account_finds_nothing_of_another(database: Database, clock: ManualClock):
    mine = await keep_mail(database, clock, 1, subject="Mine")
    other = await keep_mail(database, clock, 2, subject="Other", owner="bob@example.org")
    bob = await keep_account(database, clock(), "bob@example.org")
    assert sorted(await subjects(database, "words")) == ["Mine", "Other"]
    assert await subjects(database, "words", bob.id) == ["Other"]
    assert await subjects(database, "after:2026-01-01", bob.id) == ["Other"]
    with pytest.raises(BadInput, match="is not an account here"):
        await search(database, f"account:{OWNER}", bob.id)
    assert (await database.run(read_mail(other, bob.id)))[0].subject == "Other"
    for refused in (read_mail(mine, bob.id), read_mail(new_id())):
        with pytest.raises(NotFound):
            await database.run(refused)
    with pytest.raises(NotFound):
        await database.run(check_message(mine, bob.id))


async def test_a_label_of_the_same_id_in_another_account_is_another_label(database: Database, clock: ManualClock):
    for owner, name in ((OWNER, "Receipts"), ("bob@example.org", "Travel")):
        account = await keep_account(database, clock(), owner)
        await database.run(sync_labels(account.id, [SeenLabel("Label_1", name, "user")], clock()))
        await keep_mail(database, clock, name, subject=name, labels=("Label_1",), owner=owner)
    (found,) = await search(database, "label:receipts")
    assert (found.subject, found.labels) == ("Receipts", ("Receipts",))


async def test_pages_follow_each_other_without_gap_or_repetition_also_within_one_moment(
    database: Database, clock: ManualClock
):
    for number in range(7):
        await keep_mail(database, clock, number, subject=str(number))
    for query in ("words", "after:2026-01-01"):
        asked, cursor, seen = read_query(query), NEWEST, list[str]()
        for size in (3, 3, 1):
            page = await database.run(search_mail(asked, database.dialect, 3, cursor))
            assert len(page.found) == size
            seen += [each.subject for each in page.found]
            cursor = page.following or NEWEST
        assert sorted(seen) == [str(number) for number in range(7)]
        assert cursor == NEWEST


async def test_an_excerpt_shows_the_place(database: Database, clock: ManualClock):
    await keep_mail(database, clock, body=f"{'Before. ' * 200}The needle\n is here. {'After. ' * 200}")
    (found,) = await search(database, "needle")
    assert "The needle is here." in found.excerpt
    assert len(found.excerpt) <= 200


async def test_a_long_text_is_read_up_to_its_limit(database: Database, clock: ManualClock):
    id = await keep_mail(database, clock, body="ä" * 20_001)
    mail, text = await database.run(read_mail(id))
    assert text == ("ä" * 20_000, True)
    assert ("From", "mara@lindqvist.example") in mail.headers
    assert mail.sent_at == datetime(2026, 11, 15, 8, tzinfo=UTC)


# What a migration does that builds the index anew.
EMPTIED: dict[str, tuple[str, ...]] = {
    "sqlite": ("INSERT INTO message_words (message_words) VALUES ('delete-all')", "DELETE FROM message_documents"),
    "postgres": ("UPDATE messages SET words = NULL, head_words = NULL",),
}


@transaction
def build_anew(dialect: Dialect) -> Script[None]:
    for text in EMPTIED[dialect]:
        yield Text(text)
    yield Text("INSERT INTO search_backlog (below) VALUES ('ffffffff-ffff-ffff-ffff-ffffffffffff')")


async def test_mail_that_was_stored_before_the_index_was_built_anew_is_found(database: Database, clock: ManualClock):
    await keep_mail(database, clock, 1, subject="Early bird")
    await keep_mail(database, clock, 2, subject="Early and lost")
    await database.run(apply_changes(f"gmail:user:{OWNER}", [Change("mail-2", deleted=True)], clock()))
    await database.run(build_anew(database.dialect))
    await keep_mail(database, clock, 3, subject="Late and early")
    assert await subjects(database, "early") == ["Late and early"]
    assert await is_indexing(database)
    chore = maintenance_tasks(hourly_cap=20)["search.older_mail_indexed"]
    assert await database.run(chore(clock())) == 3
    assert sorted(await subjects(database, "early words")) == ["Early bird", "Late and early"]
    assert await database.run(index_older_mail()) == 0
    assert not await is_indexing(database)
    assert len(await search(database, "after:2026-01-01")) == 2


async def is_indexing(database: Database) -> bool:
    return (await database.run(search_mail(read_query("any"), database.dialect, 1))).is_indexing


async def test_older_mail_is_indexed_in_steps_that_are_taken_up_where_they_ended(
    database: Database, second_database: Database, clock: ManualClock
):
    ids = [await keep_mail(database, clock, number, subject=str(number), body="ä" * 100) for number in range(5)]
    assert sorted(ids) == ids
    await unindex(database)
    assert await database.run(index_older_mail(2)) == 2
    assert sorted(await subjects(second_database, "äää*")) == ["3", "4"]
    moved = Change("mail-1", frozenset({"STARRED"}), frozenset())
    await database.run(apply_changes(f"gmail:user:{OWNER}", [Change("mail-0", deleted=True), moved], clock()))
    assert await second_database.run(index_older_mail(2, most_bytes=200)) == 1
    assert await second_database.run(index_older_mail(2, most_bytes=1)) == 1
    assert sorted(await subjects(database, "äää*")) == ["1", "2", "3", "4"]
    assert await second_database.run(index_older_mail(2)) == 1
    assert await database.run(index_older_mail(2)) == 0
    assert sorted(await subjects(database, "äää*")) == ["1", "2", "3", "4"]
    assert not await is_indexing(database)


async def test_older_mail_is_indexed_as_it_is_searched_for_however_it_was_typed(database: Database, clock: ManualClock):
    await keep_mail(database, clock, subject="Hello", body="Hello")
    await database.run(_typed_otherwise())
    await unindex(database)
    assert await database.run(index_older_mail()) == 1
    assert await search(database, "subject:caf\u00e9 M\u00fcnchen")


@transaction
def _typed_otherwise() -> Script[None]:
    yield Text("UPDATE messages SET subject = 'cafe\u0301', body_text = 'Mu\u0308nchen'")


async def test_new_mail_is_found_however_it_was_typed(database: Database, clock: ManualClock):
    await keep_mail(database, clock, subject="Cafe\u0301", body="in Mu\u0308nchen")
    for query in ("subject:caf\u00e9 m\u00fcnchen", "subject:cafe\u0301 mu\u0308nchen"):
        (found,) = await search(database, query)
        assert (found.subject, found.excerpt) == ("Caf\u00e9", "in M\u00fcnchen")


TYPED = [
    "Größe GRÖẞE Straße",
    "Ærø Łódź Đà Nẵng ısı œuvre",
    "Ёлка й Ελλάδα Άγιος",
    "oﬃce ﬁrſt ŉ µ ﬅ Ⓐ",
    "ΟΔΥΣΣΕΥΣ οδός МоСКва ᏣᎳᎩ თბილისი",
    "हिन्दी が 한글 東京 שָׁלוֹם",
    "e\u0301te\u0301",
    "x" + "\u0301\u0316" * 50 + "y",
]


@pytest.mark.parametrize("text", TYPED)
async def test_both_databases_fold_accents_as_queries_do(text: str, database: Database, clock: ManualClock):
    await keep_mail(database, clock, subject="Hello", body=text)
    for word in words_of(text):
        for query in (word, word.upper(), word.lower()):
            assert await search(database, query), query


@pytest.mark.parametrize(
    ("text", "query"),
    [("an oﬃce", "office"), ("an office", "oﬃce"), ("Poſt", "post"), ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"), ("МоСКва", "москва")],
)
async def test_words_are_found_in_any_case_and_without_their_ligatures(
    text: str, query: str, database: Database, clock: ManualClock
):
    await keep_mail(database, clock, subject="Hello", body=text)
    assert await search(database, query)


async def test_the_database_folds_every_letter_as_python_does(database: Database, clock: ManualClock):
    # Those of an old version of Unicode: later ones may be known to this Python alone.
    known = unicodedata.ucd_3_2_0
    cased = [each for each in map(chr, range(0x80, 0xAC00)) if known.category(each)[0] == "L" and folded(each) != each]
    id = await keep_mail(database, clock, subject="Hello")
    await database.run(_with_folded_text(" ".join(cased)))
    assert (await database.run(read_mail(id)))[1].text.split(" ") == [folded(each) for each in cased]


@transaction
def _with_folded_text(text: str) -> Script[None]:
    yield Text(f"UPDATE messages SET body_text = folded('{text}')")


async def test_older_mail_is_indexed_again_where_it_was_indexed_otherwise(database: Database, clock: ManualClock):
    await keep_mail(database, clock, subject="Hello", body="Hello")
    await unindex(database)
    await database.run(index_older_mail())
    await database.run(index_older_mail())
    await database.run(_indexed_otherwise(database.dialect))
    assert not await search(database, "hello")
    await database.run(_index_anew())
    assert await database.run(index_older_mail()) == 1
    assert len(await search(database, "hello")) == 1


@transaction
def _indexed_otherwise(dialect: Dialect) -> Script[None]:
    if dialect == "sqlite":
        yield Text("UPDATE message_words SET subject = 'x', sender = 'x', recipients = 'x', body = 'x'")
    else:
        yield Text("UPDATE messages SET words = to_tsvector('x'), head_words = to_tsvector('x')")


@transaction
def _index_anew() -> Script[None]:
    yield Text("INSERT INTO search_backlog (below) VALUES ('ffffffff-ffff-ffff-ffff-ffffffffffff')")


async def test_common_words_are_found_among_the_newest_and_rare_ones_everywhere(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("postroom.store.mail.search_in_sqlite.WINDOW", 3)
    monkeypatch.setattr("postroom.store.mail.search_in_postgres.SHORTEST_WALK", 1)
    monkeypatch.setattr("postroom.store.mail.search_in_postgres.FOUND_PER_READ", 1 / 3)
    # Numbered in another order than they were sent in.
    for number in (4, 1, 7, 2, 6, 3, 5):
        words = "common rare" if number in (1, 3) else "common"
        await keep_mail(
            database, clock, number, subject=str(number), body=words, sent_at=f"2026-11-0{number}T08:00:00Z"
        )
    for query, subjects in (
        ("common", "7654321"),
        ("rare", "31"),
        ("common -rare", "76542"),
        ("before:2026-11-04 common", "321"),
    ):
        for size in (1, 2, 5):
            cursor, seen = NEWEST, ""
            for _ in range(8):
                page = await database.run(search_mail(read_query(query), database.dialect, size, cursor))
                seen += "".join(each.subject for each in page.found)
                if page.following is None:
                    break
                cursor = page.following
            assert seen == subjects, (query, size)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"


@bounded_query(0.05)
def _endless() -> Script[None]:
    yield Text(ENDLESS)


async def test_what_has_a_time_limit_is_ended_and_nothing_after_it(database: Database, clock: ManualClock):
    await keep_mail(database, clock)
    for _ in range(5):
        with pytest.raises(TookTooLong):
            await database.run(_endless())
    for _ in range(5):
        assert await search(database, "words")
    assert search_mail(read_query("any"), database.dialect, 1).limit_s == SEARCH_LIMIT_S


HOSTILE_TEXTS = [
    "".join(f"{chr(0x10000 + each)} " for each in range(100_000)),
    "".join(f"{each:x} " for each in range(60_000)),
    "x" * 1_000_000,
    "a-" * 300_000,
    "'\"\\:&|!()<->* " * 20_000,
    "<a href='" * 50_000,
    "&" * 300_000,
    "a@b." * 200_000,
    "/a" * 300_000,
    "\u0301" * 100_000,
    "".join(map(chr, range(1, 0xD800))),
]


async def test_no_text_breaks_the_index(database: Database, clock: ManualClock):
    for number, body in enumerate(HOSTILE_TEXTS):
        subject = body[:2000].replace("\r", " ").replace("\n", " ")
        await keep_mail(database, clock, number, subject=f"marker{number} {subject}", body=f"beacon{number} {body}")
        assert len(await search(database, f"marker{number} beacon{number}")) == 1, number


SYNTAX = [
    *('"', "'", "\\", "*", ":", "(", ")", "&", "|", "!", "<->", "AND", "OR", "NOT", "NEAR(", "^", "{", "}", "-", "+"),
    *("subject", "sender", "from:", "subject:", "label:", "account:", "after:", "before:", "body:", "message_words:"),
    *("rowid", "word", "ü", "\0", "\ud800", "\u0301", "😀", "ŉ", "İ", " ", "\n", ";--", "%", "$1", "?1", "rank", ","),
]
queries = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(SYNTAX), max_size=30).map("".join), st.from_regex(r"\w+:.{0,20}")
)


@pytest.fixture(params=["sqlite", "postgres"])
def standing(request: pytest.FixtureRequest, tmp_path: Path):
    """A database with one message in it, and the loop that it lives on, for many queries."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    with asyncio.Runner() as runner:
        database = runner.run(open_database(tmp_path, url))
        runner.run(keep_mail(database, ManualClock(), subject="subject word", body="ü AND NOT word"))
        yield runner, database
        runner.run(database.close())


@settings(max_examples=scale(80, 20_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=queries)
@example(query='"' * 500)
@example(query="word" + " AND" * 40)
@example(query="a" * 100)
@example(query="a*" * 50)
@example(query="after:0001-01-01T00:00:00+23:59")
@example(query="before:9999-12-31T23:59:59-23:59")
def test_no_query_does_more_than_find_or_be_refused(standing: tuple[asyncio.Runner, Database], query: str):
    runner, database = standing
    try:
        found = runner.run(search(database, query))
    except BadInput:
        return
    assert len(found) <= 1


def test_no_spelling_of_a_word_holds_a_sign():
    """Words are written into the index's own language in several spellings; none may leave its quotes."""
    for each in map(chr, range(0x110000)):
        if each.isalnum():
            assert not set(each.upper() + each.lower() + each.capitalize()) & set("'\"\\:*&|!()<>"), hex(ord(each))


async def test_a_label_is_found_by_name_and_by_id_in_any_case_and_where_nobody_has_it_nothing_is(
    database: Database, clock: ManualClock
):
    account = await keep_account(database, clock(), OWNER)
    await database.run(sync_labels(account.id, [SeenLabel("Label_7", "Work/Plans", "user")], clock()))
    await keep_mail(database, clock, 1, subject="Plan", labels=("Label_7", "INBOX"))
    await keep_mail(database, clock, 2, subject="Other", labels=("Label_8",))
    for query in ("label:Work/Plans", "label:work/plans", "label:Label_7", "label:LABEL_7 in:inbox plan"):
        assert await subjects(database, query) == ["Plan"], query
    for query in ("label:Plans", "in:trash", "in:trash plan", "label:Work/Plans other"):
        assert await subjects(database, query) == [], query
