"""The IMAP connector on Dovecot and Cyrus with a real switchboard: new mail, other programs beside it, and crashes."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import MailboxLater, PostroomError, SwitchboardUnavailable
from postroom.mailboxes.following import connector as mail_connector
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.imap import connection as imap_connection
from postroom.mailboxes.imap.account import open_session
from postroom.mailboxes.imap.following import follow, live
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.wire import Endpoint
from postroom.sources.switchboard_client import Receipt
from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.imap_server import ImapServer
from support.imap_setup import ENDPOINT, OWNER, ImapSetup, imap_setup
from support.patience import PATIENCE_S
from support.scripted_imap import Meddler, Talk, scripted_imap
from support.sqlite import new_sqlite


def mail(subject: str, to: str = OWNER, sender: str = "ada@example.com", extra: str = "") -> bytes:
    head = f"From: {sender}\r\nTo: {to}\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x.example>\r\n{extra}"
    return f"{head}Date: Tue, 17 Nov 2026 09:30:00 +0000\r\n\r\nHello {subject}\r\n".encode()


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.fixture(params=[("dovecot", "all"), ("cyrus", "all"), ("dovecot", "bare")], ids=["dovecot", "cyrus", "bare"])
async def setup(
    request: pytest.FixtureRequest, database: Database, clock: ManualClock, tmp_path: Path
) -> AsyncGenerator[ImapSetup]:
    server, profile = request.param
    async with imap_setup(request.getfixturevalue(server), database, clock, tmp_path, profile) as made:
        yield made


async def test_mail_is_handed_in_once_whoever_moves_it_and_however_often_we_start(setup: ImapSetup) -> None:
    first = setup.beside.put(mail("one"))
    setup.beside.put(mail("sent", "bob@example.com", OWNER), "Sent")
    setup.beside.put(mail("junk"), "Spam")
    connector = setup.connector()
    assert await connector.sync() == 1
    assert await connector.sync() == 0
    arrived = await setup.waiting()
    assert list(arrived) == [first]
    assert arrived[first]["control"]["idempotency_key"] == f"imap:{ENDPOINT}:{first}"
    assert arrived[first]["payload"]["raw"]["labels"] == ["INBOX", "UNREAD"]
    assert "bob@example.com" in setup.board.people
    assert setup.beside.flags() == [set()]

    # A copy in another folder is the same message; mail that leaves spam is new.
    setup.beside.put(mail("one"), "Archive")
    setup.beside.client.select("Spam")
    setup.beside.client.uid("COPY", "1:*", "INBOX")
    (junk,) = setup.beside.ids("Spam")
    again = setup.connector()
    assert await again.sync() == 1
    assert set(await setup.waiting()) == {first, junk}


async def test_mail_that_a_program_sent_makes_no_contacts_and_replies_to_it_are_not_lifted(setup: ImapSetup) -> None:
    setup.beside.put(mail("hand", "bob@example.com", OWNER), "Sent")
    marks = "X-Postroom-Delivery: 0190-1\r\nAuto-Submitted: auto-replied\r\n"
    setup.beside.put(mail("away", "stranger@example.com", OWNER, marks), "Sent")
    connector = setup.connector()
    await connector.sync()
    replies = {name: mail(f"re-{name}", extra=f"In-Reply-To: <{name}@x.example>\r\n") for name in ("hand", "away")}
    ids = {name: setup.beside.put(raw) for name, raw in replies.items()}
    await connector.sync()
    arrived = await setup.waiting()
    tiers = {name: arrived[id]["control"]["policy_tier"] for name, id in ids.items()}
    assert tiers == {"hand": "high_priority", "away": "interactive"}
    assert setup.board.people == ["bob@example.com"]


async def test_what_other_programs_do_is_reported(setup: ImapSetup) -> None:
    ids = [setup.beside.put(mail(each)) for each in ("one", "two", "three")]
    connector = setup.connector()
    assert await connector.sync() == 3
    uids = [each.uid for each in setup.beside.messages()]
    client = setup.beside.client
    client.select("INBOX")
    client.uid("STORE", str(uids[0]), "+FLAGS", "(\\Seen \\Flagged)")
    client.uid("MOVE", str(uids[1]), "Archive")
    client.select("INBOX")
    client.uid("STORE", str(uids[2]), "+FLAGS", "(\\Deleted)")
    client.uid("EXPUNGE", str(uids[2]))
    for _ in range(2):
        assert await connector.sync() == 0
    reports = {each["message_id"]: each for each in setup.board.reports}
    assert reports[ids[0]]["labels_added"] == ["STARRED"]
    assert reports[ids[0]]["labels_removed"] == ["UNREAD"]
    assert reports[ids[1]]["labels_removed"] == ["INBOX"]
    assert not reports[ids[1]]["deleted"]
    assert reports[ids[2]]["deleted"]
    setup.board.reports.clear()
    await connector.sync()
    assert setup.board.reports == []


async def test_what_happens_in_the_folder_that_was_looked_at_last_is_noticed(setup: ImapSetup) -> None:
    """A server may give the figures of an open folder as they were when it was opened."""
    connector = setup.connector()
    await connector.sync()
    for subject in ("one", "two", "three"):
        setup.beside.put(mail(subject))
        assert await connector.sync() == 1


async def test_a_round_that_fails_is_made_again_and_nothing_is_lost(setup: ImapSetup) -> None:
    ids = {setup.beside.put(mail(each)) for each in ("one", "two")}

    def fail(count: int) -> None:
        raise SwitchboardUnavailable("not now")

    setup.board.before = fail
    with pytest.raises(SwitchboardUnavailable):
        await setup.connector().sync()
    setup.board.before = lambda _count: None
    assert await setup.connector().sync() == 2
    assert set(await setup.waiting()) == ids


async def test_old_mail_that_somebody_moves_is_not_new(setup: ImapSetup) -> None:
    connector = setup.connector()
    await connector.sync()
    old = mail("old").replace(b"Tue, 17 Nov 2026", b"Wed, 1 Jan 2020")
    setup.beside.client.append("Archive", "", '"01-Jan-2020 10:00:00 +0000"', old)
    recent = setup.beside.put(mail("recent"), "Archive")
    assert await connector.sync() == 1
    assert list(await setup.waiting()) == [recent]


async def test_a_folder_made_anew_hands_in_nothing_twice(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    validity = {"now": b"111"}
    meddler = Meddler(answers=lambda chunk: re.sub(rb"UIDVALIDITY \d+", b"UIDVALIDITY " + validity["now"], chunk))
    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        first = setup.beside.put(mail("one"))
        connector = setup.connector()
        assert await connector.sync() == 1
        validity["now"] = b"222"
        second = setup.beside.put(mail("two"))
        assert await connector.sync() == 1
        assert await connector.sync() == 0
        assert set(await setup.waiting()) == {first, second}
        assert not [each for each in setup.board.reports if each["deleted"]]


async def test_mail_of_long_ago_is_found_again_in_a_folder_made_anew(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    validity = {"now": b"111"}
    meddler = Meddler(answers=lambda chunk: re.sub(rb"UIDVALIDITY \d+", b"UIDVALIDITY " + validity["now"], chunk))
    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        connector = setup.connector()
        await connector.sync()
        # As mail is that was ingested when it was new.
        old = mail("old").replace(b"Tue, 17 Nov 2026", b"Wed, 1 Jan 2020")
        setup.beside.client.append("INBOX", "", '"01-Jan-2020 10:00:00 +0000"', old)
        await connector.sync()
        validity["now"] = b"222"
        for _ in range(3):
            await connector.sync()
        assert setup.board.reports == []


async def test_connections_that_break_at_every_answer_lose_and_double_nothing(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    """The N-th chunk from the server ends the connection, for a growing N, until a round gets through."""
    left, breaks = [0], [0]

    def answer(chunk: bytes) -> bytes:
        left[0] -= 1
        if left[0] == 0:
            breaks[0] += 1
            meddler.cut()
            return chunk[: len(chunk) // 2]
        return chunk

    meddler = Meddler(answers=answer)
    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        ids = {setup.beside.put(mail(f"n{number}")) for number in range(6)}
        for number in range(1, 200):
            left[0] = number
            with suppress(MailboxLater):
                await setup.connector().sync()
                if left[0] > 0:
                    break
        assert breaks[0] > 10
        assert set(await setup.waiting()) == ids
        assert setup.beside.flags() == [set()] * 6


async def test_idle_makes_the_next_round_come_at_once(
    dovecot: ImapServer, tmp_path: Path, database: Database, clock: ManualClock
) -> None:
    async with imap_setup(dovecot, database, clock, tmp_path) as setup:
        account = setup.account()
        hints = IdleHints(account.open)
        async with asyncio.timeout(PATIENCE_S):
            await hints.wait()
            waiting = asyncio.create_task(hints.wait())
            # It may be noticed before, during or after IDLE begins; it must be noticed.
            setup.beside.put(mail("one"))
            await waiting
        hints.close()
        assert hints.problem is None


async def test_mail_that_is_nowhere_for_a_moment_is_ingested_where_it_turns_up(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    """While it is read, another program removes it from its folder, and puts it into another one."""

    def ask(line: bytes) -> bytes:
        if b"BODY.PEEK[]" in line and not removed:
            removed.append(line)
            setup.beside.client.select("INBOX")
            setup.beside.client.uid("STORE", "1:*", "+FLAGS", "(\\Deleted)")
        return line

    removed: list[bytes] = []
    async with (
        Meddler(ask=ask).before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        id = setup.beside.put(mail("one"))
        connector = setup.connector()
        assert await connector.sync() == 0
        assert removed
        setup.beside.client.select("INBOX")
        setup.beside.client.uid("STORE", "1:*", "-FLAGS", "(\\Deleted)")
        setup.beside.client.uid("MOVE", "1:*", "Archive")
        assert await connector.sync() == 1
        assert list(await setup.waiting()) == [id]


async def test_a_message_of_which_nothing_comes_is_not_ingested_as_an_empty_one(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    """So Dovecot answers when somebody removes a message while it is sent."""
    emptied: list[bytes] = []

    def answer(chunk: bytes) -> bytes:
        if b" BODY[]<0> {" not in chunk or emptied:
            return chunk
        emptied.append(chunk)
        return re.sub(rb" BODY\[\]<0> \{\d+\}\r\n.*\)\r\nP", b" BODY[]<0> NIL)\r\nP", chunk, flags=re.DOTALL)

    async with (
        Meddler(answers=answer).before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        id = setup.beside.put(mail("one"))
        assert await setup.connector().sync() == 1
        assert emptied
        assert "Hello one" in str((await setup.waiting())[id]["payload"])


async def test_mail_that_was_marked_as_deleted_is_ingested_when_it_is_restored(setup: ImapSetup) -> None:
    ids = [setup.beside.put(mail(each)) for each in ("one", "two", "three")]
    client, uid = setup.beside.client, str(setup.beside.messages()[1].uid)
    client.select("INBOX")
    client.uid("STORE", uid, "+FLAGS", "(\\Deleted)")
    connector = setup.connector()
    assert await connector.sync() == 2
    client.select("INBOX")
    client.uid("STORE", uid, "-FLAGS", "(\\Deleted)")
    assert await connector.sync() == 1
    assert set(await setup.waiting()) == set(ids)


async def test_many_new_messages_are_kept_part_by_part(setup: ImapSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MOST_NEW", 2)
    monkeypatch.setattr(live, "BATCH", 2)
    ids = {setup.beside.put(mail(f"n{number}")) for number in range(5)}

    def fail(count: int) -> None:
        if count > 2:
            raise SwitchboardUnavailable("not now")

    setup.board.before = fail
    with pytest.raises(SwitchboardUnavailable):
        await setup.connector().sync()
    setup.board.before = lambda _count: None
    assert len(await setup.waiting()) == 4
    setup.beside.client.select("INBOX")
    setup.beside.client.uid("STORE", "1", "+FLAGS", "(\\Flagged)")
    connector = setup.connector()
    assert await connector.sync() == 1
    assert await connector.sync() == 0
    assert set(await setup.waiting()) == ids
    assert [each["labels_added"] for each in setup.board.reports] == [["STARRED"]]


async def test_of_many_new_messages_those_of_contacts_are_read_first(
    setup: ImapSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one that comes while the others are read; and a reply to what was sent since the last round."""
    monkeypatch.setattr(live, "BATCH", 10)
    monkeypatch.setattr(mail_connector, "A_WHILE_S", 0.0)
    monkeypatch.setattr(mail_connector, "TIMES_AS_LONG", 0)
    setup.beside.client.create("Sent")
    setup.beside.put(mail("question", sender=OWNER), "Sent")
    news = [setup.beside.put(mail(f"n{number}", extra="List-Unsubscribe: <x>\r\n")) for number in range(40)]
    first = [
        setup.beside.put(mail("letter", sender="Ida <ida@people.example>")),
        setup.beside.put(mail("reply", extra="In-Reply-To: <question@x.example>\r\n")),
    ]
    news += [setup.beside.put(mail(f"n{number}", extra="List-Unsubscribe: <x>\r\n")) for number in range(40, 50)]
    order: list[str] = []
    ingest = setup.board.ingest_batch

    async def ingest_batch(envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        order.extend(each["event"]["external_event_id"] for each in envelopes)
        if len(order) > 10 and len(first) == 2:
            first.append(setup.beside.put(mail("late letter", sender="ida@people.example")))
        return await ingest(envelopes)

    monkeypatch.setattr(setup.board, "ingest_batch", ingest_batch)
    known = Knowledge([OWNER], sent=setup.sent, contacts=lambda: frozenset({"ida@people.example"}))
    assert await setup.connector(knowledge=known).sync() == 53
    assert sorted(order) == sorted([*news, *first])
    assert {*order[:2]} == {*first[:2]}
    assert order.index(first[2]) < 25


async def test_a_round_costs_as_much_as_what_has_changed(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    came: list[bytes] = []

    def answer(chunk: bytes) -> bytes:
        came.append(chunk)
        return chunk

    async with (
        Meddler(answers=answer).before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        connector, sizes = setup.connector(), list[int]()
        for count in (4, 80):
            for number in range(count):
                setup.beside.client.append("INBOX", "", "", mail(f"n{count}-{number}"))
            await connector.sync()
            setup.beside.client.select("INBOX")
            setup.beside.client.uid("STORE", "1", "+FLAGS", "(\\Deleted)")
            setup.beside.client.uid("STORE", "2", f"{'+' if count == 4 else '-'}FLAGS", "(\\Flagged)")
            came.clear()
            await connector.sync()
            sizes.append(sum(map(len, came)))
            await connector.sync()
    assert setup.board.reports
    assert sizes[1] < sizes[0] + 100


async def test_hints_leave_a_server_alone_that_refuses_or_falls_silent_and_return_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is too busy at first, then it never answers the end of IDLE, then it is well."""
    monkeypatch.setattr(imap_connection, "COMMAND_S", 0.05)
    connections, pauses = [0], list[float]()

    async def script(talk: Talk) -> None:
        connections[0] += 1
        if connections[0] <= 2:
            talk.say(b"* BYE [LIMIT] too many")
            return
        talk.say(b"* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=PLAIN IDLE] ready")
        opened = b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n%T OK [READ-ONLY] done\r\n"
        await talk.obey({b"EXAMINE": opened, b"IDLE": b"+ idling\r\n", b"DONE": b""})

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with scripted_imap(script) as port, asyncio.timeout(PATIENCE_S):
        endpoint = Endpoint("127.0.0.1", port, "plain")

        async def credentials() -> Credentials:
            return Credentials("ada", "secret")

        hints = IdleHints(lambda: open_session(endpoint, credentials, None, PATIENCE_S), look_s=0, sleep=sleep)
        await hints.wait()
        assert [int(each) // 300 for each in pauses] == [1, 2]
        assert hints.is_watching
        # The end of IDLE is not answered: the connection counts as lost, so that rounds look by themselves.
        await hints.wait()
        assert not hints.is_watching
        await hints.wait()
        assert hints.is_watching
        hints.close()
    assert connections[0] == 4
    assert len(pauses) == 3


async def test_what_happens_in_any_folder_is_noticed_where_one_waits_for_news(setup: ImapSetup) -> None:
    """In time with IDLE or without it, by figures or, where the server has none, by looking each time."""
    setup.beside.put(mail("one"), "Archive")
    hints = IdleHints(setup.account().open, look_s=0.05)
    async with asyncio.timeout(PATIENCE_S):
        await hints.wait()
        assert hints.is_watching
        waiting = asyncio.create_task(hints.wait())
        setup.beside.client.select("Archive")
        setup.beside.client.uid("STORE", "1", "+FLAGS", "(\\Seen)")
        await waiting
    hints.close()
    assert not hints.is_watching
