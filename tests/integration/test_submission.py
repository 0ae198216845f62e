"""Submission over SMTP, by real clients and raw sockets: what is accepted, what is refused, and the limits."""

import asyncio
import base64
import contextlib
import smtplib
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from postroom.core.errors import IntakeRefused
from postroom.core.metrics import SUBMISSION_ACCEPTED, SUBMISSION_CONNECTION, SUBMISSION_LOGIN
from postroom.core.outbound.limits import DailyLimits
from postroom.core.sign_in.throttle import SignInLimits
from postroom.outbound.submission.smtp_connection import SmtpSessionLimits
from postroom.outbound.submission.smtp_server import SmtpConnectionLimits
from postroom.outbound.submission.submissions import SubmissionLimits
from postroom.store.engine.database import Database
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.outbound import outbound, senders
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.fault_cases_registry import signed
from support.store.inbox_setup import select
from support.submission import (
    ADA,
    HOST,
    MESSAGE,
    PASSWORD,
    added_sender,
    client_context,
    connected,
    queued_as,
    stuffed,
    submission_server,
)

SMUGGLED = f"MAIL FROM:<{ADA}>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\n{MESSAGE.decode()}.\r\n".encode()


# What is accepted


async def test_a_mail_is_queued_byte_for_byte_below_what_the_standards_add(sqlite: Database) -> None:
    ada = await added_sender(sqlite)
    message = MESSAGE + b".dot\r\n..two\r\n\xc3\xa9 8 bit\r\n.\x01\r\nend\r\n"
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin("bob@example.net", '"b o"@example.net')
        id = queued_as(await client.deliver(message))
        kept = await server.content(id)
        received, _, rest = kept.partition(b"; ")
        assert received.startswith(f"Received: from unknown by {HOST} with ESMTPA\r\n\tid {id}".encode())
        assert rest.partition(b"\r\n")[2] == message
        shown = await server.shown(ada, id)
        assert [each.address for each in shown.recipients] == ["bob@example.net", '"b o"@example.net']
        assert (shown.state, shown.subject, shown.message_class) == ("queued", "Hello", "transactional")
        assert server.tally.counts[SUBMISSION_ACCEPTED, ("smtp",)] == 1


async def test_what_is_missing_is_added_and_what_is_private_is_taken_out(sqlite: Database) -> None:
    await added_sender(sqlite)
    head = f"From: {ADA}\r\nBcc: secret@example.net,\r\n other@example.net\r\nReturn-Path: <x@example.net>\r\n".encode()
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        id = queued_as(await client.deliver(head + b"X-Bcc: kept\r\n\r\nbcc: stays\r\n"))
        kept = await server.content(id)
        lines = kept.split(b"\r\n")
        assert lines[2].startswith(b"Date: ")
        assert lines[3] == f"Message-ID: <{id}@{HOST}>".encode()
        assert lines[4:] == [f"From: {ADA}".encode(), b"X-Bcc: kept", b"", b"bcc: stays", b""]


async def test_smtplib_logs_in_over_starttls_and_over_implicit_tls(sqlite: Database) -> None:
    await added_sender(sqlite)

    def send(starttls: int, implicit: int) -> None:
        context = client_context()
        with smtplib.SMTP("127.0.0.1", starttls, "client.example", PATIENCE_S) as client:
            vars(client)["_host"] = HOST  # what the certificate is checked for
            assert "auth" not in client.ehlo()[1].decode().lower()
            client.starttls(context=context)
            client.login(ADA, PASSWORD)
            assert client.sendmail(ADA, ["bob@example.net"], MESSAGE) == {}
        context.check_hostname = False
        with smtplib.SMTP_SSL("127.0.0.1", implicit, "client.example", timeout=PATIENCE_S, context=context) as client:
            client.login(ADA, PASSWORD, initial_response_ok=False)
            assert client.sendmail(ADA, ["bob@example.net"], MESSAGE) == {}

    async with submission_server(sqlite, plain=False) as server:
        await asyncio.to_thread(send, server.port, server.tls_port)
        assert server.tally.counts[SUBMISSION_ACCEPTED, ("smtp",)] == 2


