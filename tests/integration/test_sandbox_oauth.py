"""Google's OAuth as emulated: consent, PKCE, tokens that expire, missing scopes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from postroom_sandbox.consent import CLIENT_ID, CLIENT_SECRET, challenge_of
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import LABELS, METADATA, METHODS, MODIFY, OPENID, READONLY, SEND
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, Sandbox, raw_mail, running_sandbox

REDIRECT = "http://127.0.0.1:8711/"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-long"


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, lambda mailbox: mailbox.deliver(raw_mail()) and None) as running:
        yield running


async def consent(sandbox: Sandbox, scopes: str = READONLY, **more: str) -> dict[str, str]:
    """What the browser brings back."""
    asked = {
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scope": scopes,
        "state": "a b&c",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        **more,
    }
    answer = await sandbox.http.get(f"{sandbox.url}/o/oauth2/v2/auth", params=asked)
    assert answer.status_code == 302, answer.text
    assert answer.headers["location"].startswith(REDIRECT)
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


async def tokens(sandbox: Sandbox, **fields: str) -> httpx2.Response:
    given = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, **fields}
    return await sandbox.http.post(f"{sandbox.url}/token", data=given)


async def redeemed(sandbox: Sandbox, code: str, **fields: str) -> httpx2.Response:
    given = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **fields}
    return await tokens(sandbox, grant_type="authorization_code", **given)


async def signed_in(sandbox: Sandbox, scopes: str = READONLY, **more: str) -> dict[str, Any]:
    answer = await redeemed(sandbox, (await consent(sandbox, scopes, **more))["code"])
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refreshed(sandbox: Sandbox, refresh_token: str) -> httpx2.Response:
    return await tokens(sandbox, grant_type="refresh_token", refresh_token=refresh_token)


async def test_a_consent_becomes_tokens_that_open_the_mailbox(sandbox: Sandbox) -> None:
    back = await consent(sandbox)
    assert back["state"] == "a b&c"
    issued = (await redeemed(sandbox, back["code"])).json()
    assert issued["token_type"] == "Bearer"
    assert issued["scope"] == READONLY
    assert issued["expires_in"] == 3599
    assert issued["refresh_token"].startswith("1//")
    profile = await sandbox.json("GET", "/profile", token=issued["access_token"])
    assert profile["emailAddress"] == OWNER


async def test_an_access_token_dies_after_an_hour_and_is_refreshed(sandbox: Sandbox) -> None:
    issued = await signed_in(sandbox)
    sandbox.clock.forward(3600)
    assert (await sandbox.ask("GET", "/profile", token=issued["access_token"])).status_code == 401
    fresh = (await refreshed(sandbox, issued["refresh_token"])).json()
    assert "refresh_token" not in fresh
    assert (await sandbox.ask("GET", "/profile", token=fresh["access_token"])).status_code == 200


@pytest.mark.parametrize(
    ("fields", "error", "description"),
    [
        ({"code_verifier": "another"}, "invalid_grant", "Invalid code verifier."),
        ({"code_verifier": ""}, "invalid_grant", "Missing code verifier."),
        ({"redirect_uri": "http://127.0.0.1:1/"}, "redirect_uri_mismatch", "Bad Request"),
        ({"code": "4/0Anonsense"}, "invalid_grant", "Malformed auth code."),
        ({"client_id": "nobody"}, "invalid_client", "The OAuth client was not found."),
        ({"client_secret": "wrong"}, "invalid_client", "Unauthorized"),
        ({"client_secret": ""}, "invalid_request", "client_secret is missing."),
    ],
)
async def test_a_code_is_refused_for_whoever_did_not_ask_for_it(
    sandbox: Sandbox, fields: dict[str, str], error: str, description: str
) -> None:
    code = (await consent(sandbox))["code"]
    answer = await redeemed(sandbox, **{"code": code, **fields})
    assert answer.status_code == (401 if error == "invalid_client" else 400)
    assert answer.json() == {"error": error, "error_description": description}


async def test_a_code_is_good_once_and_for_ten_minutes(sandbox: Sandbox) -> None:
    code = (await consent(sandbox))["code"]
    assert (await redeemed(sandbox, code)).status_code == 200
    assert (await redeemed(sandbox, code)).json()["error"] == "invalid_grant"
    late = (await consent(sandbox))["code"]
    sandbox.clock.forward(601)
    assert (await redeemed(sandbox, late)).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"client_id": "nobody"}, "invalid_client"),
        ({"redirect_uri": "https://evil.example/"}, "redirect_uri_mismatch"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "https://www.googleapis.com/auth/everything"}, "invalid_scope"),
        ({"code_challenge_method": "plain"}, "S256"),
    ],
)
async def test_a_wrong_request_for_consent_is_shown_and_not_sent_back(
    sandbox: Sandbox, wrong: dict[str, str], why: str
) -> None:
    asked = {"client_id": CLIENT_ID, "redirect_uri": REDIRECT, "response_type": "code", "scope": READONLY}
    asked |= {"code_challenge": "x", **wrong}
    answer = await sandbox.http.get(f"{sandbox.url}/o/oauth2/v2/auth", params=asked)
    assert answer.status_code == 400
    assert why in answer.text


async def test_a_user_may_say_no(sandbox: Sandbox) -> None:
    sandbox.emulator.consents.behaviour.deny = True
    assert await consent(sandbox) == {"error": "access_denied", "state": "a b&c"}


async def test_fewer_scopes_may_be_granted_than_were_asked_for(sandbox: Sandbox) -> None:
    sandbox.emulator.consents.behaviour.withheld = frozenset({MODIFY})
    issued = await signed_in(sandbox, f"{READONLY} {MODIFY}")
    assert issued["scope"] == READONLY
    stored = next(sandbox.mailbox.search())
    body = {"addLabelIds": ["STARRED"]}
    answer = await sandbox.ask("POST", f"/messages/{stored.id}/modify", token=issued["access_token"], json=body)
    assert answer.status_code == 403


async def test_scopes_granted_before_are_included_when_asked_for(sandbox: Sandbox) -> None:
    await signed_in(sandbox, LABELS)
    issued = await signed_in(sandbox, READONLY, include_granted_scopes="true")
    assert set(issued["scope"].split()) == {LABELS, READONLY}


async def test_a_revoked_consent_ends_both_tokens(sandbox: Sandbox) -> None:
    issued = await signed_in(sandbox)
    answer = await sandbox.http.post(f"{sandbox.url}/revoke", data={"token": issued["refresh_token"]})
    assert answer.status_code == 200
    assert (await sandbox.ask("GET", "/profile", token=issued["access_token"])).status_code == 401
    again = await refreshed(sandbox, issued["refresh_token"])
    assert again.status_code == 400
    assert again.json() == {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    twice = await sandbox.http.post(f"{sandbox.url}/revoke", data={"token": issued["refresh_token"]})
    assert twice.json()["error"] == "invalid_token"


async def test_in_testing_a_refresh_token_dies_after_seven_days(sandbox: Sandbox) -> None:
    sandbox.emulator.consents.behaviour.testing = True
    issued = await signed_in(sandbox)
    assert issued["refresh_token_expires_in"] == 604800
    sandbox.clock.forward(604799)
    assert (await refreshed(sandbox, issued["refresh_token"])).status_code == 200
    sandbox.clock.forward(1)
    assert (await refreshed(sandbox, issued["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_published_program_keeps_its_consent(sandbox: Sandbox) -> None:
    issued = await signed_in(sandbox)
    assert "refresh_token_expires_in" not in issued
    sandbox.clock.forward(timedelta(days=400).total_seconds())
    assert (await refreshed(sandbox, issued["refresh_token"])).status_code == 200


async def test_a_missing_scope_is_told_with_all_that_would_do(sandbox: Sandbox) -> None:
    token = sandbox.emulator.issue_token(scopes=[SEND]).access_token
    answer = await sandbox.ask("GET", "/messages", token=token)
    assert answer.status_code == 403
    error = answer.json()["error"]
    assert error["status"] == "PERMISSION_DENIED"
    assert error["errors"] == [
        {"message": "Insufficient Permission", "domain": "global", "reason": "insufficientPermissions"}
    ]
    assert error["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    for scope in METHODS["messages.list"].scopes:
        assert scope in challenge


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/messages", 200),
        ("/messages?q=hello", 403),
        ("/messages/{id}?format=metadata", 200),
        ("/messages/{id}?format=minimal", 200),
        ("/messages/{id}", 403),
        ("/messages/{id}?format=raw", 403),
        ("/threads/{id}?format=metadata", 200),
    ],
)
async def test_a_token_for_metadata_reads_headers_and_searches_nothing(
    sandbox: Sandbox, path: str, status: int
) -> None:
    token = sandbox.emulator.issue_token(scopes=[METADATA]).access_token
    stored = next(sandbox.mailbox.search())
    assert (await sandbox.ask("GET", path.format(id=stored.id), token=token)).status_code == status


async def test_without_a_token_login_is_required(sandbox: Sandbox) -> None:
    answer = await sandbox.http.get(f"{sandbox.url}/gmail/v1/users/me/profile")
    assert answer.status_code == 401
    assert answer.json()["error"]["errors"][0]["reason"] == "required"


async def test_every_user_has_a_mailbox_and_tokens_of_his_own(sandbox: Sandbox, clock: ManualClock) -> None:
    ida = Mailbox(OTHER, sandbox.mailbox.rng, clock)
    sandbox.emulator.add(ida)
    issued = await signed_in(sandbox, login_hint=OTHER)
    profile = await sandbox.json("GET", "/profile", token=issued["access_token"])
    assert profile["emailAddress"] == OTHER
    assert profile["messagesTotal"] == 0
    answer = await sandbox.raw("GET", f"/gmail/v1/users/{OWNER}/profile", issued["access_token"])
    assert answer.status_code == 403


async def test_an_ordered_revocation_strikes_in_the_middle_of_work(sandbox: Sandbox) -> None:
    issued = await signed_in(sandbox)
    sandbox.emulator.faults.order(Fault(kind="revoke", method="history.list"))
    assert (await sandbox.ask("GET", "/profile", token=issued["access_token"])).status_code == 200
    answer = await sandbox.ask("GET", "/history?startHistoryId=1", token=issued["access_token"])
    assert answer.status_code == 401
    assert (await sandbox.ask("GET", "/profile", token=issued["access_token"])).status_code == 401
    assert (await refreshed(sandbox, issued["refresh_token"])).json()["error"] == "invalid_grant"


async def test_an_id_token_can_be_checked_with_the_published_keys(sandbox: Sandbox) -> None:
    issued = await signed_in(sandbox, f"{OPENID} {READONLY}")
    published = (await sandbox.http.get(f"{sandbox.url}/oauth2/v3/certs")).json()
    claims = jwt.decode(issued["id_token"], KeySet.import_key_set(published), ["RS256"]).claims
    assert claims["email"] == OWNER
    assert claims["aud"] == CLIENT_ID


async def test_the_configuration_names_addresses_that_answer(sandbox: Sandbox) -> None:
    found = (await sandbox.http.get(f"{sandbox.url}/.well-known/openid-configuration")).json()
    assert found["token_endpoint"] == f"{sandbox.url}/token"
    assert (await sandbox.http.get(found["jwks_uri"])).status_code == 200
    issued = await signed_in(sandbox)
    info = await sandbox.http.get(f"{sandbox.url}/tokeninfo", params={"access_token": issued["access_token"]})
    assert info.json()["scope"] == READONLY
    assert info.json()["expires_in"] == "3600"
