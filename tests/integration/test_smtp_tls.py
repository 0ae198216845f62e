"""Encryption: where it may be left out, where it must not, whose certificates count, and MTA-STS."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import trustme

from postroom.core.outbound.destinations import StsPolicy
from postroom.core.outbound.transport import RecipientOutcome
from postroom.outbound.smtp.dns import Dns
from postroom.outbound.smtp.mta_sts import (
    AGAIN_AFTER_S,
    HttpsPolicies,
    NoPolicy,
    StsCache,
    allows,
    announced_id,
    read_policy,
)
from postroom.outbound.smtp.options import SmartHost, SmtpOptions, Timeouts
from postroom_sandbox.smtp_server import Answers, Drop, Raw, SmtpServer
from support.clocks import ManualClock
from support.smtp import Zone, delivered, dns_server, outgoing, smtp_transport, tls_contexts, zone_of

ADA = "ada@example.org"
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
POLICY = "version: STSv1\r\nmode: enforce\r\nmx: mx.example.org\r\nmax_age: 86400\r\n"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


@contextlib.asynccontextmanager
async def tls_server(authority: trustme.CA, answers: Answers | None = None, *names: str) -> AsyncGenerator[SmtpServer]:
    context = server_context(authority, *(names or ("mx.example.org",)))
    async with SmtpServer(answers or {}, tls=context) as server:
        yield server


async def test_encryption_that_is_offered_is_used_whatever_the_certificate(authority: trustme.CA):
    async with (
        tls_server(authority, None, "other.example") as server,
        smtp_transport(zone_of(), server.port, tls_contexts(None)) as transport,
    ):
        assert (await delivered(transport, ADA))[0].result == "sent"
    assert server.received[0].encrypted
    assert [command[:4] for command in server.commands[:3]] == ["EHLO", "STAR", "EHLO"]


@pytest.mark.parametrize("answer", ["454 4.7.0 TLS not available", Drop(), Raw(b"220 go\r\nrubbish, not TLS\r\n")])
async def test_encryption_that_fails_is_left_out_where_nobody_asked_for_it(authority: trustme.CA, answer: Any):
    async with (
        tls_server(authority, {"STARTTLS": answer}) as server,
        smtp_transport(zone_of(), server.port, timeouts=Timeouts(tls=2.0)) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
        [required] = await delivered(transport, ADA, mail=outgoing(require_tls=True))
    if answer == Drop():
        assert outcome.result == "deferred"
    else:
        assert (outcome.result, server.received[0].encrypted) == ("sent", False)
    assert required.result == "deferred"
    assert len(server.received) <= 1


async def test_required_encryption_is_required(authority: trustme.CA):
    async with SmtpServer() as server, smtp_transport(zone_of(), server.port, tls_contexts(authority)) as transport:
        [outcome] = await delivered(transport, ADA, mail=outgoing(require_tls=True))
    assert (outcome.result, outcome.reply.enhanced, server.received) == ("deferred", "4.7.4", [])


@pytest.mark.parametrize(
    ("name", "result"), [("mx.example.org", "sent"), ("*.example.org", "sent"), ("mx.evil.example", "deferred")]
)
async def test_a_required_certificate_must_have_the_right_name(authority: trustme.CA, name: str, result: str):
    async with (
        tls_server(authority, None, name) as server,
        smtp_transport(zone_of(), server.port, tls_contexts(authority), require_tls=True) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert outcome.result == result
    assert all(mail.encrypted for mail in server.received)


async def test_a_required_certificate_must_be_from_a_known_authority(authority: trustme.CA):
    async with (
        tls_server(trustme.CA()) as server,
        smtp_transport(zone_of(), server.port, tls_contexts(authority), require_tls=True) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.enhanced) == ("deferred", "4.7.5")
    assert "certificate" in outcome.reply.text


async def test_what_was_sent_in_the_clear_after_starttls_is_not_believed(authority: trustme.CA):
    injected = Raw(b"220 go\r\n250-mx.example.org\r\n250 AUTH PLAIN\r\n")
    async with (
        tls_server(authority, {"STARTTLS": injected}) as server,
        smtp_transport(zone_of(), server.port, tls_contexts(authority), require_tls=True) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert (outcome.result, server.received) == ("deferred", [])


def smart_host(port: int, **more: Any) -> SmartHost:
    return SmartHost("localhost", port, username="mara", password="secret", **more)


@pytest.mark.parametrize("method", ["PLAIN LOGIN", "LOGIN"])
@pytest.mark.parametrize("implicit", [True, False])
async def test_a_smart_host_takes_all_mail_after_a_login(authority: trustme.CA, implicit: bool, method: str):
    context = server_context(authority, "localhost")
    async with SmtpServer(extensions=(f"AUTH {method}",), tls=context, implicit_tls=implicit) as server:
        host = smart_host(server.port, tls="implicit" if implicit else "required")
        async with smtp_transport({}, 25, tls_contexts(authority), smart_host=host, allow_private=False) as transport:
            outcomes = await delivered(transport, ADA, "b@elsewhere.example")
    assert [each.result for each in outcomes] == ["sent", "sent"]
    [mail] = server.received
    assert (mail.username, mail.encrypted, len(mail.recipients)) == ("mara", True, 2)


async def test_a_refused_password_defers_the_mail(authority: trustme.CA):
    context = server_context(authority, "localhost")
    answers = {"AUTH": "535 5.7.8 Error: authentication failed"}
    async with SmtpServer(answers, extensions=("AUTH PLAIN",), tls=context) as server:
        host = smart_host(server.port)
        async with smtp_transport({}, 25, tls_contexts(authority), smart_host=host) as transport:
            [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.code, outcome.reply.phase) == ("deferred", 535, "auth")


async def test_no_password_is_sent_unencrypted():
    async with SmtpServer(extensions=("AUTH PLAIN",)) as server:
        host = smart_host(server.port, tls="opportunistic")
        async with smtp_transport({}, 25, smart_host=host) as transport:
            [outcome] = await delivered(transport, ADA)
    assert (outcome.result, outcome.reply.enhanced) == ("deferred", "4.7.10")
    assert not any(command.startswith("AUTH") for command in server.commands)


@pytest.mark.parametrize(
    ("texts", "id"),
    [
        (["v=STSv1; id=20260101T000000;"], "20260101T000000"),
        (["v=STSv1;id=a1", "v=spf1 -all"], "a1"),
        (["v=STSv1; id=a; id2=b"], "a"),
        (["v=STSv1; id=a", "v=STSv1; id=b"], None),
        (["v=STSv2; id=a"], None),
        (["v=STSv1; id=not allowed"], None),
        (["v=STSv1; id=" + "a" * 33], None),
        (["v=STSv1"], None),
        ([], None),
    ],
)
def test_what_announces_a_policy(texts: list[str], id: str | None):
    assert announced_id(texts) == id


def test_a_policy_is_read():
    text = "version: STSv1\nmode: testing\nmx: mail.example.org\nmx: *.Example.net.\nmax_age: 604800\nnew: field\n"
    policy = read_policy(text, "1", NOW)
    assert policy == StsPolicy("1", "testing", ("mail.example.org", "*.example.net"), NOW + timedelta(days=7))
    assert read_policy("version:STSv1\nmode:none\nmax_age:9999999999", "1", NOW).expires_at < NOW + timedelta(days=366)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "version: STSv2\nmode: enforce\nmx: a.example\nmax_age: 1",
        "version: STSv1\nmode: enforce\nmax_age: 1",
        "version: STSv1\nmode: strict\nmx: a.example\nmax_age: 1",
        "version: STSv1\nmode: enforce\nmx: a.example\nmax_age: -1",
        "version: STSv1\nmode: enforce\nmx: a.*.example\nmax_age: 1",
        "version: STSv1\nmode: enforce\nmx: *\nmax_age: 1",
        "version: STSv1\nmode: enforce\nmax_age: 1\n" + "mx: a.example\n" * 101,
    ],
)
def test_what_is_no_policy_is_refused(text: str):
    with pytest.raises(NoPolicy):
        read_policy(text, "1", NOW)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("mail.example.org", True),
        ("MAIL.example.org.", True),
        ("a.example.net", True),
        ("a.b.example.net", False),
        ("example.net", False),
        ("mail.example.org.evil.example", False),
    ],
)
def test_the_hosts_that_a_policy_allows(host: str, allowed: bool):
    policy = StsPolicy("1", "enforce", ("mail.example.org", "*.example.net"), NOW)
    assert allows(policy, host) is allowed


class KeptPolicies:
    def __init__(self) -> None:
        self.policies: dict[str, StsPolicy] = {}

    async def kept(self, domain: str) -> StsPolicy | None:
        return self.policies.get(domain)

    async def keep(self, domain: str, policy: StsPolicy) -> None:
        self.policies[domain] = policy


class Web:
    """Gives out the policy, if there is one."""

    def __init__(self, text: str | None = POLICY) -> None:
        self.text = text
        self.fetched = 0

    async def __call__(self, domain: str) -> str:
        self.fetched += 1
        if self.text is None:
            raise NoPolicy("there is none")
        return self.text


class Cached:
    """A cache of policies whose names, web server and clocks a test moves."""

    def __init__(self) -> None:
        self.zone: Zone = {"_mta-sts.example.org": {"TXT": ["v=STSv1; id=1"]}}
        self.web = Web()
        self.kept = KeptPolicies()
        self.clock = ManualClock()

    def seconds(self) -> float:
        return self.clock.now.timestamp()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[StsCache]:
        async with dns_server(self.zone) as (resolver, _):
            yield StsCache(Dns(resolver, self.seconds), self.kept, self.web, self.seconds, self.clock)


async def test_a_policy_is_fetched_once_and_again_when_it_is_announced_anew():
    cached = Cached()
    async with cached.open() as cache:
        for _ in range(3):
            policy = await cache.policy("example.org")
            assert policy is not None
            assert policy.mode == "enforce"
        assert cached.web.fetched == 1
        cached.zone["_mta-sts.example.org"] = {"TXT": ["v=STSv1; id=2"]}
        cached.web.text = POLICY.replace("enforce", "testing")
        cached.clock.forward(3601)
        renewed = await cache.policy("example.org")
    assert renewed is not None
    assert (renewed.id, renewed.mode, cached.kept.policies["example.org"]) == ("2", "testing", renewed)


@pytest.mark.parametrize("suppressed", ["SERVFAIL", None])
async def test_a_policy_holds_until_it_expires_although_it_is_suppressed(suppressed: str | None):
    cached = Cached()
    async with cached.open() as cache:
        await cache.policy("example.org")
    cached.web.text = None
    del cached.zone["_mta-sts.example.org"]
    if suppressed is not None:
        cached.zone["_mta-sts.example.org"] = suppressed
    async with cached.open() as cache:
        cached.clock.forward(86_399)
        assert await cache.policy("example.org") is not None
        cached.clock.forward(2)
        assert await cache.policy("example.org") is None


async def test_a_failed_fetch_is_repeated_only_after_a_while():
    cached = Cached()
    cached.web.text = None
    async with cached.open() as cache:
        for _ in range(3):
            assert await cache.policy("example.org") is None
        assert cached.web.fetched == 1
        cached.clock.forward(AGAIN_AFTER_S)
        await cache.policy("example.org")
    assert cached.web.fetched == 2


@pytest.mark.parametrize(
    ("mode", "mx", "certificate", "result", "encrypted"),
    [
        ("enforce", "mx.example.org", "mx.example.org", "sent", True),
        ("enforce", "mx.example.org", "evil.example", "deferred", None),
        ("enforce", "mx.example.org", None, "deferred", None),
        ("enforce", "other.example.org", "mx.example.org", "deferred", None),
        ("testing", "other.example.org", "evil.example", "sent", True),
        ("none", "other.example.org", None, "sent", False),
    ],
)
async def test_a_policy_is_honoured(
    authority: trustme.CA, mode: str, mx: str, certificate: str | None, result: str, encrypted: bool | None
):
    cached = Cached()
    cached.web.text = POLICY.replace("enforce", mode).replace("mx.example.org", mx)
    context = server_context(authority, certificate) if certificate is not None else None
    async with (
        cached.open() as cache,
        SmtpServer(tls=context) as server,
        smtp_transport(zone_of(), server.port, tls_contexts(authority), sts=cache) as transport,
    ):
        [outcome] = await delivered(transport, ADA)
    assert outcome.result == result
    assert [mail.encrypted for mail in server.received] == ([] if encrypted is None else [encrypted])
    assert_reason(outcome, mode, mx)


def assert_reason(outcome: RecipientOutcome, mode: str, mx: str) -> None:
    if mode == "enforce" and mx == "other.example.org":
        assert outcome.reply.text == "the MTA-STS policy of example.org names none of its mail servers"


def response(body: str, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("certificate", "answer", "problem"),
    [
        ("mta-sts.example.org", response(POLICY), None),
        ("mta-sts.example.org", response(POLICY, kind="text/plain; charset=utf-8"), None),
        ("mta-sts.example.org", response(POLICY, "301 Moved\r\nLocation: https://evil.example/"), "301"),
        ("mta-sts.example.org", response(POLICY, kind="text/html"), "text/html"),
        ("mta-sts.example.org", response("x" * 70_000), "more than 65536 bytes"),
        ("mta-sts.example.org", b"", "does not answer"),
        ("evil.example", response(POLICY), "does not answer"),
    ],
)
async def test_a_policy_is_fetched_over_https(
    authority: trustme.CA, certificate: str, answer: bytes, problem: str | None
):
    asked: list[bytes] = []

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answering, "127.0.0.1", 0, ssl=server_context(authority, certificate))
    port: int = server.sockets[0].getsockname()[1]
    zone: Zone = {"mta-sts.example.org": {"A": ["127.0.0.1"]}}
    async with server, dns_server(zone) as (resolver, _):
        checked = tls_contexts(authority).checked
        async with httpx2.AsyncClient(verify=checked, trust_env=False) as http:
            options = SmtpOptions("out.sender.example", allow_private=True, timeouts=Timeouts(policy=20.0))
            fetch = HttpsPolicies(http, Dns(resolver, lambda: 0.0), options, port)
            if problem is None:
                assert await fetch("example.org") == POLICY
                assert b"GET /.well-known/mta-sts.txt HTTP/1.1\r\nHost: mta-sts.example.org\r\n" in asked[0]
            else:
                with pytest.raises(NoPolicy, match=problem):
                    await fetch("example.org")
            strict = HttpsPolicies(http, Dns(resolver, lambda: 0.0), SmtpOptions("out.sender.example"), port)
            with pytest.raises(NoPolicy, match="no public address"):
                await strict("example.org")