async def test_pipelined_commands_are_answered_in_order_and_a_second_mail_follows_the_first(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        again = f"MAIL FROM:<{ADA}>\r\nRCPT TO:<nobody>\r\nRCPT TO:<c@example.net>\r\nDATA\r\n".encode()
        await client.send(stuffed(MESSAGE) + again)
        replies = [(await client.reply())[:3] for _ in range(5)]
        assert replies == ["250", "250", "553", "250", "354"]
        queued_as(await client.deliver())
        assert (await client.ask("NOOP", "RSET", "QUIT")).startswith("221")
        assert await client.closed()


async def test_content_that_arrives_byte_by_byte_is_the_same(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        for byte in stuffed(MESSAGE + b".\r\n..\r\n"):
            await client.send(bytes([byte]))
        assert (await server.content(queued_as(await client.reply()))).endswith(MESSAGE + b".\r\n..\r\n")


async def test_an_empty_message_is_refused_and_the_connection_goes_on(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        await client.send(b".\r\n")
        assert (await client.reply()).startswith("554 5.6.0 From")
        await client.envelope()
        queued_as(await client.deliver())


@pytest.mark.parametrize(
    "address",
    [
        '"a b"@example.net',
        '"a@b"@example.net',
        r'"a\"b"@example.net',
        "a!#$%&'*+/=?^_`{|}~-b@example.net",
        "a@[192.0.2.1]",
        "a@[IPv6:2001:db8::1]",
        "a+b@sub.example.net",
        "x" * 64 + "@example.net",
    ],
)
async def test_legal_addresses_in_odd_forms_survive(sqlite: Database, address: str) -> None:
    ada = await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin(address)
        id = queued_as(await client.deliver())
        assert [each.address for each in await server.recipients(ada, id)] == [address]


async def test_options_of_the_envelope_are_kept(sqlite: Database, clock: ManualClock) -> None:
    ada = await added_sender(sqlite, clock=clock)
    async with submission_server(sqlite, clock=clock) as server, connected(server.tls_port, tls=True) as client:
        await client.ask("EHLO client.example")
        await client.log_in()
        options = "SIZE=100 BODY=8BITMIME SMTPUTF8 RET=FULL ENVID=QQ+2B314 REQUIRETLS HOLDFOR=3600"
        recipient = "NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob+40example.net"
        assert (
            await client.ask(f"MAIL FROM:<{ADA}> {options}", f"RCPT TO:<bö@exämple.net> {recipient}", "DATA")
        ).startswith("354")
        id = queued_as(await client.deliver(MESSAGE.replace(b"Hello\r", "Héllo\r".encode())))
        shown = await server.shown(ada, id)
        assert shown.not_before - shown.created_at == timedelta(hours=1)
        assert [each.address for each in shown.recipients] == ["bö@xn--exmple-cua.net"]
        kept = await sqlite.run(outbound.load_content(shown.id))
        assert b"with UTF8SMTPSA" in kept


async def test_a_header_says_when_to_send_and_is_taken_out(sqlite: Database, clock: ManualClock) -> None:
    ada = await added_sender(sqlite, clock=clock)
    async with submission_server(sqlite, clock=clock) as server, connected(server.port) as client:
        await client.begin()
        head = b"X-Postroom-Send-At: 2026-11-20T08:00:00+00:00\r\nList-Unsubscribe: <mailto:x@example.com>\r\n"
        id = queued_as(await client.deliver(head + MESSAGE))
        shown = await server.shown(ada, id)
        assert (shown.not_before.day, shown.message_class) == (20, "bulk")
        assert b"X-Postroom" not in await server.content(id)
        await client.envelope()
        late = b"X-Postroom-Send-At: 2026-12-16T08:00:00+00:00\r\n" + MESSAGE
        assert (await client.deliver(late)).startswith("501 5.5.4 X-Postroom-Send-At")
        most = 30 * 86_400
        assert (await client.ask(f"MAIL FROM:<{ADA}> HOLDFOR={most + 1}")).startswith("501")
        assert (await client.ask(f"MAIL FROM:<{ADA}> HOLDUNTIL=2026-12-15T07:59:59Z")).startswith("250")


# What is refused


async def test_strangers_cannot_relay(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite, plain=False) as server, connected(server.port) as client:
        assert (await client.ask("MAIL FROM:<a@example.net>")).startswith("503")
        await client.ask("EHLO client.example")
        assert (await client.ask("MAIL FROM:<a@example.net>")).startswith("530 5.7.0 Use STARTTLS")
        assert (await client.ask("RCPT TO:<b@example.net>")).startswith("503")
        assert (await client.ask("DATA")).startswith("503")
        await client.encrypt()
        await client.ask("EHLO client.example")
        assert (await client.ask(f"MAIL FROM:<{ADA}>")).startswith("530 5.7.0 Log in")


async def test_a_password_is_not_taken_without_tls(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite, plain=False) as server, connected(server.port) as client:
        assert "AUTH" not in await client.ask("EHLO client.example")
        assert (await client.log_in()).startswith("538 5.7.11")
        await client.encrypt()
        assert (await client.log_in()).startswith("503")  # what was said before the handshake is forgotten
        assert "AUTH PLAIN LOGIN" in await client.ask("EHLO client.example")
        assert (await client.log_in()).startswith("235")


async def test_commands_before_the_handshake_are_not_taken_for_encrypted_ones(sqlite: Database) -> None:
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        await client.send(b"STARTTLS\r\nMAIL FROM:<x@example.com>\r\n")
        assert (await client.reply()).startswith("501 5.5.2")
        assert await client.closed()


@pytest.mark.parametrize(
    "head",
    [
        b"From: ceo@bank.example\r\n",
        b"From: ada@example.com, ceo@bank.example\r\nSender: ada@example.com\r\n",
        b"From: <ada@example.com> <ceo@bank.example>\r\n",
        b"From: ceo@bank.example <ada@example.com>\r\n",
        b"From: ada@example.com\r\nFrom: ceo@bank.example\r\n",
        b"From : ceo@bank.example\r\n",
        b"From: ada@example.com\r\nSender: ceo@bank.example\r\n",
        b"To: bob@example.net\r\n",
        b"From: x: ada@example.com;\r\n",
        b"From:\r\n ceo@bank.example\r\n",
        b" folded: first\r\nFrom: ada@example.com\r\n",
        b"From: ada@example.com\r\nnot a field\r\n",
        b"From: ada@example.com\r\nFr\xc3\xb6m: x\r\n",
        b"From: ada@example.com\r\nX: \xc3\xb6\r\n",
        b"From: ada@example.com\r\nX: a\0b\r\n",
    ],
)
async def test_forged_and_malformed_headers_are_refused(sqlite: Database, head: bytes) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        assert (await client.deliver(head + b"\r\nHello.\r\n"))[0] == "5"
        assert not await sqlite.run(outbound.any_mail_due(server.submissions.clock()))


async def test_the_envelope_sender_must_be_ones_own_too(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        await client.log_in()
        assert (await client.ask("MAIL FROM:<ceo@bank.example>")).startswith("553 5.7.1")
        assert (await client.ask("MAIL FROM:<>")).startswith("250")


@pytest.mark.parametrize(
    "command",
    [
        "MAIL FROM:<a@example.com> FOO=1",
        "MAIL FROM:<a@example.com> SIZE=1 SIZE=2",
        "MAIL FROM:<a@example.com> SIZE=999999999999",
        "MAIL FROM:<a@example.com> BODY=BINARYMIME",
        "MAIL FROM:<a@example.com> REQUIRETLS",
        "MAIL FROM:<a@example.com> HOLDFOR=1 HOLDUNTIL=2026-12-01T00:00:00Z",
        "MAIL FROM:<ö@example.com>",
        "MAIL FROM:a@example.com",
        "MAIL FROM:<a@example.com",
        "MAIL TO:<a@example.com>",
        "MAIL",
        "BDAT 5 LAST",
        "AUTH GSSAPI",
        "X" * 600,
    ],
)
async def test_wrong_commands_are_refused_and_the_connection_goes_on(sqlite: Database, command: str) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        await client.log_in()
        assert (await client.ask(command))[0] == "5"
        assert (await client.ask("NOOP")).startswith("250")


@pytest.mark.parametrize(
    "end",
    [b"\n.\n", b"\r\n.\n", b"\n.\r\n", b"\r.\r", b"\r\n.\r", b"\r.\r\n", b"\r\n\0.\r\n", b"\r\r\n.\r\r\n", b"\n.\r"],
)
async def test_a_mail_that_hides_a_second_one_is_refused_and_nothing_after_it_is_read(
    sqlite: Database, end: bytes
) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        await client.send(MESSAGE[:-2] + end + SMUGGLED + b".\r\n")
        assert (await client.reply())[0] == "5"
        assert not await sqlite.run(outbound.any_mail_due(server.submissions.clock()))


@pytest.mark.parametrize("line", [b"NOOP\n", b"NOOP\rNOOP\r\n", b"EHLO x\nNOOP\r\n"])
async def test_a_command_that_ends_in_anything_but_crlf_ends_the_connection(sqlite: Database, line: bytes) -> None:
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.send(line)
        assert (await client.reply()).startswith("521 5.5.2")
        assert await client.closed()
        assert server.tally.counts[SUBMISSION_CONNECTION, ("bare_line_end",)] == 1


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"x" * 3000])
async def test_other_protocols_and_endless_lines_end_the_connection(sqlite: Database, line: bytes) -> None:
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.send(line)
        assert (await client.reply())[0] in "45"
        assert await client.closed()


async def test_control_characters_and_bytes_that_are_no_text_are_refused_as_commands(sqlite: Database) -> None:
    async with submission_server(sqlite) as server, connected(server.port) as client:
        for line in (b"NOOP \0\r\n", b"NOOP \x1b[2J\r\n", b"NOOP \xff\r\n"):
            await client.send(line)
            assert (await client.reply()).startswith("500 5.5.2")


# Limits


async def test_a_message_that_is_too_large_is_refused_and_the_next_one_accepted(sqlite: Database) -> None:
    await added_sender(sqlite)
    limits = SubmissionLimits(size=10_000)
    async with submission_server(sqlite, limits=limits) as server, connected(server.port) as client:
        assert "SIZE 10000" in await client.ask("EHLO client.example")
        await client.log_in()
        assert (await client.ask(f"MAIL FROM:<{ADA}> SIZE=10001")).startswith("552 5.3.4")
        await client.envelope()
        line = b"x" * 70 + b"\r\n"
        assert (await client.deliver(MESSAGE + line * 5000)).startswith("552 5.3.4")
        await client.envelope()
        fitting = MESSAGE + line * ((10_000 - len(MESSAGE)) // len(line))
        queued_as(await client.deliver(fitting))


async def test_a_line_that_is_too_long_is_refused(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        assert (await client.deliver(MESSAGE + b"x" * 999 + b"\r\n")).startswith("554 5.6.0 message: a line")
        await client.envelope()
        queued_as(await client.deliver(MESSAGE + b"x" * 998 + b"\r\n"))


async def test_recipients_beyond_the_limit_are_refused_and_endless_ones_end_the_connection(sqlite: Database) -> None:
    ada = await added_sender(sqlite)
    limits, session = SubmissionLimits(recipients=3), SmtpSessionLimits(mistakes=5)
    async with submission_server(sqlite, limits=limits, session=session) as server, connected(server.port) as client:
        await client.begin()
        await client.deliver()
        assert (await client.envelope("a@x.example", "b@x.example", "c@x.example", "d@x.example")).startswith("354")
        id = queued_as(await client.deliver())
        assert len(await server.recipients(ada, id)) == 3
        await client.ask(f"MAIL FROM:<{ADA}>")
        replies = [await client.ask(f"RCPT TO:<r{number}@x.example>") for number in range(12)]
        assert [reply[:3] for reply in replies] == ["250"] * 3 + ["452"] * 8 + ["421"]


async def test_too_many_mistakes_end_the_connection(sqlite: Database) -> None:
    async with (
        submission_server(sqlite, session=SmtpSessionLimits(mistakes=3)) as server,
        connected(server.port) as client,
    ):
        assert [(await client.ask("WHAT"))[:3] for _ in range(4)] == ["500", "500", "500", "421"]
        assert await client.closed()


async def test_connections_beyond_the_limit_of_an_address_are_turned_away(sqlite: Database) -> None:
    limits = SmtpConnectionLimits(connections=10, per_address=2)
    async with submission_server(sqlite, connections=limits) as server:
        async with connected(server.port), connected(server.port):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert (await reader.readline()).startswith(b"421 4.7.0")
            writer.close()
        async with asyncio.timeout(PATIENCE_S):
            while server.tally.counts[SUBMISSION_CONNECTION, ("opened",)] < 3:
                with contextlib.suppress(AssertionError):
                    async with connected(server.port) as client:
                        await client.ask("NOOP")


async def test_silent_strangers_make_room_for_others(sqlite: Database) -> None:
    await added_sender(sqlite)
    limits = SmtpConnectionLimits(connections=2, per_address=10)
    async with submission_server(sqlite, connections=limits) as server, connected(server.port) as sender:
        await sender.begin()
        async with connected(server.port) as silent, connected(server.port) as third:
            assert (await silent.reply()).startswith("421")
            assert (await third.ask("NOOP")).startswith("250")
            queued_as(await sender.deliver())


async def test_a_client_that_takes_too_long_is_ended(sqlite: Database) -> None:
    await added_sender(sqlite)
    session = SmtpSessionLimits(login_s=0.2)
    async with submission_server(sqlite, session=session) as server, connected(server.port) as client:
        assert (await client.reply()).startswith("421 4.4.2")
    session = SmtpSessionLimits(message_s=0.2, login_s=PATIENCE_S)
    async with submission_server(sqlite, session=session) as server, connected(server.port) as client:
        await client.begin()
        await client.send(MESSAGE)
        assert (await client.reply()).startswith("421 4.4.2")
    assert not await sqlite.run(outbound.any_mail_due(server.submissions.clock()))


async def test_a_sender_that_is_too_fast_or_beyond_the_day_is_asked_to_come_back(sqlite: Database) -> None:
    await added_sender(sqlite)
    limits = SubmissionLimits(per_minute=1)
    async with submission_server(sqlite, limits=limits) as server, connected(server.port) as client:
        await client.begin()
        queued_as(await client.deliver())
        await client.envelope()
        assert (await client.deliver()).startswith("450 4.7.1 ada@example.com has submitted more than 1")
    async with submission_server(sqlite, daily=DailyLimits(1)) as server, connected(server.port) as client:
        await client.begin()
        assert (await client.deliver()).startswith("450 4.7.1 ada@example.com has reached the daily limit of 1")


async def test_a_sender_that_was_disabled_after_logging_in_is_refused(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        await sqlite.run(senders.disable_sender(ADA, signed(), server.submissions.clock()))
        assert (await client.deliver()).startswith("550 5.7.1")
        async with connected(server.port) as another:
            await another.ask("EHLO client.example")
            assert (await another.log_in()).startswith("535")


# Logins


async def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        answers = [await client.log_in(ADA, "wrong password 1"), await client.log_in("nobody@example.com")]
        assert answers == ["535 5.7.8 The username or the password is wrong"] * 2
        for broken in (
            "AUTH PLAIN ====",
            "AUTH PLAIN YQ==",
            f"AUTH PLAIN {base64.b64encode(b'bob' + chr(0).encode()).decode()}",
        ):
            assert (await client.ask(broken)).startswith("501")
        await client.ask("AUTH LOGIN")
        assert (await client.ask("*")).startswith("501 5.7.0")
        assert await client.ask("AUTH LOGIN") == "334 VXNlcm5hbWU6"
        assert await client.ask(base64.b64encode(ADA.upper().encode()).decode()) == "334 UGFzc3dvcmQ6"
        assert (await client.ask(base64.b64encode(PASSWORD.encode()).decode())).startswith("235")


async def test_after_too_many_failures_no_password_is_tried_until_some_time_has_passed(sqlite: Database) -> None:
    await added_sender(sqlite)
    now = [1000.0]
    limits = SignInLimits.of_window(of_name=3, of_address=100, window_s=600)
    async with submission_server(sqlite, logins=limits, monotonic=lambda: now[0]) as server:

        async def log_in(password: str) -> str:
            async with connected(server.port) as client:
                await client.ask("EHLO client.example")
                return (await client.log_in(ADA, password))[:3]

        assert [await log_in("wrong password") for _ in range(3)] == ["535"] * 3
        assert await log_in(PASSWORD) == "421"
        now[0] += 600
        assert await log_in(PASSWORD) == "235"
        assert server.tally.counts[SUBMISSION_LOGIN, ("throttled",)] == 1
        assert [await log_in("wrong password") for _ in range(3)] == ["535"] * 3
        assert await log_in(PASSWORD) == "235"  # the user's own address stays open


async def test_too_many_wrong_logins_on_one_connection_end_it(sqlite: Database) -> None:
    async with (
        submission_server(sqlite, session=SmtpSessionLimits(logins=2)) as server,
        connected(server.port) as client,
    ):
        await client.ask("EHLO client.example")
        await client.log_in()
        await client.log_in()
        assert (await client.reply()).startswith("421 4.7.0")
        assert await client.closed()


async def test_local_programs_submit_for_one_sender_without_logging_in_if_that_is_set(sqlite: Database) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite, plain=False, local=ADA) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        assert (await client.ask("MAIL FROM:<ceo@bank.example>")).startswith("553")
        await client.envelope()
        kept = await server.content(queued_as(await client.deliver()))
        assert b"with ESMTP\r\n" in kept


# When the database cannot


async def test_a_full_disk_is_a_reason_to_come_back_and_nothing_is_half_taken(sqlite: Database) -> None:
    await added_sender(sqlite)
    assert isinstance(sqlite, SqliteDatabase)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin()
        pages = sqlite._connection.execute("PRAGMA page_count").fetchall()[0][0]
        sqlite._connection.execute(f"PRAGMA max_page_count = {pages}")
        body = b"".join(b"x" * 998 + b"\r\n" for _ in range(100))
        assert (await client.deliver(MESSAGE + body)).startswith("452 4.3.1")
        assert (await sqlite.run(senders.load_sender(ADA, server.submissions.clock()))).accepted_today == 0
        sqlite._connection.execute("PRAGMA max_page_count = 1000000")
        await client.envelope()
        queued_as(await client.deliver(MESSAGE + body))


async def test_below_the_disk_reserve_nothing_is_taken(sqlite: Database) -> None:
    await added_sender(sqlite)

    def check() -> None:
        raise IntakeRefused("only 3 MiB are free", timedelta(seconds=60))

    async with submission_server(sqlite, check_room=check) as server, connected(server.port) as client:
        await client.begin()
        assert (await client.deliver()).startswith("452 4.3.1")


async def test_a_closed_database_is_a_reason_to_come_back(migrated_sqlite: Path, tmp_path: Path) -> None:
    from support.sqlite import new_sqlite

    database = await new_sqlite(tmp_path / "gone", migrated_sqlite)
    await added_sender(database)
    async with submission_server(database) as server, connected(server.port) as client:
        await client.begin()
        await database.close()
        assert (await client.deliver()).startswith("451 4.3.0")


async def test_a_server_that_stops_tells_its_clients(sqlite: Database) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with submission_server(sqlite) as server:
            client = await stack.enter_async_context(connected(server.port))
        assert (await client.reply()).startswith("421 4.3.2")
        assert await client.closed()


async def test_a_handshake_that_fails_harms_nobody(sqlite: Database) -> None:
    async with submission_server(sqlite) as server:
        context = ssl.create_default_context()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.tls_port, ssl=context, server_hostname=HOST)
        async with connected(server.tls_port, tls=True) as client:
            assert (await client.ask("NOOP")).startswith("250")


@pytest.mark.parametrize("message", [MESSAGE, f"From: {ADA}\r\n\r\nHello.\r\n".encode()])
async def test_reports_about_submitted_mail_find_it_by_its_message_id(sqlite: Database, message: bytes) -> None:
    await added_sender(sqlite)
    async with submission_server(sqlite) as server, connected(server.port) as client:
        await client.begin("bob@example.net")
        id = queued_as(await client.deliver(message))
        written = outbound.message_id_of(await server.content(id))
        ((kept,),) = await select(sqlite, "SELECT message_id FROM outbound_mail")
        assert kept == written is not None
