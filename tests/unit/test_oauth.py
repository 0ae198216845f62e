"""Google's OAuth as a client: requests, answers, and error texts."""

import asyncio
import base64
import gzip
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from postroom.mailboxes.gmail.errors import ConsentLost, GmailTokenUnavailable, ScopeMissing
from postroom.mailboxes.gmail.oauth import (
    ConsentLife,
    GoogleApp,
    GoogleAppRefused,
    GoogleConsentRefused,
    GoogleOAuth,
    address_of,
    begin_consent,
)
from postroom.mailboxes.gmail.scopes import (
    COMPOSE,
    FULL,
    LEVELS,
    MODIFY,
    PUBSUB,
    READONLY,
    SEND,
    Consented,
    Level,
    granted_level,
    missing_scopes,
    needs_more,
)
from postroom.mailboxes.oauth.consent import ConsentRequest, answer_in
from postroom.mailboxes.oauth.loopback import FINISHED, listening
from support.patience import PATIENCE_S

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
APP = GoogleApp("id.apps.googleusercontent.com", "kanarie-secret")
LIFE = ConsentLife("ada@example.com", NOW - timedelta(days=1))
REDIRECT = "http://127.0.0.1:5000/"


def asked(request: ConsentRequest) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}


def oauth(answer: Callable[[httpx2.Request], httpx2.Response]) -> GoogleOAuth:
    return GoogleOAuth(httpx2.AsyncClient(transport=httpx2.MockTransport(answer)), APP)


def saying(status: int, content: object) -> GoogleOAuth:
    return oauth(lambda _request: httpx2.Response(status, json=content))


async def refresh(google: GoogleOAuth, life: ConsentLife = LIFE) -> str:
    return (await google.refresh("1//kanarie-refresh", life, NOW)).access_token


