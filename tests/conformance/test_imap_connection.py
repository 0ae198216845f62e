"""The IMAP client on Dovecot and Cyrus, and on servers that answer badly."""

import asyncio
import base64
import datetime
import socket
import ssl
from collections.abc import AsyncGenerator

import pytest

from postroom.core.errors import BadInput, MailboxLater, NeedsPerson, UnreadableAnswer
from postroom.mailboxes.imap.answers import vanished_in
from postroom.mailboxes.imap.commands import command, string
from postroom.mailboxes.imap.connection import Connection
from postroom.mailboxes.imap.errors import (
    AnswerTooLarge,
    BadAnswer,
    Busy,
    CommandRefused,
    ImapSignInRefused,
    NoSuchFolder,
    NotSecure,
    ServerFailed,
    Unreachable,
)
from postroom.mailboxes.imap.folder_names import decoded, encoded
from postroom.mailboxes.imap.responses import Data
from postroom.mailboxes.imap.session import BODY_CHUNK, ImapSession
from postroom.mailboxes.imap.sign_in import Credentials, sign_in
from postroom.mailboxes.imap.wire import PROBE_AFTER_S, Endpoint
from support.imap_server import PASSWORD, ImapServer, address_of, authority, trusting
from support.patience import PATIENCE_S
from support.scripted_imap import GREETING, Script, Talk, scripted_imap

MAIL = b"From: ada@example.com\r\nMessage-ID: <one@example.com>\r\nSubject: one\r\n\r\nhello\r\n"


async def signed_in(server: ImapServer, user: str, profile: str = "all", security: str = "tls") -> ImapSession:
    port = server.tls_port if security == "tls" else server.port
    endpoint = Endpoint(address_of(profile), port, security)  # pyright: ignore[reportArgumentType]
    connection = await Connection.connect(endpoint, trusting(), PATIENCE_S)
    await sign_in(connection, Credentials(user, PASSWORD))
    return ImapSession(connection)


@pytest.fixture
async def session(imap_server: ImapServer) -> AsyncGenerator[ImapSession]:
    made = await signed_in(imap_server, imap_server.new_user())
    yield made
    await made.log_out()


@pytest.mark.parametrize("security", ["tls", "starttls", "plain"])
@pytest.mark.parametrize("profile", ["all", "bare"])
async def test_a_mailbox_is_opened(imap_server: ImapServer, security: str, profile: str) -> None:
    session = await signed_in(imap_server, imap_server.new_user(), profile, security)
    selected = await session.select(b"INBOX")
    assert (selected.exists, selected.takes_keywords, selected.is_read_only) == (0, True, False)
    assert session.offers("MOVE") == (profile == "all")
    await session.log_out()


