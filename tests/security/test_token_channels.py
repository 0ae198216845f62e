"""A connector's token is also bound to channels: what a build server sends is never taken for mail."""

from typing import Any

import httpx2
import pytest

from postroom.core.roles import CHANNELS, Role, channels_of
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import create_token, list_tokens, mint
from support.switchboard import Served, envelope

MAIL = {"channel": "email", "provider": "gmail"}


def mail(number: int) -> dict[str, Any]:
    return envelope(number, source=MAIL)


async def post(switchboard: Served, token: str, content: object) -> httpx2.Response:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        return await client.post(f"{switchboard.address}/v1/ingest", json=content)


async def test_a_webhooks_token_delivers_no_mail_over_http(switchboard: Served) -> None:
    token = await switchboard.token("connector", "webhook:ci")
    refused = await post(switchboard, token, mail(1))
    assert refused.status_code == 403
    assert refused.json()["error"]["field"] == "source.channel"
    assert "bound to that channel" in refused.json()["error"]["remedy"]
    assert (await post(switchboard, token, envelope(1))).status_code == 200
    (entry,) = await switchboard.audit()
    assert "source.channel" in (entry.reason or "")


async def test_of_a_batch_what_is_of_another_channel_is_refused_in_its_place(switchboard: Served) -> None:
    token = await switchboard.token("connector", "webhook:ci")
    answer = (await post(switchboard, token, [envelope(1), mail(2), envelope(3), mail(4)])).json()
    assert [each["status"] for each in answer["results"]] == ["accepted", "refused", "accepted", "refused"]
    assert answer["results"][1]["error"]["field"] == "source.channel"
    assert (answer["accepted"], answer["refused"]) == (2, 2)
    assert len(await switchboard.audit()) == 1
    nothing = (await post(switchboard, token, [mail(5)])).json()
    assert (nothing["accepted"], nothing["refused"]) == (0, 1)


async def test_a_webhooks_token_delivers_no_mail_over_mcp(switchboard: Served) -> None:
    token = await switchboard.token("connector", "webhook:ci")
    async with switchboard.client(token) as client:
        refused = await client.call_tool("ingest", {"envelope": mail(1)})
        assert refused.is_error
        batch = await client.call_tool("ingest.batch", {"items": [mail(1), envelope(2)]})
        assert [each["status"] for each in (batch.structured_content or {})["results"]] == ["refused", "accepted"]


async def test_channels_can_be_chosen_and_are_kept(switchboard: Served) -> None:
    minted = mint(Role.CONNECTOR, "webhook:ci", channels=["email", "webhook"])
    database, clock = switchboard.services.database, switchboard.services.clock
    await database.run(create_token(minted.token, Signature(new_id(), "test", "admin"), clock()))
    (kept,) = await database.run(list_tokens())
    assert kept.channels == ("email", "webhook")
    assert (await post(switchboard, minted.text, mail(1))).status_code == 200


async def test_an_admin_is_bound_to_no_channel(switchboard: Served) -> None:
    assert (await post(switchboard, await switchboard.token("admin"), mail(1))).status_code == 200


@pytest.mark.parametrize(
    ("identity", "channels"),
    [
        ("gmail:user:ada@example.com", {"email"}),
        ("imap:ada@example.com", {"email"}),
        ("webhook:ci", {"webhook"}),
        ("telegram:bot", {"telegram"}),
        ("redis:events", CHANNELS - {"email"}),
        ("monitoring-eu", CHANNELS - {"email"}),
    ],
)
def test_an_identity_stands_for_its_channels(identity: str, channels: set[str]) -> None:
    assert channels_of(identity) == channels
    assert set(mint(Role.CONNECTOR, identity).token.channels or ()) == channels