def test_the_question_is_bound_to_its_answer_by_state_and_by_pkce() -> None:
    request = begin_consent(APP, REDIRECT, "organise", "ada@example.com")
    fields = asked(request)
    digest = hashlib.sha256(request.verifier.encode()).digest()
    assert fields["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert (fields["code_challenge_method"], fields["state"]) == ("S256", request.state)
    assert (fields["access_type"], fields["prompt"], fields["response_type"]) == ("offline", "consent", "code")
    assert (fields["redirect_uri"], fields["scope"], fields["login_hint"]) == (REDIRECT, MODIFY, "ada@example.com")
    assert "kanarie" not in request.url
    assert 43 <= len(request.verifier) <= 128
    assert request.verifier not in request.url
    assert request.verifier not in repr(request)
    other = begin_consent(APP, REDIRECT, "organise")
    assert (other.state, other.verifier) != (request.state, request.verifier)


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_asks_for_its_own_scopes(level: Level) -> None:
    assert asked(begin_consent(APP, REDIRECT, level))["scope"].split() == list(LEVELS[level])


def test_the_code_is_found_in_the_whole_address_in_its_query_or_alone() -> None:
    request = begin_consent(APP, REDIRECT, "read")
    query = urlencode({"state": request.state, "code": "4/0A-x_y", "scope": READONLY})
    for pasted in (f"{REDIRECT}?{query}", f"  {REDIRECT}?{query}\n", f"?{query}", query, "4/0A-x_y", " 4/0A-x_y "):
        assert answer_in(request, pasted) == "4/0A-x_y"


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ("", "not a code"),
        ("two words", "not a code"),
        (f"{REDIRECT}?code=4/0A", "another request"),
        (f"{REDIRECT}?code=4/0A&state=wrong", "another request"),
        (f"{REDIRECT}?code=4/0A&state=é", "another request"),
        (f"{REDIRECT}?state=STATE", "contains no code"),
        (f"{REDIRECT}?state=STATE&error=access_denied", "access_denied.*agree"),
        (f"{REDIRECT}?state=STATE&error=%1b[2J", r"\(error\)"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_what_to_do(pasted: str, words: str) -> None:
    request = begin_consent(APP, REDIRECT, "read")
    with pytest.raises(GoogleConsentRefused, match=words):
        answer_in(request, pasted.replace("STATE", request.state))


def test_an_answer_that_blames_the_app_says_what_to_change_there() -> None:
    request = begin_consent(APP, REDIRECT, "read")
    with pytest.raises(GoogleAppRefused, match="organisation"):
        answer_in(request, f"{REDIRECT}?state={request.state}&error=org_internal")


async def test_the_exchange_sends_what_google_wants_and_reads_what_it_gives() -> None:
    sent: list[dict[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append({name: values[0] for name, values in parse_qs(request.content.decode()).items()})
        given = {"access_token": "ya29.a", "refresh_token": "1//r", "expires_in": 3599, "scope": f"{MODIFY} {COMPOSE}"}
        return httpx2.Response(200, json={**given, "refresh_token_expires_in": 604799})

    question = begin_consent(APP, REDIRECT, "send")
    grant = await oauth(answer).exchange(question, "4/0A")
    assert sent == [
        {
            "grant_type": "authorization_code",
            "code": "4/0A",
            "redirect_uri": REDIRECT,
            "code_verifier": question.verifier,
            "client_id": APP.client_id,
            "client_secret": APP.client_secret,
        }
    ]
    assert (grant.access_token, grant.refresh_token) == ("ya29.a", "1//r")
    assert (grant.scopes, grant.expires_in) == ({MODIFY, COMPOSE}, timedelta(seconds=3599))
    assert grant.dies_in == timedelta(seconds=604799)
    assert "ya29" not in repr(grant)
    assert "1//r" not in repr(grant)


async def test_a_code_that_google_does_not_know_is_no_lost_consent() -> None:
    with pytest.raises(GoogleConsentRefused, match="used, is too old, or is cut off"):
        await saying(400, {"error": "invalid_grant"}).exchange(begin_consent(APP, REDIRECT, "read"), "4/0A")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (3599, 3599),
        ("3599", 3599),
        (0, 3600),
        (None, 3600),
        (-5, 3600),
        (True, 3600),
        ("soon", 3600),
        (1e300, 3600),
        (10**9, 86400),
    ],
)
async def test_a_strange_life_of_a_token_is_put_within_bounds(given: object, seconds: float) -> None:
    google = saying(200, {"access_token": "ya29.a", "expires_in": given})
    assert (await google.refresh("r", LIFE, NOW)).expires_in == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("life", "testing"),
    [
        (ConsentLife("a@b", NOW - timedelta(days=1)), False),
        (ConsentLife("a@b", NOW - timedelta(days=6, hours=22)), False),
        (ConsentLife("a@b", NOW - timedelta(days=7)), True),
        (ConsentLife("a@b", NOW - timedelta(days=7) + timedelta(minutes=30)), True),
        (ConsentLife("a@b", NOW - timedelta(days=7), NOW - timedelta(hours=1)), True),
        (ConsentLife("a@b", NOW - timedelta(days=30), NOW - timedelta(days=24)), True),
        (ConsentLife("a@b", NOW - timedelta(days=30), NOW - timedelta(days=2)), False),
        (ConsentLife("a@b", NOW - timedelta(days=1), None, NOW), True),
        (ConsentLife("a@b", NOW - timedelta(days=1), None, NOW + timedelta(days=6)), False),
    ],
)
async def test_a_consent_that_died_at_seven_days_is_reported_in_those_words(life: ConsentLife, testing: bool) -> None:
    with pytest.raises(ConsentLost) as lost:
        await refresh(saying(400, {"error": "invalid_grant", "error_description": "kanarie"}), life)
    text = str(lost.value)
    assert ("7 days" in text and '"Testing"' in text) == testing
    assert ("withdrawn" in text and "password" in text) == (not testing)
    assert "postroom account add gmail" in text
    assert "kanarie" not in text


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (401, "invalid_client", "google.client_id and google.client_secret"),
        (401, "deleted_client", "make a new one"),
        (401, "unauthorized_client", "another app"),
        (400, "redirect_uri_mismatch", "Desktop app"),
        (400, "admin_policy_enforced", "administrator"),
    ],
)
async def test_an_app_that_google_does_not_accept_says_what_to_check(status: int, reason: str, words: str) -> None:
    with pytest.raises(GoogleAppRefused, match=words):
        await refresh(saying(status, {"error": reason, "error_description": "kanarie"}))


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(500, text="kanarie"),
        httpx2.Response(503),
        httpx2.Response(429, json={"error": "rate_limit_exceeded"}),
        httpx2.Response(400, json={"error": "kanarie refused: 1//kanarie-refresh"}),
        httpx2.Response(200, text="<html>sign in to the hotel's network</html>"),
        httpx2.Response(200, json=["kanarie"]),
        httpx2.Response(200, json={"access_token": 7}),
        httpx2.Response(200, json={"access_token": ""}),
        httpx2.Response(302, headers={"location": "https://kanarie.example"}),
        httpx2.Response(200, content=b'{"access_token": "' + b"x" * 1_000_000 + b'"}'),
        httpx2.Response(200, content=gzip.compress(b"{" + b" " * 50_000_000), headers={"content-encoding": "gzip"}),
    ],
    ids=range(11),
)
async def test_whatever_else_google_answers_may_go_better_later_and_quotes_nothing(answer: httpx2.Response) -> None:
    with pytest.raises(GmailTokenUnavailable) as unavailable:
        await refresh(oauth(lambda _request: answer))
    assert "kanarie" not in str(unavailable.value)


