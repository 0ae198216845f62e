"""Mail leaves by SMTP: real sockets, a server that follows a script, and what each reply means for each recipient."""

import asyncio
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from aiosmtpd.smtp import Envelope as SmtpEnvelope
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.pacing import PaceLimits
from postroom.core.outbound.transport import OutgoingRecipient, Result
from postroom.core.submission.envelope import read_rcpt
from postroom.outbound.smtp.lines import dot_stuffed, with_whole_line_ends
from postroom.outbound.smtp.options import Reuse, Timeouts
from postroom_sandbox.smtp_server import EXTENSIONS, Answers, Drop, Raw, Silence, SmtpServer
from support.provider_replies import REPLIES
from support.smtp import CONTENT, Departures, delivered, outgoing, smtp_transport, to, zone_of

ADA = "ada@example.org"
SHORT = Timeouts(*[0.3] * 12)
PHASES = {
    "connect": "connect",
    "greeting": "connect",
    "ehlo": "EHLO",
    "mail": "MAIL",
    "rcpt": "RCPT",
    "data": "DATA",
    "content": ".",
}
COMMANDS: list[tuple[str, Result]] = [
    ("connect", "deferred"),
    ("EHLO", "deferred"),
    ("MAIL", "deferred"),
    ("RCPT", "deferred"),
    ("DATA", "deferred"),
    ("content", "unknown"),
    (".", "unknown"),
]


async def outcome_with(answers: Answers, *addresses: str, extensions: Any = EXTENSIONS, **options: Any) -> Any:
    async with (
        SmtpServer(answers, extensions) as server,
        smtp_transport(zone_of(), server.port, **options) as transport,
    ):
        outcomes = await delivered(transport, *(addresses or (ADA,)))
        return outcomes if addresses else outcomes[0]


async def test_what_arrives_is_byte_for_byte_what_was_given():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        leaving = Departures()
        [outcome] = await delivered(transport, "Ada.L@Example.ORG", leaving=leaving)
    [mail] = server.received
    assert (mail.sender, mail.recipients, mail.content) == ("mara@sender.example", ("Ada.L@example.org",), CONTENT)
    assert (outcome.result, outcome.reply.code, outcome.reply.enhanced) == ("sent", 250, "2.0.0")
    assert outcome.reply.host == "mx.example.org[127.0.0.1]"
    assert leaving.noted == [(0,)]
    assert server.commands[0] == "EHLO out.sender.example"


