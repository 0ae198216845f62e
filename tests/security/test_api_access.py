"""Who may call which operation of the JSON API: the whole table, tried over real HTTP with every kind of caller."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from postroom.core.access import Access
from postroom.interfaces.http.api.operation import PREFIX, ApiOperation
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.store.people.audit import list_audit
from support.api import RunningApi, TokenCaller, running_api
from support.sqlite import new_sqlite
from support.store.dump import dump

NOTHING = "00000000-0000-0000-0000-000000000000"
READ = ("viewer", "admin dashboard", "")
STEER = ("operator", "admin dashboard", "")
OPERATE = ("operator", "admin", "")
PEOPLE = ("operator", "", "")
AGAIN = ("operator", "", "fresh")
ANYBODY = ("viewer", "admin agent connector dashboard sender", "")

# Every operation that is not read by viewers and by tokens of the roles dashboard and admin: the lowest role of people,
# the roles of tokens, and whether people prove again who they are.
TABLE: Mapping[str, tuple[str, str, str]] = {
    "GET /openapi.json": ANYBODY,
    "GET /session": ANYBODY,
    "GET /settings/people": ("admin", "admin", ""),
    "POST /pause": STEER,
    "POST /resume": AGAIN,
    "POST /mail/{message}/actions": PEOPLE,
    "POST /mail/{message}/reclassify": OPERATE,
    "POST /actions/{action}/undo": STEER,
    "POST /actions/{action}/wrong": PEOPLE,
    "POST /approvals/answers": AGAIN,
    "POST /approvals/{action}/approve": PEOPLE,
    "POST /approvals/{action}/reject": PEOPLE,
    "POST /approvals/{action}/take-back": PEOPLE,
    "POST /approvals/{action}/always": PEOPLE,
    "POST /rules": OPERATE,
    "POST /rules/check": OPERATE,
    "POST /rules/proposals/{proposal}/accept": OPERATE,
    "POST /rules/proposals/{proposal}/dismiss": OPERATE,
    "PUT /rules/{rule}": OPERATE,
    "DELETE /rules/{rule}": OPERATE,
    "POST /rules/{rule}/enable": OPERATE,
    "POST /rules/{rule}/confirm": AGAIN,
    "POST /rules/{rule}/disable": OPERATE,
    "POST /rules/{rule}/move": OPERATE,
    "POST /rules/{rule}/watch": OPERATE,
    "POST /rules/{rule}/act": OPERATE,
    "POST /connectors/sync": STEER,
    "POST /connectors/pause": OPERATE,
    "POST /connectors/resume": AGAIN,
    "POST /connectors/act": AGAIN,
    "POST /connectors/retry": OPERATE,
    "POST /backfill": STEER,
    "POST /backfill/estimates": STEER,
    "POST /backfill/estimates/runs/{run}/cancel": STEER,
    "POST /backfill/{job}/pause": STEER,
    "POST /backfill/{job}/resume": STEER,
    "POST /backfill/{job}/cancel": STEER,
    "POST /queues/{queue}/dismiss": OPERATE,
    "POST /queues/{queue}/replay": OPERATE,
    "POST /jobs/causes/{key}": OPERATE,
    "POST /jobs/bulk": OPERATE,
    "POST /jobs/{id}/retry": OPERATE,
    "POST /jobs/{id}/cancel": OPERATE,
    "POST /jobs/{id}/dismiss": OPERATE,
    "POST /outbound/tenants/{tenant}/pause": OPERATE,
    "POST /outbound/tenants/{tenant}/resume": AGAIN,
    "POST /outbound/senders/{username}/throttle": OPERATE,
    "POST /outbound/senders/{username}/release": OPERATE,
    "POST /outbound/mail/{mail}/cancel": OPERATE,
    "POST /outbound/mail/{mail}/send-now": OPERATE,
    "POST /outbound/mail/{mail}/resolve": OPERATE,
    "POST /outbound/suppressions": OPERATE,
    "POST /outbound/suppressions/remove": OPERATE,
    "POST /outbound/destinations/{destination}/pause": OPERATE,
    "POST /outbound/destinations/{destination}/resume": AGAIN,
    "POST /settings/tokens": ("admin", "", "fresh"),
    "POST /settings/people": ("admin", "", "fresh"),
    "POST /settings/people/{name}/link": ("admin", "", "fresh"),
    "POST /settings/people/{name}/role": ("admin", "", "fresh"),
    "DELETE /settings/people/{name}": ("admin", "", "fresh"),
    "POST /settings/tokens/{token}/revoke": ("admin", "", ""),
    "PUT /settings/values/{name}": ("admin", "", "fresh"),
    "DELETE /settings/values/{name}": ("admin", "", "fresh"),
    "POST /settings/protection": OPERATE,
    "POST /settings/protection/remove": AGAIN,
}


@pytest.fixture
async def api(tmp_path: Path, migrated_sqlite: Path) -> AsyncIterator[RunningApi]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_api(database, tmp_path) as running:
        yield running
    await database.close()


def row(access: Access) -> tuple[str, str, str]:
    return access.person, " ".join(sorted(access.tokens)), "fresh" if access.is_fresh else ""


def filled(operation: ApiOperation) -> str:
    """The path, with the id of nothing for each name in it."""
    parts = [NOTHING if part.startswith("{") else part for part in operation.path.split("/")]
    return "/".join(parts)


def test_the_table_is_that_of_the_operations() -> None:
    known = {f"{each.method} {each.path}": row(each.access) for each in OPERATIONS}
    assert {name: TABLE.get(name, READ) for name in known} == known
    assert TABLE.keys() <= known.keys()
    assert all(name.startswith("GET ") for name in known.keys() - TABLE.keys()), "a change is in the table"


def test_no_token_answers_an_approval_acts_as_the_owner_or_does_what_asks_for_a_fresh_proof() -> None:
    own = ("/approvals", "/mail/{message}/actions", "/settings/tokens", "/settings/people")
    for each in OPERATIONS:
        is_own = not each.is_safe and each.path.startswith(own)
        assert not (each.access.tokens and (is_own or each.access.is_fresh)), each.name


async def test_a_refusal_is_audited_with_the_token(api: RunningApi) -> None:
    agent = await api.token("agent")
    path = f"/approvals/{api.asked.id}/approve"
    assert (await agent.call("POST", path, {"shown": api.asked.action_hash})).status_code == 403
    [entry] = await api.pages.database.run(list_audit(10, action="access.refused"))
    assert entry.object_id == f"POST {PREFIX}/approvals/{{action}}/approve"
    assert entry.actor.startswith("token:")


FORGED: Mapping[str, tuple[dict[str, str], int]] = {
    "no token": ({"Authorization": ""}, 401),
    "not a token": ({"Authorization": "Bearer nonsense"}, 401),
    "another site": ({"Origin": "https://evil.example"}, 403),
    "a frame without an origin": ({"Origin": "null"}, 403),
}


async def test_nobody_else_gets_through(api: RunningApi) -> None:
    admin = await api.token()
    before = _without(await dump(api.pages.database))
    for operation in (each for each in OPERATIONS if not each.is_safe or each.path == "/mail"):
        for why, (headers, status) in FORGED.items():
            answer = await admin.call(operation.method, filled(operation), {}, headers)
            assert answer.status_code == status, (why, operation.name, answer.text)
            assert answer.json()["error"].keys() == {"code", "message", "field", "remedy"}
    assert _without(await dump(api.pages.database)) == before


async def test_a_token_that_is_wrong_is_not_saved_by_a_session(api: RunningApi) -> None:
    mara = await api.person()
    wrong = {"Authorization": "Bearer nonsense"}
    assert (await mara.call("GET", "/overview")).status_code == 200
    assert (await mara.call("GET", "/overview", headers=wrong)).status_code == 401


async def test_a_session_that_is_not_fresh_is_asked_for_a_proof(api: RunningApi) -> None:
    mara = await api.person()
    api.pages.clock.forward(10 * 60)
    for operation in OPERATIONS:
        if operation.access.is_fresh:
            answer = await mara.call(operation.method, filled(operation), {})
            assert answer.status_code == 403, operation.name
            assert answer.json()["error"]["code"] == "proof_needed"
            assert "/sign-in/again" in answer.json()["error"]["remedy"]


async def test_a_host_name_that_is_not_ours_is_refused(api: RunningApi) -> None:
    admin: TokenCaller = await api.token()
    answer = await admin.call("GET", "/overview", None, {"Host": "evil.example"})
    assert answer.status_code == 421
    assert answer.json()["error"]["code"] == "foreign_host"


def _without(tables: Mapping[str, object]) -> Mapping[str, object]:
    """Without what every call may write: the audit log of refusals, and when a token was last used."""
    return {name: rows for name, rows in tables.items() if name not in ("audit", "sqlite_sequence", "tokens")}