async def test_a_connection_that_fails_may_go_better_later_and_quotes_nothing() -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.RemoteProtocolError(f"illegal header {request.content!r}")

    with pytest.raises(GmailTokenUnavailable, match="RemoteProtocolError") as unavailable:
        await refresh(oauth(fail))
    assert "kanarie" not in str(unavailable.value)
    assert unavailable.value.__cause__ is None
    assert unavailable.value.__context__ is None


async def test_a_consent_that_is_gone_already_need_not_be_revoked() -> None:
    assert await saying(200, {}).revoke("1//r")
    assert not await saying(400, {"error": "invalid_token"}).revoke("1//r")
    with pytest.raises(GmailTokenUnavailable):
        await saying(503, {}).revoke("1//r")


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [(403, {}, "enable the Gmail API"), (500, {}, "500"), (200, {"emailAddress": 7}, "200")],
)
async def test_a_mailbox_that_does_not_say_whose_it_is_is_refused(status: int, content: object, words: str) -> None:
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(status, json=content))
    with pytest.raises(GoogleConsentRefused, match=words):
        await address_of(httpx2.AsyncClient(transport=transport), "https://gmail.example", "ya29.a")


@pytest.mark.parametrize(
    ("granted", "level"),
    [
        ((), None),
        ((SEND,), None),
        ((READONLY,), "read"),
        ((MODIFY,), "organise"),
        ((READONLY, COMPOSE), "read"),
        ((MODIFY, COMPOSE), "send"),
        ((MODIFY, SEND), "organise"),
        ((FULL,), "full"),
        ((FULL, "openid"), "full"),
    ],
)
def test_the_level_is_the_highest_that_was_granted_in_full(granted: tuple[str, ...], level: Level | None) -> None:
    assert granted_level(granted) == level


def test_what_was_asked_and_not_granted_is_named() -> None:
    assert missing_scopes("send", (MODIFY,)) == (COMPOSE,)
    assert missing_scopes("send", (FULL,)) == ()
    assert missing_scopes("full", (MODIFY, COMPOSE)) == (FULL,)


def test_an_action_that_needs_more_than_was_granted_says_the_whole_command() -> None:
    consented = Consented("ada@example.com", frozenset({MODIFY}))
    assert needs_more("auto_reply", (COMPOSE,), consented, "send") == (
        f"auto_reply needs {COMPOSE} (the level send), and ada@example.com has granted {MODIFY} (the level organise); "
        "run `postroom account add gmail --email ada@example.com --level send`, and leave every box on Google's page "
        "ticked"
    )


