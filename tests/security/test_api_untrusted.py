"""What strangers and models wrote stands under `untrusted` in every answer of the JSON API, and acts on no reader.

Every operation that reads is called, after words were planted wherever a stranger or a model can write. A new one with
names in its path fails here until it is called too.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from postroom.core.roles import Role
from postroom.core.rules.draft import RuleDraft
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.interfaces.http.services import Services
from postroom.operations.caller import Caller
from postroom.operations.outbound.destinations import pause_destination
from postroom.operations.outbound.senders import throttle_sender_for
from postroom.operations.outbound.suppressions import suppress
from postroom.operations.people.audit import signature
from postroom.operations.rules.rules import add_rules
from postroom.store.jobs.jobs import list_jobs
from postroom.store.people.tokens import create_token, mint
from support.api import TokenCaller
from support.clocks import ManualClock
from support.signed_in import Pages, running_pages
from support.sqlite import new_sqlite
from support.store.fault_cases_registry import signed
from support.strangers import ENDPOINT, EVIL, PLAIN, SENDER, leaks, plant, plant_backfill, plant_mail

# Operations whose answers have no words of others in them, or that name what is not planted.
NOT_PLANTED = {"load_members", "load_estimate", "load_estimate_run", "list_settled_approvals"}
SHOW_WORDS = {
    "peek_messages",
    "list_audit",
    "load_backfill",
    "list_backfills",
    "load_connector",
    "list_connector_cards",
    "list_mail",
    "read_message",
    "load_outbound",
    "load_conversation",
    "read_rule",
    "read_rules",
    "list_suppressions",
    "load_tenant_senders",
}


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield running
    await database.close()


async def planted(services: Services) -> Mapping[str, str]:
    """Plant words everywhere; return a value for every name in a path."""
    database, clock = services.database, services.clock
    message, _ = await plant(services)
    await plant_backfill(services)
    mail = await plant_mail(services)
    reason = signature("test", "admin", EVIL)
    draft = RuleDraft(f"{PLAIN} rule", {"sender_email": f"{PLAIN}@evil.example"}, "archive", description=PLAIN)
    await add_rules(Caller(database, signed(), clock), [draft])
    await throttle_sender_for(Caller(database, reason, clock), SENDER, 2)
    await suppress(Caller(database, signature("test", "admin", EVIL), clock), "example.org", f"{PLAIN}@evil.example")
    await pause_destination(Caller(database, signature("test", "admin", EVIL), clock), "evil.example")
    [job, *_] = await database.run(list_jobs(None, None, 5))
    return {
        "message": str(message),
        "mail": mail,
        "queue": "gateway",
        "tenant": "example.org",
        "id": str(job.id),
        "type": "webhook",
        "identity": ENDPOINT,
    }


async def test_words_of_others_stand_under_untrusted_in_every_answer(pages: Pages) -> None:
    names = dict(await planted(pages.services))
    minted = mint(Role.ADMIN)
    await pages.database.run(create_token(minted.token, signed(), pages.clock()))
    admin, seen = TokenCaller(pages, minted.text), set[str]()
    names["rule"] = (await admin.get("/rules")).json()["lines"][0]["rule"]["id"]
    names["job"] = (await admin.get("/backfill")).json()["lines"][0]["job"]["id"]
    for operation in OPERATIONS:
        if not operation.is_safe or operation.id in NOT_PLANTED:
            continue
        path = operation.path.replace(":path}", "}").format(
            **{name: quote(value, safe="") for name, value in names.items()}
        )
        query = {"stage": "ready"} if operation.id == "select_jobs" else {}
        answer = await admin.get(path, **query)
        assert answer.status_code == 200, (operation.name, answer.text)
        assert list(leaks(answer.json())) == [], operation.name
        if PLAIN in answer.text:
            seen.add(operation.id)
    # The words were there to leak.
    assert seen >= SHOW_WORDS