class Noting:
    """A handler of aiosmtpd that keeps what it is given."""

    def __init__(self) -> None:
        self.mails: list[tuple[str | None, list[str], bytes]] = []

    async def handle_DATA(self, server: SMTP, session: Any, envelope: SmtpEnvelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 2.0.0 Ok"


async def test_another_server_understands_us():
    noting = Noting()
    listening = await asyncio.get_running_loop().create_server(
        lambda: SMTP(noting, hostname="mx.example.org", enable_SMTPUTF8=True), "127.0.0.1", 0
    )
    async with listening, smtp_transport(zone_of(), listening.sockets[0].getsockname()[1]) as transport:
        for content in (CONTENT, "Subject: ü\r\n\r\n.\r\n..\r\n".encode()):
            assert (await delivered(transport, ADA, "b@example.org", mail=outgoing(content)))[1].result == "sent"
    assert noting.mails[0] == ("mara@sender.example", [ADA, "b@example.org"], CONTENT)
    assert noting.mails[1][2] == "Subject: ü\r\n\r\n.\r\n..\r\n".encode()


@pytest.mark.parametrize("extensions", [EXTENSIONS, ("8BITMIME",)], ids=["pipelined", "step by step"])
@pytest.mark.parametrize(("command", "result"), COMMANDS)
async def test_a_connection_dropped_at_any_command(command: str, result: Result, extensions: tuple[str, ...]):
    outcome = await outcome_with({command: Drop()}, extensions=extensions)
    assert outcome.result == result
    assert outcome.reply.code is None


@pytest.mark.parametrize(("command", "result"), COMMANDS)
async def test_a_server_that_falls_silent(command: str, result: Result):
    outcome = await outcome_with({command: Silence()}, timeouts=SHORT)
    assert outcome.result == result
    assert outcome.reply.text == "no complete reply came within 0.3 s"


@pytest.mark.parametrize(("command", "result"), COMMANDS)
async def test_a_reply_that_comes_byte_by_byte_has_one_deadline(command: str, result: Result):
    outcome = await outcome_with({command: Raw(b"250-" + b"x" * 4000, every_s=0.01)}, timeouts=SHORT)
    assert outcome.result == result


@pytest.mark.parametrize("content", [b"250-more\r\n", b"x" * 1000], ids=["lines", "one line"])
@pytest.mark.parametrize(("command", "result"), [each for each in COMMANDS if each[0] != "content"])
async def test_a_reply_without_end_is_cut_off(command: str, result: Result, content: bytes):
    outcome = await outcome_with({command: Raw(content, for_ever=True)})
    assert outcome.result == result
    assert "more than" in outcome.reply.text or "without end" in outcome.reply.text or "no line" in outcome.reply.text


async def test_a_connection_that_ends_before_the_final_dot_was_sent_leaves_no_doubt():
    async with SmtpServer({"content": Drop()}) as server, smtp_transport(zone_of(), server.port) as transport:
        leaving = Departures()
        large = outgoing(CONTENT + b"x" * 998 + b"\r\n" + (b"y" * 78 + b"\r\n") * 200_000)
        [outcome] = await delivered(transport, ADA, mail=large, leaving=leaving)
    assert (outcome.result, leaving.noted) == ("deferred", [(0,)])


async def test_a_refusal_in_the_middle_of_the_content_decides():
    async with (
        SmtpServer({"content": "552 5.3.4 too big", ".": Drop()}) as server,
        smtp_transport(zone_of(), server.port) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.bounce_class) == ("rejected", "content")


async def test_what_providers_say_at_each_command():
    unhurried = PaceLimits(first_rest_s=0, longest_rest_s=0)
    async with (
        SmtpServer() as server,
        smtp_transport(zone_of(), server.port, pace=unhurried, reuse=Reuse(messages=1)) as transport,
    ):
        for provider in REPLIES:
            server.answers = {PHASES[provider.phase]: provider.reply}
            [outcome] = await delivered(transport, ADA)
            assert (outcome.result, outcome.bounce_class) == (provider.result, provider.bounce_class), provider.reply


@pytest.mark.parametrize("extensions", [EXTENSIONS, ("8BITMIME",)], ids=["pipelined", "step by step"])
async def test_each_recipient_has_an_outcome_of_its_own(extensions: tuple[str, ...]):
    answers = {"RCPT TO:<b@": "550 5.1.1 no such user", "RCPT TO:<c@": "452 4.2.2 mailbox full"}
    leaving = Departures()
    async with SmtpServer(answers, extensions) as server, smtp_transport(zone_of(), server.port) as transport:
        outcomes = await delivered(transport, *(f"{name}@example.org" for name in "abcd"), leaving=leaving)
    assert [each.result for each in outcomes] == ["sent", "bounced", "deferred", "sent"]
    assert leaving.noted == [(0, 3)]
    assert server.received[0].recipients == ("a@example.org", "d@example.org")


async def test_a_decision_stands_although_the_connection_is_lost_afterwards():
    answers = {"RCPT TO:<a@": "550 5.1.1 no such user", "RCPT TO:<b@": Drop()}
    outcomes = await outcome_with(answers, "a@example.org", "b@example.org")
    assert [each.result for each in outcomes] == ["bounced", "deferred"]


@pytest.mark.parametrize("data", ["554 5.5.1 no valid recipients", "354 go on"])
async def test_nothing_leaves_if_no_recipient_is_accepted(data: str):
    leaving = Departures()
    answers = {"RCPT": "550 5.1.1 no", "DATA": data, ".": "554 5.5.1 no valid recipients"}
    async with SmtpServer(answers) as server, smtp_transport(zone_of(), server.port) as transport:
        outcomes = await delivered(transport, ADA, leaving=leaving)
        again = await delivered(transport, ADA, leaving=leaving)
    assert [each.result for each in outcomes + again] == ["bounced", "bounced"]
    assert (leaving.noted, server.received) == ([], [])


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_a_reply_too_many_is_not_taken_for_a_receipt(command: str):
    answer = Raw(b"354 go on\r\n250 2.0.0 taken\r\n" if command == "DATA" else b"250 Ok\r\n250 Ok\r\n")
    async with SmtpServer({command: answer}) as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.text, server.received) == ("deferred", "its replies came out of turn", [])