async def test_the_life_of_a_message(session: ImapSession) -> None:
    placed = await session.append(b"INBOX", MAIL, ["\\Flagged"])
    selected = await session.select(b"INBOX")
    assert placed is not None
    validity, uid = placed
    assert (selected.uidvalidity, selected.exists) == (validity, 1)
    (found,) = await session.fetch([uid], "FLAGS RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER]")
    assert found.size == len(MAIL)
    assert found.content("BODY[HEADER]").startswith(b"From: ada")
    assert "\\Flagged" in found.flags
    assert "\\Seen" not in found.flags
    assert found.internal_date is not None
    assert abs(found.internal_date - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(hours=1)
    assert await session.search(b"HEADER MESSAGE-ID", string("<one@example.com>")) == [uid]
    assert await session.search(b"SUBJECT", string("zwei")) == []
    await session.store([uid], "+", ["\\Seen", "$Todo"])
    copied = await session.copy([uid], b"Archive")
    moved = await session.move([uid], b"Trash")
    assert copied is not None
    assert moved is not None
    assert copied.uids.keys() == moved.uids.keys() == {uid}
    assert await session.fetch([uid], "FLAGS") == []
    await session.select(b"Trash")
    (found,) = await session.fetch(moved.uids.values(), "FLAGS")
    assert found.flags >= {"\\Seen", "\\Flagged", "$Todo"}
    await session.store([found.uid], "+", ["\\Deleted"])
    await session.expunge([found.uid])
    assert (await session.status(b"Trash", "MESSAGES", "UIDNEXT")) == {"MESSAGES": 0, "UIDNEXT": found.uid + 1}


async def test_a_large_body_comes_in_parts(session: ImapSession) -> None:
    content = MAIL + b"".join(b"%060d\r\n" % number for number in range(3 * BODY_CHUNK // 62))
    placed = await session.append(b"INBOX", content)
    assert placed is not None
    await session.select(b"INBOX")
    chunks = [each async for each in session.body(placed[1], len(content))]
    assert b"".join(chunks) == content
    assert max(map(len, chunks)) == BODY_CHUNK
    (found,) = await session.fetch([placed[1]], "FLAGS")
    assert "\\Seen" not in found.flags


async def test_odd_folder_names_survive(session: ImapSession, imap_server: ImapServer) -> None:
    # Cyrus allows no quotes, backslashes and ampersands in names.
    names = ["Entwürfe/Ä 😀", *(['"Q"', "R&D", "a\\b"] if imap_server.kind == "dovecot" else [])]
    for name in names:
        await session.create(encoded(name))
    assert {decoded(each.name) for each in await session.list_folders()} >= set(names)
    special = {use for each in await session.list_folders() for use in each.attributes}
    assert special >= {"\\trash", "\\junk", "\\sent", "\\drafts", "\\archive"}
    namespace = await session.namespace()
    assert namespace is not None
    assert (namespace.prefix, namespace.separator) == (b"", "/")
    with pytest.raises(NoSuchFolder):
        await session.select(b"Nowhere")


async def test_qresync_tells_what_changed(session: ImapSession) -> None:
    assert "QRESYNC" in await session.enable("QRESYNC")
    first, second = [await session.append(b"INBOX", MAIL) for _ in range(2)]
    assert first is not None
    assert second is not None
    before = await session.select(b"INBOX")
    assert before.highest_modseq is not None
    await session.store([first[1]], "+", ["\\Flagged"])
    await session.store([second[1]], "+", ["\\Deleted"])
    await session.expunge([second[1]])
    await session.select(b"Trash")
    after = await session.select(b"INBOX", known=(before.uidvalidity, before.highest_modseq))
    assert second[1] in after.vanished
    (changed,) = after.changed
    assert (changed.uid, "\\Flagged" in changed.flags) == (first[1], True)


async def test_idle_ends_with_the_first_change_and_with_a_signal(imap_server: ImapServer) -> None:
    user = imap_server.new_user()
    watching, other = await signed_in(imap_server, user), await signed_in(imap_server, user)
    await watching.select(b"INBOX")
    waiting = asyncio.create_task(watching.connection.idle(PATIENCE_S))
    await other.append(b"INBOX", MAIL)
    async with asyncio.timeout(PATIENCE_S):
        assert "EXISTS" in {each.kind for each in await waiting}
    signal = asyncio.Event()
    signal.set()
    await watching.connection.idle(PATIENCE_S, signal)
    assert await watching.connection.idle(0) == []
    await watching.noop()
    await other.log_out()
    await watching.log_out()


async def test_a_wrong_password_needs_a_person(imap_server: ImapServer) -> None:
    connection = await Connection.connect(Endpoint("localhost", imap_server.tls_port), trusting(), PATIENCE_S)
    with pytest.raises(ImapSignInRefused, match="app password") as refused:
        await sign_in(connection, Credentials(imap_server.new_user(), "wrong-secret"))
    assert isinstance(refused.value, NeedsPerson)
    assert "wrong-secret" not in str(refused.value)
    connection.close()


async def test_a_certificate_of_nobody_we_trust_is_refused(dovecot: ImapServer) -> None:
    with pytest.raises(NotSecure, match="certificate"):
        await Connection.connect(Endpoint("localhost", dovecot.tls_port), ssl.create_default_context(), PATIENCE_S)
    with pytest.raises(NotSecure, match="certificate"):
        await Connection.connect(
            Endpoint("localhost", dovecot.port, "starttls"), ssl.create_default_context(), PATIENCE_S
        )


@pytest.mark.parametrize("fault", ["name", "expired"])
async def test_a_certificate_for_another_name_or_time_is_refused(fault: str) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        authority().issue_cert("localhost", not_after=past)
        if fault == "expired"
        else authority().issue_cert("other.example")
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.configure_cert(context)

    async def script(talk: Talk) -> None:
        talk.say(GREETING)

    async with scripted_imap(script, context) as port:
        with pytest.raises(NotSecure, match="certificate"):
            await Connection.connect(Endpoint("localhost", port), trusting(), PATIENCE_S)


def test_plain_is_for_this_machine_only() -> None:
    with pytest.raises(BadInput, match="starttls"):
        Endpoint("mail.example.com", 143, "plain")


# bad days


async def connected(port: int, security: str = "plain") -> Connection:
    endpoint = Endpoint("localhost", port, security)  # pyright: ignore[reportArgumentType]
    return await Connection.connect(endpoint, trusting(), PATIENCE_S)


def answering(*, greeting: bytes = GREETING, **answers: bytes) -> Script:
    async def script(talk: Talk) -> None:
        talk.writer.write(greeting)
        await talk.obey({name.replace("_", " ").encode(): answer for name, answer in answers.items()})

    return script


@pytest.mark.parametrize(
    ("greeting", "error"),
    [
        (b"* BYE [UNAVAILABLE] closed\r\n", ServerFailed),
        (b"* BYE [LIMIT] too many\r\n", Busy),
        (b"* BYE go away\r\n", Unreachable),
        (b"* NO\r\n", BadAnswer),
        (b"* 1 EXISTS\r\n", BadAnswer),
        (b"220 smtp.example ESMTP\r\n", BadAnswer),
        (b"P1 OK\r\n", BadAnswer),
        (b"", Unreachable),
    ],
)
async def test_a_server_that_does_not_greet_is_left(greeting: bytes, error: type[Exception]) -> None:
    async def script(talk: Talk) -> None:
        talk.writer.write(greeting)

    async with scripted_imap(script) as port:
        with pytest.raises(error):
            await connected(port)


@pytest.mark.parametrize("with_ir", [True, False], ids=["sasl-ir", "prompted"])
@pytest.mark.parametrize("secret", [" !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aZ09", "pässwörd-秘密"])
@pytest.mark.parametrize("way", ["PLAIN", "LOGIN"])
async def test_every_password_arrives_as_it_is(with_ir: bool, secret: str, way: str) -> None:
    arrived: list[str] = []

    async def script(talk: Talk) -> None:
        offers = f"AUTH=PLAIN{' SASL-IR' if with_ir else ''}" if way == "PLAIN" else "IDLE"
        talk.say(f"* OK [CAPABILITY IMAP4rev1 {offers}] hi".encode())
        tag, rest = await talk.heard()
        if way == "PLAIN":
            if not with_ir:
                talk.say(b"+ ")
                rest = await talk.reader.readline()
            arrived.append(base64.b64decode(rest.split()[-1]).decode().split("\0")[2])
        elif rest.endswith(b"}"):
            talk.say(b"+ go")
            arrived.append((await talk.reader.readline()).rstrip(b"\r\n").decode())
        else:
            quoted = rest.removeprefix(b'LOGIN "ada" "').removesuffix(b'"')
            arrived.append(quoted.replace(b'\\"', b'"').replace(b"\\\\", b"\\").decode())
        talk.say(tag + b" OK [CAPABILITY IMAP4rev1] welcome")

    async with scripted_imap(script) as port:
        connection = await connected(port)
        await sign_in(connection, Credentials("ada", secret))
        connection.close()
    assert arrived == [secret]


@pytest.mark.parametrize(("kind", "last_word"), [("xoauth2", b""), ("oauthbearer", b"AQ==")])
async def test_a_refused_token_is_explained_and_ended(kind: str, last_word: bytes) -> None:
    heard: list[bytes] = []

    async def script(talk: Talk) -> None:
        talk.say(b"* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=XOAUTH2 AUTH=OAUTHBEARER] hi")
        tag, rest = await talk.heard()
        heard.append(base64.b64decode(rest.split()[-1]))
        talk.say(b"+ eyJzdGF0dXMiOiI0MDAifQ==")
        heard.append((await talk.reader.readline()).rstrip(b"\r\n"))
        talk.say(tag + b" NO [AUTHENTICATIONFAILED] no")

    async with scripted_imap(script) as port:
        connection = await connected(port)
        with pytest.raises(ImapSignInRefused):
            await sign_in(connection, Credentials("ada@x.example", "tok", kind))  # pyright: ignore[reportArgumentType]
        connection.close()
    assert b"auth=Bearer tok\x01\x01" in heard[0]
    assert heard[1] == last_word


async def test_what_is_said_before_tls_does_not_count() -> None:
    """An answer slipped in behind STARTTLS would otherwise be read as the server's own."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority().issue_cert("localhost").configure_cert(context)

    def starting(more: bytes) -> Script:
        async def script(talk: Talk) -> None:
            talk.say(b"* OK [CAPABILITY IMAP4rev1 STARTTLS EVIL] hi")
            tag, _ = await talk.heard()
            talk.writer.write(tag + b" OK go\r\n" + more)
            if not more:
                await talk.writer.start_tls(context)
                await talk.obey({b"CAPABILITY": b"* CAPABILITY IMAP4rev1 GOOD\r\n%T OK done\r\n"})

        return script

    async with scripted_imap(starting(b"")) as port:
        connection = await connected(port, "starttls")
        assert connection.capabilities == {"IMAP4REV1", "GOOD"}
        connection.close()
    for more in (b"* CAPABILITY IMAP4rev1 EVIL\r\n", b"P2 OK half"):
        async with scripted_imap(starting(more)) as port:
            with pytest.raises(NotSecure, match="between"):
                await connected(port, "starttls")


@pytest.mark.parametrize(
    "greeting", [b"* PREAUTH [CAPABILITY IMAP4rev1 STARTTLS] in\r\n", b"* OK [CAPABILITY IMAP4rev1] no TLS here\r\n"]
)
async def test_no_downgrade_to_plain(greeting: bytes) -> None:
    async with scripted_imap(answering(greeting=greeting)) as port:
        with pytest.raises(NotSecure):
            await connected(port, "starttls")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"* 1 FETCH (UID 1 X {3}\r\nabcdef)\r\n%T OK done\r\n", UnreadableAnswer),
        (b"* 1 FETCH (UID 1 X {300}\r\nabc)\r\n%T OK done\r\n", MailboxLater),
        (b"* 1 FETCH (UID 1 X {99999999}\r\n", AnswerTooLarge),
        (b"* 1 FETCH (UID 1 X {90}\r\nabc* BYE\r\n", MailboxLater),
        (b"* 1 FETCH UID\r\n%T OK done\r\n", BadAnswer),
        (b"P99 OK done\r\n", BadAnswer),
        (b"%T OK done\r\n%T OK done\r\n", None),
        (b"* BYE [INUSE] other\r\n", Busy),
        (b"* BYE [OVERQUOTA] too much\r\n", Busy),
        (b"%T NO [LIMIT] slow down\r\n", Busy),
        (b"%T NO [OVERQUOTA] too much\r\n", Busy),
        (b"%T NO [UNAVAILABLE] later\r\n", ServerFailed),
        (b"%T BAD what\r\n", CommandRefused),
    ],
)
async def test_a_bad_answer_is_an_error_of_the_fitting_kind(answer: bytes, error: type[Exception] | None) -> None:
    async def script(talk: Talk) -> None:
        talk.writer.write(GREETING)
        tag, _ = await talk.heard()
        talk.writer.write(answer.replace(b"%T", tag))
        if error in (MailboxLater, Busy) and not answer.startswith(b"%T"):
            return
        await talk.heard()

    async with scripted_imap(script) as port:
        connection = await connected(port)
        if error is None:
            await ImapSession(connection).fetch([1], "X")
        else:
            with pytest.raises(error):
                await ImapSession(connection).fetch([1], "X")
        connection.close()


async def test_a_flood_is_refused_before_it_fills_the_memory() -> None:
    async def script(talk: Talk) -> None:
        talk.writer.write(GREETING)
        await talk.heard()
        while True:
            talk.writer.write(b"* 1 EXISTS\r\n" * 2_000)
            await talk.writer.drain()

    async with scripted_imap(script) as port:
        connection = await connected(port)
        with pytest.raises(AnswerTooLarge):
            await connection.run(command("NOOP"), most=2**20)
        assert not connection.is_open


async def test_a_byte_now_and_then_does_not_hold_us() -> None:
    """Bytes keep coming, but the command has one time limit for all of them."""

    async def script(talk: Talk) -> None:
        talk.writer.write(GREETING)
        await talk.heard()
        while True:
            talk.writer.write(b"x")
            await asyncio.sleep(0.01)

    async with scripted_imap(script) as port:
        connection = await connected(port)
        with pytest.raises(Unreachable, match="within"):
            await connection.run(command("NOOP"), limit_s=0.2)
        assert not connection.is_open


async def test_a_dead_connection_is_probed_by_tcp() -> None:
    async with scripted_imap(answering()) as port:
        connection = await connected(port)
        wire = connection._wire  # pyright: ignore[reportPrivateUsage]
        assert wire is not None
        transport = wire._transport  # pyright: ignore[reportPrivateUsage]
        assert transport is not None
        found: socket.socket = transport.get_extra_info("socket")
        probed = found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        after_s = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        connection.close()
    assert (probed, after_s) == (1, PROBE_AFTER_S)


async def test_a_canceled_command_closes_the_connection() -> None:
    heard = asyncio.Event()

    async def script(talk: Talk) -> None:
        talk.writer.write(GREETING)
        await talk.heard()
        heard.set()
        await talk.heard()

    async with scripted_imap(script) as port:
        connection = await connected(port)
        running = asyncio.create_task(connection.run(command("NOOP")))
        await heard.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        with pytest.raises(Unreachable):
            await connection.run(command("NOOP"))


async def test_what_the_check_stops_was_not_sent_and_the_connection_goes_on() -> None:
    class Stopped(Exception): ...

    def check() -> None:
        raise Stopped

    async with scripted_imap(answering()) as port:
        connection = await connected(port)
        with pytest.raises(Stopped):
            await connection.run(command("UID MOVE", b"1", b"Trash"), check=check)
        assert (await connection.run(command("NOOP"))).status.kind == "OK"
        connection.close()


def test_vanished_is_read() -> None:
    assert vanished_in([Data("VANISHED", None, (("EARLIER",), "3:5,9"))]) == (3, 4, 5, 9)
