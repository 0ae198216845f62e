"""Which servers mail goes to, by what the DNS says, and over which connections."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.outbound.pacing import PaceLimits
from postroom.outbound.smtp.options import Reuse, SmartHost
from postroom_sandbox.smtp_server import Silence, SmtpServer
from support.smtp import Departures, Zone, delivered, smtp_transport, zone_of

ADA = "ada@example.org"
FAILED = "4.4.3"


async def outcome_in(zone: Zone, address: str = ADA, **options: Any) -> Any:
    async with SmtpServer() as server, smtp_transport(zone, server.port, **options) as transport:
        [outcome] = await delivered(transport, address)
        assert len(server.received) == (outcome.result == "sent")
        return outcome


async def test_hosts_are_tried_by_preference():
    zone: Zone = {
        "example.org": {"MX": [(30, "c.example"), (10, "a.example"), (20, "b.example")]},
        "a.example": {"A": ["127.0.0.9"]},
        "b.example": {"A": ["127.0.0.2"]},
        "c.example": {"A": ["127.0.0.3"]},
    }
    async with (
        SmtpServer({"connect": "554 5.7.1 not you"}, host="127.0.0.2") as refusing,
        SmtpServer(host="127.0.0.3", port=refusing.port) as taking,
        smtp_transport(zone, refusing.port) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert outcome.result == "sent"
    assert (refusing.connections, len(taking.received)) == (1, 1)


async def test_hosts_of_one_preference_share_the_mail():
    zone: Zone = {
        "example.org": {"MX": [(10, "a.example"), (10, "b.example")]},
        "a.example": {"A": ["127.0.0.2"]},
        "b.example": {"A": ["127.0.0.3"]},
    }
    async with (
        SmtpServer(host="127.0.0.2") as one,
        SmtpServer(host="127.0.0.3", port=one.port) as other,
        smtp_transport(zone, one.port, reuse=Reuse(messages=1)) as transport,
    ):
        for _ in range(20):
            await delivered(transport, ADA)
    assert len(one.received) + len(other.received) == 20
    assert min(len(one.received), len(other.received)) >= 4


@pytest.mark.parametrize(
    ("records", "result", "enhanced"),
    [
        (None, "bounced", "5.1.2"),
        ("SERVFAIL", "deferred", FAILED),
        ("REFUSED", "deferred", FAILED),
        ({"MX": [(0, ".")]}, "bounced", "5.1.10"),
        ({"MX": [(0, "."), (10, "mx.example.org")]}, "sent", "2.0.0"),
        ({"A": ["127.0.0.1"]}, "sent", "2.0.0"),
        ({"CNAME": ["alias.example"]}, "sent", "2.0.0"),
        ({"MX": [(10, "alias.example")]}, "sent", "2.0.0"),
        ({"TXT": ["nothing else"]}, "bounced", "5.4.4"),
        ({"MX": [(10, "gone.example")]}, "bounced", "5.4.4"),
        ({"MX": [(10, "127.0.0.1")]}, "bounced", "5.4.4"),
        ({"MX": [(10, "failing.example")]}, "deferred", FAILED),
        ({"MX": [(10, "failing.example"), (20, "mx.example.org")]}, "sent", "2.0.0"),
        ({"MX": [(10, "out.sender.example")]}, "bounced", "5.4.6"),
        ({"MX": [(10, "our.example"), (20, "mx.example.org")]}, "bounced", "5.4.6"),
        ({"MX": [(10, "mx.example.org"), (20, "OUR.example")]}, "sent", "2.0.0"),
        ({"MX": [(n, f"n{n}.example") for n in range(200)]}, "deferred", FAILED),
    ],
)
async def test_what_the_dns_says(records: Any, result: str, enhanced: str):
    zone: Zone = {
        "mx.example.org": {"A": ["127.0.0.1"]},
        "alias.example": {"CNAME": ["mx.example.org"]},
        "failing.example": "SERVFAIL",
        "out.sender.example": {"A": ["127.0.0.1"]},
        **{f"n{n}.example": "SERVFAIL" for n in range(200)},
    }
    if records is not None:
        zone["example.org"] = records
    outcome = await outcome_in(zone, own_names=frozenset({"our.example"}))
    assert (outcome.result, outcome.reply.enhanced) == (result, enhanced)


async def test_a_dns_server_that_answers_nothing_defers():
    async with SmtpServer() as server, smtp_transport({}, server.port) as transport:
        transport._routes._dns._timeout = 0.2
        transport._routes._dns._resolver.port = 1
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.enhanced) == ("deferred", FAILED)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1"]
)
async def test_no_mail_goes_to_a_private_network(address: str):
    outcome = await outcome_in(zone_of(address), allow_private=False)
    assert (outcome.result, outcome.reply.enhanced) == ("bounced", "5.4.4")
    literal = await outcome_in(zone_of(), f"ada@[{address}]", allow_private=False)
    assert (literal.result, literal.reply.enhanced) == ("bounced", "5.4.4")


@pytest.mark.parametrize("address", ["::1", "fe80::1", "fc00::1", "::ffff:7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::1"])
async def test_nor_by_ipv6(address: str):
    zone: Zone = {"example.org": {"AAAA": [address]}}
    assert (await outcome_in(zone, allow_private=False)).reply.enhanced == "5.4.4"


async def test_a_server_that_has_our_name_is_ourselves():
    async with SmtpServer(name="out.sender.example") as server, smtp_transport(zone_of(), server.port) as transport:
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.enhanced) == ("deferred", "4.4.6")


async def test_a_smart_host_may_have_our_name_since_it_is_often_on_the_same_machine():
    async with SmtpServer(name="out.sender.example") as server:
        host = SmartHost("127.0.0.1", server.port, "opportunistic")
        async with smtp_transport({}, 25, smart_host=host) as transport:
            [outcome] = await delivered(transport, ADA)
    assert outcome.result == "sent"


async def test_answers_of_the_dns_are_kept_for_a_while():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port) as transport:
        await delivered(transport, ADA)
        transport._routes._dns._resolver.port = 1
        assert (await delivered(transport, ADA))[0].result == "sent"


async def test_a_connection_is_used_again_up_to_its_limit():
    async with (
        SmtpServer() as server,
        smtp_transport(zone_of(), server.port, reuse=Reuse(messages=3)) as transport,
    ):
        for _ in range(7):
            assert (await delivered(transport, ADA))[0].result == "sent"
    assert (server.connections, len(server.received), server.commands.count("QUIT")) == (3, 7, 3)


async def test_a_kept_connection_that_the_server_has_ended_is_replaced():
    answers = {"MAIL": ["250 Ok", "421 4.7.0 too many messages on this connection", "250 Ok"]}
    async with SmtpServer(answers) as server, smtp_transport(zone_of(), server.port) as transport:
        results = [(await delivered(transport, ADA))[0].result for _ in range(2)]
    assert (results, server.connections) == (["sent", "sent"], 2)


async def test_an_old_connection_is_not_used_again():
    now = [0.0]
    async with (
        SmtpServer() as server,
        smtp_transport(zone_of(), server.port, clock=lambda: now[0]) as transport,
    ):
        await delivered(transport, ADA)
        now[0] += 301
        await delivered(transport, ADA)
    assert server.connections == 2


async def test_an_idle_connection_is_closed():
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port, reuse=Reuse(idle_s=0)) as transport:
        await delivered(transport, ADA)
        await server.all_closed()
        assert server.commands[-1] == "QUIT"


async def test_a_destination_has_no_more_mail_at_once_than_its_window():
    narrow = PaceLimits(first=3, most=3)
    async with (
        SmtpServer() as server,
        smtp_transport(zone_of(), server.port, pace=narrow, longest_wait_s=60.0) as transport,
    ):
        outcomes = await asyncio.gather(*(delivered(transport, ADA) for _ in range(30)))
    assert {each.result for [each] in outcomes} == {"sent"}
    assert (server.most_at_once, server.connections, len(server.received)) == (3, 3, 30)


async def test_a_slow_destination_gives_its_mail_back_and_others_are_served():
    now = [0.0]
    zone = zone_of(more={"slow.example": {"A": ["127.0.0.2"]}})
    options: dict[str, Any] = {"pace": PaceLimits(first=2, most=2), "clock": lambda: now[0]}
    async with (
        SmtpServer() as server,
        SmtpServer({".": Silence()}, host="127.0.0.2", port=server.port, name="slow.example") as slow,
        smtp_transport(zone, server.port, **options) as transport,
    ):
        leaving = [Departures(), Departures()]
        waiting = [asyncio.create_task(delivered(transport, "a@slow.example", leaving=each)) for each in leaving]
        await asyncio.gather(*(each.first.wait() for each in leaving))
        now[0] += 60.0
        [held], [sent] = await delivered(transport, "b@slow.example"), await delivered(transport, ADA)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        await slow.all_closed()
        slow.answers = {}
        [later] = await delivered(transport, "b@slow.example")
    assert (held.result, held.retry_after, sent.result, later.result) == ("held", timedelta(seconds=30), "sent", "sent")