async def test_a_server_that_reads_too_slowly_is_given_up():
    large = outgoing(CONTENT + (b"y" * 78 + b"\r\n") * 200_000)
    async with (
        SmtpServer({"content": Silence(reads=False)}) as server,
        smtp_transport(zone_of(), server.port, timeouts=Timeouts(block=0.3)) as transport,
    ):
        [outcome] = await delivered(transport, ADA, mail=large)
    assert (outcome.result, outcome.reply.text) == ("deferred", "it read nothing for 0.3 s")


async def test_after_a_refused_transaction_the_connection_is_reset_and_used_again():
    async with (
        SmtpServer({"RCPT": ["550 5.1.1 no", "250 Ok"]}) as server,
        smtp_transport(zone_of(), server.port) as transport,
    ):
        results = [(await delivered(transport, ADA))[0].result for _ in range(2)]
    assert results == ["bounced", "sent"]
    assert (server.connections, server.commands.count("RSET")) == (1, 1)


async def test_mail_that_may_not_leave_does_not_leave():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, ADA, leaving=Departures(PermissionError("paused")))
        assert outcome.result == "held"
        assert server.received == []
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, len(server.received)) == ("sent", 1)


async def test_at_most_a_hundred_recipients_share_a_transaction():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        leaving = Departures()
        outcomes = await delivered(transport, *(f"u{n}@example.org" for n in range(250)), leaving=leaving)
    assert [each.position for each in outcomes if each.result == "sent"] == list(range(250))
    assert [len(mail.recipients) for mail in server.received] == [100, 100, 50]
    assert server.connections == 1


async def test_destinations_do_not_share_an_outcome():
    zone = zone_of(more={"other.example": {"A": ["127.0.0.2"]}})
    async with (
        SmtpServer() as server,
        SmtpServer({"MAIL": "451 4.3.0 later"}, host="127.0.0.2", port=server.port, name="other.example"),
        smtp_transport(zone, server.port) as transport,
    ):
        outcomes = await delivered(transport, "a@other.example", ADA, "not an address", "b@nowhere.example")
    assert [each.result for each in outcomes] == ["deferred", "sent", "bounced", "bounced"]
    assert [each.reply.enhanced for each in outcomes][2:] == ["5.1.3", "5.1.2"]


async def test_a_server_that_knows_no_ehlo_is_greeted_with_helo():
    outcome = await outcome_with({"EHLO": "502 5.5.1 command not implemented"})
    assert outcome.result == "sent"


@pytest.mark.parametrize(
    ("extensions", "changes", "enhanced"),
    [
        (("SIZE 50",), {}, "5.3.4"),
        (("SIZE 50000",), {"content": "Subject: ü\r\n\r\n".encode()}, "5.6.3"),
        (("8BITMIME",), {"smtputf8": True}, "5.6.7"),
        (("8BITMIME",), {"sender": "mära@sender.example"}, "5.6.7"),
    ],
)
async def test_what_the_server_can_not_take_is_refused_before_it_is_sent(
    extensions: tuple[str, ...], changes: dict[str, Any], enhanced: str
):
    async with SmtpServer(extensions=extensions) as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, ADA, mail=outgoing(**changes))
    assert (outcome.result, outcome.bounce_class, outcome.reply.enhanced) == ("rejected", "content", enhanced)
    assert "MAIL" not in " ".join(server.commands)