def test_a_missing_scope_is_reported_in_the_same_words_whoever_finds_it() -> None:
    consented = Consented("ada@example.com", frozenset({READONLY}))
    refused = ScopeMissing("archive", "insufficientPermissions", MODIFY).with_consent(consented)
    assert str(refused) == needs_more("archive", (MODIFY,), consented, "organise")


def test_a_scope_beside_the_levels_keeps_the_level_that_the_account_has() -> None:
    told = needs_more("pulling", (PUBSUB,), Consented("ada@example.com", frozenset({FULL})))
    assert f"pulling needs {PUBSUB}, and ada@example.com has granted {FULL} (the level full)" in told
    assert "--level full`" in told
    assert "--level organise`" in needs_more("pulling", (PUBSUB,))


async def visit(address: str, path: str = "", method: str = "GET") -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as browser:
        return await browser.request(method, f"{address}{path}")


async def test_the_page_on_this_machine_takes_the_code_and_nothing_else() -> None:
    async with listening() as loopback:
        assert (await visit(loopback.redirect_uri, "?code=early")).status_code == 404
        request = begin_consent(APP, loopback.redirect_uri, "read")
        loopback.expect(request)
        assert (await visit(loopback.redirect_uri, "favicon.ico")).status_code == 404
        assert (await visit(loopback.redirect_uri, "?code=4/0A&state=forged")).status_code == 400
        assert (await visit(loopback.redirect_uri, f"?code=4/0A&state={request.state}", "POST")).status_code == 405
        page = await visit(loopback.redirect_uri, f"?state={request.state}&code=4/0A")
        assert (page.status_code, FINISHED in page.text) == (200, True)
        assert page.headers["content-security-policy"] == "default-src 'none'"
        assert page.headers["cache-control"] == "no-store"
        assert await loopback.code() == "4/0A"
        again = await visit(loopback.redirect_uri, f"?state={request.state}&code=other")
        assert again.status_code == 200
        assert await loopback.code() == "4/0A"


async def test_a_no_on_googles_page_ends_the_waiting() -> None:
    async with listening() as loopback:
        request = begin_consent(APP, loopback.redirect_uri, "read")
        loopback.expect(request)
        page = await visit(loopback.redirect_uri, f"?state={request.state}&error=access_denied")
        assert page.status_code == 400
        with pytest.raises(GoogleConsentRefused, match="access_denied"):
            await loopback.code()


async def test_a_browser_that_connects_ahead_and_says_nothing_keeps_nobody_waiting() -> None:
    async with asyncio.timeout(PATIENCE_S):
        async with listening() as loopback:
            port = urlsplit(loopback.redirect_uri).port
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await visit(loopback.redirect_uri, "favicon.ico")  # whoever came before has been let in too
            assert len(loopback.silent) == 1
        assert await _ended(reader)
        writer.close()


async def _ended(reader: asyncio.StreamReader) -> bool:
    """Whether the other side hung up without a word, gently or not."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_a_request_without_end_is_shown_out() -> None:
    async with listening() as loopback:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(loopback.redirect_uri).port)
        writer.write(b"GET /?" + b"x" * 20_000)
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_a_request_that_does_not_come_to_its_end_is_answered_408() -> None:
    async with listening(slowest_s=0.2) as loopback:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(loopback.redirect_uri).port)
        writer.write(b"GET / HTTP/1.1\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_crowd_of_silent_visitors_does_not_keep_the_browser_out() -> None:
    async with listening() as loopback:
        port = urlsplit(loopback.redirect_uri).port
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        assert (await visit(loopback.redirect_uri, "favicon.ico")).status_code == 404
        assert len(loopback.silent) <= 16
        for _reader, writer in crowd:
            writer.close()
