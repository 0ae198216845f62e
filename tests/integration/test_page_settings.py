"""The settings page: tokens shown once, protected mail, settings with their origin and without secrets."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from postroom.operations.actions.protection import list_protected
from postroom.operations.people.people import list_people
from postroom.operations.people.tokens import list_tokens
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import list_audit
from support.page_app import visiting_pages, visitor
from support.page_forms import submit


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def test_a_token_is_shown_once_and_can_be_revoked(client: httpx2.AsyncClient, database: Database) -> None:
    made = await submit(client, "/settings/tokens", {"role": "agent", "name": "helper", "lifetime": "30 days"})
    assert made.status_code == 200
    secret = re.search(r"postroom_[0-9a-f]{32}_[A-Za-z0-9_-]{43}", made.text)
    assert secret is not None
    page = (await client.get("/settings")).text
    assert "helper" in page
    assert secret[0] not in page
    [token] = await list_tokens(database)
    assert token.expires_at is not None
    await submit(client, f"/settings/tokens/{token.id}/revoke")
    [token] = await list_tokens(database)
    assert token.revoked_at is not None
    entries = await database.run(list_audit(9))
    assert [(each.action, each.actor) for each in entries] == [
        ("token.revoke", "person:owner"),
        ("token.create", "person:owner"),
    ]
    assert secret[0] not in str(entries)


async def test_only_admins_make_and_revoke_tokens_and_only_after_proving_who_they_are(
    database: Database, tmp_path: Path
) -> None:
    async with visiting_pages(database, tmp_path, visitor("operator")) as client:
        assert (await submit(client, "/settings/tokens", {"role": "admin"})).status_code == 403
        assert "Make a token" not in (await client.get("/settings")).text
    async with visiting_pages(database, tmp_path, visitor("admin", is_fresh=False)) as client:
        answer = await submit(client, "/settings/tokens", {"role": "admin"}, back="/settings")
        assert answer.headers["location"] == "/sign-in/again?to=/settings"
    assert await list_tokens(database) == []


@pytest.mark.parametrize("fields", [{"role": "king"}, {"role": "connector"}, {"role": "agent", "name": "n" * 500}])
async def test_a_token_that_makes_no_sense_is_refused_on_the_page(
    client: httpx2.AsyncClient, database: Database, fields: dict[str, str]
) -> None:
    answer = await submit(client, "/settings/tokens", fields, back="/settings")
    assert answer.status_code == 303
    page = (await client.get(answer.headers["location"])).text
    assert 'id="problem"' in page
    assert await list_tokens(database) == []


async def test_people_are_invited_by_a_link_that_is_shown_once_and_get_other_roles(
    client: httpx2.AsyncClient, database: Database
) -> None:
    invited = await submit(client, "/settings/people", {"name": "ada", "role": "viewer"})
    assert re.search(r"/sign-in/once#[\w-]{20,}", invited.text)
    [ada] = await list_people(database)
    assert (ada.name, ada.role) == ("ada", "viewer")
    assert "their link is not used" in (await client.get("/settings")).text
    await submit(client, "/settings/people/ada/role", {"role": "operator"})
    [ada] = await list_people(database)
    assert ada.role == "operator"
    again = await submit(client, "/settings/people/ada/link")
    assert "/sign-in/once#" in again.text
    await submit(client, "/settings/people/ada/role", {"role": "king"}, back="/settings")
    assert 'data-mood="bad"' in (await client.get("/settings")).text
    await submit(client, "/settings/people/ada/remove")
    assert await list_people(database) == []


async def test_a_refusal_says_which_role_is_needed(database: Database, tmp_path: Path) -> None:
    async with visiting_pages(database, tmp_path, visitor("viewer")) as client:
        answer = await submit(client, "/settings/people", {"name": "eve", "role": "admin"})
    assert answer.status_code == 403
    assert "this needs the role admin, and yours is viewer" in answer.text


async def test_mail_is_protected_and_released(client: httpx2.AsyncClient, database: Database) -> None:
    await submit(client, "/settings/protection", {"kind": "sender", "value": "Ann@X.example", "reason": "family"})
    [kept] = await list_protected(database)
    assert (kept.kind, kept.value, kept.reason) == ("sender", "ann@x.example", "family")
    assert "family" in (await client.get("/settings")).text
    await submit(client, "/settings/protection/remove", {"kind": "sender", "value": "ann@x.example"})
    assert await list_protected(database) == []
    await submit(client, "/settings/protection", {"kind": "planet", "value": "x"}, back="/settings")
    assert "There is no kind" in (await client.get("/settings")).text


async def test_settings_are_shown_with_their_origin_and_without_secrets(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_MODEL_API_KEY", "sk-very-secret")
    async with visiting_pages(database, tmp_path) as client:
        page = (await client.get("/settings")).text
    assert "web.port" in page
    assert "POSTROOM_WEB_PORT" in page
    assert "very-secret" not in page


async def test_a_few_settings_are_changed_on_the_page_where_nothing_stronger_sets_them(
    database: Database, tmp_path: Path
) -> None:
    (tmp_path / "postroom.toml").write_text("[safety]\nconfidence = 0.8\n")
    address = "/settings/values/safety.approval_hours"
    async with visiting_pages(database, tmp_path) as client:
        page = (await client.get("/settings")).text
        assert f"Set in <bdi>{tmp_path / 'postroom.toml'}</bdi>. Change it there, then restart." in page
        assert "/settings/values/safety.confidence" not in page
        assert f"{address}/reset" not in page
        refused = await submit(client, "/settings/values/safety.confidence", {"value": "0.1"}, back="/settings")
        assert "which counts more" in (await client.get(refused.headers["location"])).text
        await submit(client, address, {"value": "48"}, back="/settings")
        page = (await client.get("/settings")).text
        assert "Changed. Time to approve: 48 hours." in page
        assert "Changed by <bdi>person:owner</bdi>" in page
        refused = await submit(client, address, {"value": "never"}, back="/settings")
        page = (await client.get(refused.headers["location"])).text
        said = "&#x27;never&#x27; is refused. Use a whole number from 1 to 720."
        assert said in page[page.index('value="never"') :][:600]
        await submit(client, f"{address}/reset", back="/settings")
        assert "Reset. Time to approve: 24 hours." in (await client.get("/settings")).text
    async with visiting_pages(database, tmp_path, visitor("operator")) as client:
        assert (await submit(client, address, {"value": "1"})).status_code == 403
    async with visiting_pages(database, tmp_path, visitor("admin", is_fresh=False)) as client:
        assert "/sign-in/again" in (await submit(client, address, {"value": "1"})).headers["location"]
    kept = [each.action for each in await database.run(list_audit(9)) if each.action.startswith("settings.")]
    assert kept == ["settings.reset", "settings.change"]


async def test_a_viewer_reads_and_is_offered_nothing_to_press(database: Database, tmp_path: Path) -> None:
    async with visiting_pages(database, tmp_path, visitor("viewer")) as client:
        page = (await client.get("/settings")).text
        assert 'method="post"' not in page
        for address in ("/settings/protection", "/settings/protection/remove", "/settings/tokens", "/pause", "/resume"):
            assert (await submit(client, address, {"kind": "sender", "value": "a@x.example"})).status_code == 403
    assert await list_protected(database) == []