async def test_extensions_are_used_where_they_are_offered():
    mail = outgoing("Subject: ü\r\n\r\nü\r\n".encode(), smtputf8=True)
    recipients = [OutgoingRecipient(0, "ädä@bücher.example", ("failure", "delay"))]
    zone = zone_of(more={"xn--bcher-kva.example": {"A": ["127.0.0.1"]}})
    async with SmtpServer() as server, smtp_transport(zone, server.port) as transport:
        [outcome] = await transport.deliver(mail, recipients, Departures())
    assert outcome.result == "sent"
    assert "MAIL FROM:<mara@sender.example> SIZE=19 BODY=8BITMIME SMTPUTF8" in server.commands
    assert "RCPT TO:<ädä@xn--bcher-kva.example> NOTIFY=FAILURE,DELAY" in server.commands


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ("rfc822;Ada+2Bshop@example.net", "rfc822;Ada+2Bshop@example.net"),
        ("utf-8;\u00e4da\\x{2B}@example.net", "utf-8;\\x{E4}da\\x{2B}@example.net"),
    ],
)
async def test_the_original_recipient_is_passed_on_as_it_was_given(given: str, passed_on: str):
    submitted = read_rcpt(f"TO:<{ADA}> ORCPT={given}", smtputf8=True)
    recipient = OutgoingRecipient(0, submitted.address, (), submitted.original)
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        await transport.deliver(outgoing(), [recipient], Departures())
    assert f"RCPT TO:<{ADA}> ORCPT={passed_on}" in server.commands


async def test_a_recipient_in_utf8_does_not_spoil_the_others():
    async with SmtpServer(extensions=("8BITMIME",)) as server, smtp_transport(zone_of(), server.port) as transport:
        outcomes = await delivered(transport, "ädä@example.org", ADA)
    assert [each.result for each in outcomes] == ["rejected", "sent"]


async def test_a_report_has_an_empty_sender():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        await delivered(transport, ADA, mail=outgoing(sender=""))
    assert server.received[0].sender == ""


@pytest.mark.parametrize(
    "address",
    [
        "a\r\nRCPT TO:<b@example.org>@example.org",
        "a@example.org>\r\nDATA",
        "a b@example.org",
        "a@exa mple.org",
        "<a@example.org>",
        "a@-example.org",
        "@example.org",
        "a@",
        "a",
        "",
        "a\x00@example.org",
        '"a\nb"@example.org',
        "a@[300.1.1.1]",
    ],
)
async def test_no_address_becomes_a_command(address: str):
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, address)
        [sender] = await delivered(transport, ADA, mail=outgoing(sender=address or "x"))
    assert (outcome.result, outcome.reply.enhanced) == ("bounced", "5.1.3")
    assert sender.reply.enhanced == "5.1.7"
    assert server.commands == []


@pytest.mark.parametrize(
    "address", ['"a b"@example.org', r'"a\"b"@example.org', "a+b/c=d!#@example.org", "a@[127.0.0.1]"]
)
async def test_odd_but_legal_addresses_are_written_as_they_are(address: str):
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, address)
    assert (outcome.result, server.received[0].recipients) == ("sent", (address,))


@given(
    st.lists(st.sampled_from([b".", b"..", b"\r\n", b"\n", b"\r", b"a", b" ", b"\r\n.\r\n", b"\xc3\xbc"])).map(b"".join)
)
def test_the_wire_has_whole_line_ends_and_one_final_dot(content: bytes):
    whole = with_whole_line_ends(content)
    wire = dot_stuffed(whole)
    assert whole.count(b"\r\n") == whole.count(b"\r") == whole.count(b"\n")
    assert wire.endswith(b".\r\n")
    lines = wire.split(b"\r\n")
    assert lines.index(b".") == len(lines) - 2
    assert b"".join(line.removeprefix(b".") + b"\r\n" for line in lines[:-2]) == whole
    if b"\r" not in content.replace(b"\r\n", b"") and b"\n" not in content.replace(b"\r\n", b""):
        assert whole in (content, content + b"\r\n")


async def test_an_error_of_ours_concerns_one_destination_only():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port, pauses=BrokenPauses()) as transport:
        outcomes = await transport.deliver(outgoing(), to(ADA, "a@broken.example"), Departures())
    assert [each.result for each in outcomes] == ["sent", "deferred"]
    assert outcomes[1].reply.text == "an error of ours: ZeroDivisionError"


class BrokenPauses:
    async def reason(self, destination: str) -> str | None:
        if destination == "broken.example":
            raise ZeroDivisionError
        return None


async def test_mail_to_a_paused_destination_is_held():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port, pauses=Paused()) as transport:
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, server.connections) == ("held", 0)
    assert outcome.reply.text == "mail to example.org is paused: they asked for it"


class Paused:
    async def reason(self, destination: str) -> str | None:
        return "they asked for it"
