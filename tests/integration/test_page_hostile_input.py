"""What a person types or an address holds comes back as text: filters, paths and forms with hostile values."""

from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from postroom.store.engine.database import Database
from support.hostile_text import PAYLOADS, smuggled
from support.page_app import visiting_pages
from support.page_forms import submit
from support.scale import SOAK
from support.sqlite import new_sqlite

ADDRESSES = (
    "/mail?q={}",
    "/mail?account={}",
    "/mail?since={}",
    "/mail/{}",
    "/approvals?after={}",
    "/rules/new?from={}&subject={}",
    "/rules?scope={}",
    "/filters?after={}",
    "/connectors/gmail/{}",
    "/connectors/{}/x",
    "/backfill?before={}",
    "/queues?queue={}",
    "/jobs?type={}&account={}",
    "/jobs?error={}",
    "/outbound?tenant={}",
    "/outbound?q={}",
    "/audit?actor={}",
    "/audit?action={}",
)
FORMS = (
    ("/settings/protection", ("value", "reason"), {"kind": "label"}),
    ("/settings/people", ("name",), {"role": "viewer"}),
    ("/settings/tokens", ("name", "identity"), {"role": "agent", "lifetime": "no end"}),
    (
        "/rules/draft",
        ("name", "value", "argument"),
        {"way": "form", "kind": "from", "how": "is", "action": "apply_label"},
    ),
    ("/rules/save", ("text",), {"way": "text"}),
    ("/rules/import/read", ("pasted",), {"format": "yaml"}),
    ("/outbound/destinations/pause", ("destination", "reason"), {}),
    ("/connectors/new/begin", ("email", "level"), {}),
    ("/connectors/new/finish", ("answer",), {}),
    ("/connectors/imap/connect", ("email", "imap_host", "labels_as", "certificates"), {"password": "x"}),
    (
        "/connectors/imap/connect",
        ("password", "user_name"),
        {"email": "ada@example.org", "imap_host": "127.0.0.1", "imap_port": "1"},
    ),
    ("/outbound/suppress", ("tenant", "address"), {}),
    ("/jobs/cause/retry", ("cause",), {}),
    ("/queues/dismiss", ("queue", "messages"), {}),
)


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> Database:
    return await new_sqlite(tmp_path, migrated_sqlite)


def _is_well(answer: httpx2.Response, what: str, value: str) -> None:
    assert answer.status_code < 500, (what, value, answer.status_code)
    assert [each for each in smuggled(answer.text) if each != value[:40]] == [], (what, value)


async def test_what_is_typed_comes_back_as_text(database: Database, tmp_path: Path) -> None:
    """Each text at one of the places, in the soak at all of them."""
    places = len(ADDRESSES) + len(FORMS)
    async with visiting_pages(database, tmp_path) as client:
        for number, payload in enumerate(PAYLOADS):
            typed = payload.encode("utf-8", "replace").decode()
            for place in range(places) if SOAK else (number % places,):
                if place < len(ADDRESSES):
                    await _ask(client, ADDRESSES[place], typed)
                else:
                    await _submit(client, *FORMS[place - len(ADDRESSES)], typed)
    await database.close()


async def _ask(client: httpx2.AsyncClient, address: str, typed: str) -> None:
    _is_well(await client.get(address.replace("{}", quote(typed[:2_000], safe=""))), address, typed)


async def _submit(
    client: httpx2.AsyncClient, address: str, fields: tuple[str, ...], others: dict[str, str], typed: str
) -> None:
    client.cookies.clear()
    answer = await submit(client, address, others | dict.fromkeys(fields, typed), back="/backfill")
    _is_well(answer, address, typed)
    if answer.status_code == 303:
        _is_well(await client.get(answer.headers["location"]), address, typed)
