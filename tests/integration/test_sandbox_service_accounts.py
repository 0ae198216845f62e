"""Service accounts of the emulator: Google's own library signs in with a key file; mismatches are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import google_auth_httplib2
import httplib2
import pytest
from google.oauth2 import service_account

from postroom.system.wall_clock import wall_clock
from postroom_sandbox.methods import PUBSUB, READONLY
from support.clocks import ManualClock
from support.sandbox import Sandbox, running_sandbox

ROBOT = "hints@home.iam.gserviceaccount.com"
SUBSCRIPTION = "projects/home/subscriptions/postroom"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    # Google's library signs with the time of this machine.
    clock = ManualClock()
    clock.now = wall_clock()
    async with running_sandbox(clock) as running:
        yield running


async def key_file(sandbox: Sandbox) -> dict[str, Any]:
    return (await sandbox.raw("POST", "/sandbox/serviceAccounts", json={"email": ROBOT})).json()


async def official_token(fields: dict[str, Any], *scopes: str) -> str:
    def sign_in() -> str:
        credentials: Any = service_account.Credentials.from_service_account_info(fields, scopes=scopes)
        with closing(httplib2.Http(proxy_info=None)) as http:
            credentials.refresh(google_auth_httplib2.Request(http))
        return credentials.token

    return await asyncio.to_thread(sign_in)


async def test_the_official_library_gets_a_token_that_pulls(sandbox: Sandbox) -> None:
    sandbox.emulator.pubsub.subscribe(SUBSCRIPTION, "projects/home/topics/gmail")
    body = {"maxMessages": 1, "returnImmediately": True}
    fields = await key_file(sandbox)
    token = await official_token(fields, PUBSUB)
    assert (await sandbox.raw("POST", f"/v1/{SUBSCRIPTION}:pull", token, json=body)).status_code == 200
    narrow = await official_token(fields, READONLY)
    refused = await sandbox.raw("POST", f"/v1/{SUBSCRIPTION}:pull", narrow, json=body)
    assert (refused.status_code, refused.json()["error"]["details"][0]["reason"]) == (
        403,
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
    )
    assert (await sandbox.ask("GET", "/profile", narrow)).json()["error"]["status"] == "FAILED_PRECONDITION"


async def test_a_statement_that_does_not_fit_is_refused_in_googles_words(sandbox: Sandbox) -> None:
    fields = await key_file(sandbox)
    other = await key_file(sandbox)
    for wrong, words in [
        ({**fields, "private_key": other["private_key"]}, "Invalid JWT Signature"),
        ({**fields, "private_key_id": "gone"}, "Invalid JWT Signature"),
        ({**fields, "client_email": "someone@else.example"}, "account not found"),
    ]:
        with pytest.raises(Exception, match=rf"invalid_grant.*{words}"):
            await official_token(wrong, PUBSUB)
    with pytest.raises(Exception, match="invalid_scope"):
        await official_token(fields, "https://www.googleapis.com/auth/drive")
    sandbox.clock.forward(2 * 3600)
    with pytest.raises(Exception, match="reasonable timeframe"):
        await official_token(fields, PUBSUB)
    sandbox.emulator.service_accounts.delete_keys(ROBOT)
    with pytest.raises(Exception, match="Invalid JWT Signature"):
        await official_token(fields, PUBSUB)
