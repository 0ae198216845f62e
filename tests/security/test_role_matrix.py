"""Every role on every tool, for its own endpoint and another's, on a queue for agents and on one that is not.

The table is what is meant, written out by hand; the code has its own. `yes` is allowed; everything else is refused,
for the reason that stands there, and audited.
"""

import base64
from collections.abc import Collection
from datetime import date
from typing import Any
from uuid import UUID

import httpx2
import pytest
from mcp.client import Client
from mcp.types import CallToolResult

from postroom.core.backfill.job import NewBackfill
from postroom.core.metrics import ACCESS_REFUSED
from postroom.core.roles import Principal, Role
from postroom.operations.backfill.backfill_estimate import SampledMailbox, read_sample
from postroom.operations.people.audit import signature
from postroom.store.backfill import backfill
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account as store_account
from postroom.store.outbound.senders import SenderView, load_sender, sender_by_login
from postroom.store.outbound.submissions import submit_mails
from support.mail import done, keep_account, keep_mail
from support.patience import PATIENCE_S
from support.store.fault_cases_submissions import submission
from support.submission import added_sender
from support.switchboard import Served, envelope, mail

OWN, OTHER = "webhook:ci", "webhook:other"
MAILBOX = "gmail:user:ada@example.com"
SENDER = "grace@example.org"
WINDOW: dict[str, Any] = {
    "connector_type": "gmail",
    "endpoint_identity": MAILBOX,
    "target_categories": ["finance"],
    "date_from": "2024-01-01",
    "date_to": "2024-01-31",
}
BOUNCE = (
    b"Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n"
    b"Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n"
    b"Final-Recipient: rfc822; ada@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n--b--\r\n"
)
COUNTS = ("rows_processed", "rows_skipped", "cost_spent_cents")
TABLE = """
tool                      on        connector  dashboard  agent  admin  sender  metrics
ingest                    own       yes        role       role   yes    role    role
ingest                    other     identity   role       role   yes    role    role
ingest.batch              own       yes        role       role   yes    role    role
ingest.batch              other     identity   role       role   yes    role    role
connector.heartbeat       own       yes        role       role   role   role    role
connector.heartbeat       other     identity   role       role   role   role    role
credentials.access_token  own       yes        role       role   role   role    role
mail.changes              own       yes        role       role   role   role    role
contacts.export           own       yes        role       role   role   role    role
contacts.add              -         role       yes        role   yes    role    role
contacts.written_to       own       yes        role       role   role   role    role
filters.export            -         yes        role       role   role   role    role
connector.requests        own       yes        role       role   role   role    role
connector.reply           own       yes        role       role   role   role    role
connector.request         -         role       yes        role   yes    role    role
connector.list            -         role       yes        role   yes    role    role
create_backfill_job       -         role       yes        role   yes    role    role
backfill.pause            -         role       yes        role   yes    role    role
backfill.resume           -         role       yes        role   yes    role    role
backfill.cancel           -         role       yes        role   yes    role    role
backfill.list             -         role       yes        role   yes    role    role
backfill.estimate         -         role       yes        role   yes    role    role
backfill.poll             own       yes        role       role   role   role    role
backfill.poll             other     identity   role       role   role   role    role
backfill.progress         own       yes        role       role   role   role    role
queue.next                gateway   role       role       yes    yes    role    role
queue.next                email     role       role       queue  yes    role    role
queue.ack                 gateway   role       role       yes    yes    role    role
queue.ack                 email     role       role       queue  yes    role    role
queue.nack                gateway   role       role       yes    yes    role    role
queue.nack                email     role       role       queue  yes    role    role
queue.peek                gateway   role       yes        yes    yes    role    role
queue.peek                email     role       yes        queue  yes    role    role
queue.stats               -         role       yes        yes    yes    role    role
queue.replay              gateway   role       role       role   yes    role    role
queue.replay              email     role       role       role   yes    role    role
mail.search               -         role       yes        yes    yes    role    role
mail.read                 -         role       yes        yes    yes    role    role
mail.propose_action       -         role       role       yes    yes    role    role
email_search_and_ingest   -         role       yes        yes    yes    role    role
actions.list              -         role       yes        yes    yes    role    role
actions.undo              -         role       yes        yes    yes    role    role
decisions.explain         -         role       yes        yes    yes    role    role
mutations.pause           -         role       yes        role   yes    role    role
mutations.status          -         role       yes        role   yes    role    role
outbound.submit           -         role       role       role   role   yes     role
outbound.status           -         role       role       role   role   yes     role
outbound.cancel           -         role       role       role   role   yes     role
outbound.report           own       yes        role       role   role   role    role
POST                      own       yes        role       role   yes    role    role
POST                      other     identity   role       role   yes    role    role
POST.batch                own       yes        role       role   yes    role    role
POST.batch                other     identity   role       role   yes    role    role
"""
LINES: list[list[str]] = [line.split() for line in str(TABLE).strip().splitlines()]
HEAD, ROWS = LINES[0], LINES[1:]
ROLES = HEAD[2:]
TOOLS = {row[0] for row in ROWS if not row[0].startswith("POST")}
ERAS = ("2026-07-28", "legacy")


async def token_of(switchboard: Served, role: str) -> str:
    sender_id = (await sender_of(switchboard)).id if role == "sender" else None
    return await switchboard.token(role, OWN if role == "connector" else None, sender_id=sender_id)


async def sender_of(switchboard: Served) -> SenderView:
    """The sender that tokens are bound to."""
    database, clock = switchboard.services.database, switchboard.services.clock
    if await database.run(sender_by_login(SENDER)) is None:
        return await added_sender(database, SENDER, clock)
    return await database.run(load_sender(SENDER, clock()))


async def submitted(switchboard: Served) -> str:
    """A mail of that sender."""
    sender = await sender_of(switchboard)
    new = submission(sender.id)
    await switchboard.services.database.run(submit_mails([new], switchboard.services.clock()))
    return str(new.id)


async def arguments(switchboard: Served, tool: str, on: str, role: str) -> dict[str, Any]:
    """What would make this call succeed, were it allowed; messages to lease are put there, and leased, for it."""
    identity = {"source": {"endpoint_identity": OWN if on == "own" else OTHER}}
    match tool:
        case "ingest":
            return {"envelope": envelope(f"{role}-{on}", **identity)}
        case "ingest.batch":
            return {"items": [envelope(f"{role}-{on}", **identity)]}
        case "connector.heartbeat":
            return {"report": report(identity["source"]["endpoint_identity"])}
        case "create_backfill_job":
            return {**WINDOW, "consent": True}
        case "backfill.estimate":
            switchboard.services.parts.estimates.__dict__["_sample"] = sampled
            return WINDOW
        case "backfill.pause" | "backfill.resume" | "backfill.cancel":
            return {"job_id": await backfilled(switchboard, MAILBOX, paused=tool == "backfill.resume")}
        case "backfill.poll":
            return {"connector_type": "gmail", **identity["source"]}
        case "backfill.progress":
            return {**await worked_on(switchboard), **dict.fromkeys(COUNTS, 0)}
        case "connector.list" | "queue.stats" | "credentials.access_token" | "backfill.list":
            return {}
        case "actions.list" | "mutations.status":
            return {}
        case "mail.search":
            return {"query": "words"}
        case "email_search_and_ingest":
            await stored(switchboard)
            return {"query": "words", "endpoint_identity": "gmail:user:ada@example.com", "wait_s": 0}
        case "mail.read" | "decisions.explain":
            return {"message_id": str(await stored(switchboard))}
        case "mail.propose_action":
            return {"message_id": str(await stored(switchboard)), "action": "star", "why": "a test"}
        case "actions.undo":
            return {"action_id": str(await archived(switchboard))}
        case "mutations.pause":
            return {"reason": "a test"}
        case "contacts.export" | "filters.export" | "connector.requests":
            return {}
        case "contacts.add":
            return {"contacts": [{"address": "mara@lindqvist.example"}]}
        case "contacts.written_to":
            return {"addresses": ["mara@lindqvist.example"]}
        case "connector.request":
            return {"endpoint_identity": OWN}
        case "connector.reply":
            return {**await leased_request(switchboard, OWN), "result": {"ingested": 1}}
        case "mail.changes":
            return {"items": [{"message_id": "18f", "labels_added": ["STARRED"]}]}
        case "outbound.submit":
            return {"from": SENDER, "to": ["bob@example.net"], "text": "Hello."}
        case "outbound.status" | "outbound.cancel":
            return {"id": await submitted(switchboard)}
        case "outbound.report":
            return {"raw": base64.b64encode(BOUNCE).decode("ascii")}
        case "queue.replay":
            return {"queue": on, "since": "2026-11-15T00:00:00Z"}
        case "queue.next" | "queue.peek":
            return {"queue": on}
        case "queue.ack" | "queue.nack":
            await switchboard.services.intake.ingest((mail if on == "email" else envelope)(f"{role}-{tool}"))
            [leased] = await switchboard.services.buffer.next(on)
            refs = {"message_id": str(leased.message_id), "lease_token": str(leased.lease_token)}
            return {**refs, "reason": "a test"} if tool == "queue.nack" else refs
        case _:
            raise AssertionError(tool)


async def backfilled(switchboard: Served, endpoint: str, *, paused: bool = False) -> str:
    """A backfill that waits, or is paused."""
    database, now, id = switchboard.services.database, switchboard.services.clock(), new_id()
    new = NewBackfill("gmail", endpoint, ("finance",), date(2024, 1, 1), date(2024, 1, 31), consent=True)
    await database.run(backfill.create_backfill(id, new, 0, now, signature("test", "admin")))
    if paused:
        await database.run(backfill.pause_backfill(id, now, signature("test", "admin")))
    return str(id)


async def worked_on(switchboard: Served) -> dict[str, str]:
    """The backfill that the connector works on, and its lease."""
    services = switchboard.services
    if not (found := await services.parts.backfills.list_jobs(1, endpoint_identity=OWN)):
        await services.database.run(store_account(new_id(), "gmail", OWN, "ci@example.com", services.clock()))
        await backfilled(switchboard, OWN)
        signed = signature(Principal(Role.CONNECTOR, OWN).actor, Role.CONNECTOR)
        assert await services.parts.backfill_work.poll("gmail", OWN, signed)
        found = await services.parts.backfills.list_jobs(1, endpoint_identity=OWN)
    return {"job_id": str(found[0].id), "lease_token": str(found[0].lease_token)}


async def sampled(_endpoint: str, names: Collection[str], _arguments: dict[str, Any]) -> SampledMailbox:
    none = {"counted": 0, "about": 0}
    sample = dict.fromkeys(("read", "in_category", "full", "metadata", "skipped"), 0)
    categories = dict.fromkeys(names, none)
    return read_sample(
        {"total": none, "candidates": none, "categories": categories, "queries": 1, "sample": sample}, names
    )


async def stored(switchboard: Served) -> UUID:
    return await keep_mail(switchboard.services.database, switchboard.services.clock, new_id())


async def archived(switchboard: Served) -> UUID:
    return await done(switchboard.services.database, switchboard.services.clock, await stored(switchboard))


async def leased_request(switchboard: Served, identity: str) -> dict[str, str]:
    """Something asked of a connector, in its hands."""
    await switchboard.services.parts.requests.ask(OWN, "sync_now", {})
    [leased] = await switchboard.services.parts.requests.next(identity)
    return {"request_id": str(leased.id), "lease_token": str(leased.lease_token)}


def report(identity: str) -> dict[str, Any]:
    return {
        "schema_version": "connector.heartbeat.v1",
        "connector": {"connector_type": "webhook", "endpoint_identity": identity, "instance_id": "one"},
        "status": {"state": "healthy", "uptime_s": 1.0},
        "sent_at": "2026-11-15T08:00:00Z",
    }


def outcome(result: CallToolResult) -> str:
    """`yes`, or what the refusal is about."""
    content: dict[str, Any] = result.structured_content
    if not result.is_error and content.get("refused") == 1:
        content = content["results"][0]["error"]
    elif not result.is_error:
        return "yes"
    return reason(content)


def reason(problem: dict[str, Any]) -> str:
    assert problem["code"] == "refused", problem
    assert problem["remedy"]
    words = {"token": "role", "queue": "queue"}
    return words.get(problem["field"], "identity" if problem["field"].endswith("endpoint_identity") else "?")


async def post(switchboard: Served, tool: str, on: str, role: str) -> str:
    one = envelope(f"{role}-{on}-{tool}", source={"endpoint_identity": OWN if on == "own" else OTHER})
    headers = {"Authorization": f"Bearer {await token_of(switchboard, role)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        answer = await http.post(f"{switchboard.address}/v1/ingest", json=[one] if tool == "POST.batch" else one)
    content = answer.json()
    if answer.status_code == 200 and content.get("refused") == 1:
        return reason(content["results"][0]["error"])
    if answer.status_code == 200:
        return "yes"
    assert answer.status_code == 403
    return reason(content["error"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("role", ROLES)
async def test_a_role_is_listed_its_own_tools_and_no_others(switchboard: Served, role: str, era: str):
    column = HEAD.index(role)
    async with switchboard.client(await token_of(switchboard, role), era) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
    assert listed == {row[0] for row in ROWS if row[0] in TOOLS and row[column] in ("yes", "queue", "identity")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
async def test_a_call_does_what_the_table_says(switchboard: Served, row: list[str]):
    tool, on, *expected = row
    found: list[str] = []
    for role in ROLES:
        if tool.startswith("POST"):
            found.append(await post(switchboard, tool, on, role))
            continue
        given = await arguments(switchboard, tool, on, role)
        async with switchboard.client(await token_of(switchboard, role), "2026-07-28") as client:
            found.append(outcome(await client.call_tool(tool, given)))
    assert dict(zip(ROLES, found, strict=True)) == dict(zip(ROLES, expected, strict=True))
    refused = [role for role, word in zip(ROLES, expected, strict=True) if word != "yes"]
    audited = await switchboard.audit()
    assert [entry.role for entry in reversed(audited)] == refused
    assert all(entry.actor.startswith("token:") and entry.reason for entry in audited)
    counted = switchboard.services.tally.counts_of(ACCESS_REFUSED)
    assert counted.get(("identity",), 0) == expected.count("identity")
    assert counted.get(("role",), 0) == len(refused) - expected.count("identity")


async def test_an_agent_bound_to_an_account_has_every_tool_of_agents_but_the_queues(switchboard: Served):
    account = await keep_account(switchboard.services.database, switchboard.services.clock())
    token = await switchboard.token("agent", account_id=account.id)
    asked = [(row[0], row[1]) for row in ROWS if row[HEAD.index("agent")] in ("yes", "queue")]
    found: dict[str, set[str]] = {}
    async with switchboard.client(token, "2026-07-28") as agent:
        listed = {tool.name for tool in (await agent.list_tools()).tools}
        for tool, on in asked:
            result = await agent.call_tool(tool, await arguments(switchboard, tool, on, "bound"))
            found.setdefault(tool, set()).add(outcome(result))
            if result.is_error:
                assert "bound to an account" in result.structured_content["problem"]
    queues = {"queue.next", "queue.ack", "queue.nack", "queue.peek", "queue.stats"}
    assert found == {tool: {"role" if tool in queues else "yes"} for tool, _ in asked}
    assert listed == set(found) - queues
    assert {entry.object_id for entry in await switchboard.audit()} == queues


@pytest.mark.parametrize("role", ROLES)
async def test_the_older_protocol_is_no_way_around(switchboard: Served, role: str):
    expected = {(row[0], row[1]): row[HEAD.index(role)] for row in ROWS if row[0] in TOOLS}
    found: dict[tuple[str, str], str] = {}
    async with switchboard.client(await token_of(switchboard, role), "legacy") as client:
        for tool, on in expected:
            result = await client.call_tool(tool, await arguments(switchboard, tool, on, role))
            found[tool, on] = outcome(result)
    assert found == expected


async def test_what_is_refused_changes_nothing(switchboard: Served):
    async with switchboard.client(await switchboard.token("agent"), "2026-07-28") as agent:
        for tool, on in (("ingest", "own"), ("ingest.batch", "own"), ("connector.heartbeat", "own")):
            assert (await agent.call_tool(tool, await arguments(switchboard, tool, on, "agent"))).is_error
        given = await arguments(switchboard, "queue.ack", "email", "agent")
        assert (await agent.call_tool("queue.ack", given)).is_error
    async with switchboard.client(await switchboard.token("admin"), "2026-07-28") as admin:
        assert await waiting(admin) == {"email": (0, 1), "gateway": (0, 0)}
        assert (await admin.call_tool("connector.list")).structured_content == {"connectors": []}


async def waiting(client: Client) -> dict[str, tuple[int, int]]:
    """How many messages wait in each queue, and how many are leased."""
    queues = (await client.call_tool("queue.stats")).structured_content["queues"]
    return {
        queue["queue"]: (
            sum(each["waiting"] for each in queue["tiers"]),
            sum(each["leased"] for each in queue["tiers"]),
        )
        for queue in queues
    }


async def test_a_refusal_says_which_role_is_needed(switchboard: Served):
    async with switchboard.client(await switchboard.token("agent"), "2026-07-28") as agent:
        result = await agent.call_tool("queue.replay", {"queue": "gateway", "since": "2026-11-15T00:00:00Z"})
    assert result.is_error
    text = result.content[0].text  # type: ignore[union-attr]
    assert text == "token: the role agent may not call queue.replay; use a token of the role admin"


async def test_a_batch_keeps_what_is_ones_own_and_audits_the_rest_once(switchboard: Served):
    others = [envelope(number, source={"endpoint_identity": OTHER}) for number in range(3)]
    async with switchboard.client(await switchboard.token("connector", OWN), "2026-07-28") as connector:
        answer = await connector.call_tool("ingest.batch", {"items": [others[0], envelope("mine"), *others[1:]]})
    assert not answer.is_error
    statuses = [each["status"] for each in answer.structured_content["results"]]
    assert statuses == ["refused", "accepted", "refused", "refused"]
    assert len(await switchboard.audit()) == 1


async def test_a_connector_gets_the_token_of_its_own_mailbox_and_cannot_name_another(switchboard: Served):
    async with switchboard.client(await switchboard.token("connector", OWN), "2026-07-28") as connector:
        own = await connector.call_tool("credentials.access_token", {})
        named = await connector.call_tool("credentials.access_token", {"endpoint_identity": OTHER})
    assert own.structured_content["email"] == "ci@example.com"
    assert named.structured_content["code"] == "bad_input"
    async with switchboard.client(await switchboard.token("connector", OTHER), "2026-07-28") as connector:
        other = await connector.call_tool("credentials.access_token", {})
    assert other.is_error
    assert other.structured_content["code"] == "account_unusable"
    assert "ya29." not in other.content[0].text  # type: ignore[union-attr]


async def test_a_connector_is_asked_and_answers_for_its_own_endpoint_only(switchboard: Served):
    held = await leased_request(switchboard, OWN)
    await switchboard.services.parts.requests.ask(OWN, "sync_now", {})
    async with switchboard.client(await switchboard.token("connector", OTHER), "2026-07-28") as other:
        assert (await other.call_tool("connector.requests", {"max": 10})).structured_content == {"requests": []}
        answered = await other.call_tool("connector.reply", {**held, "result": {}})
        assert answered.structured_content["code"] == "lease_lost"
        named = await other.call_tool("connector.requests", {"endpoint_identity": OWN})
        assert named.structured_content["code"] == "bad_input"
    async with switchboard.client(await switchboard.token("connector", OWN), "2026-07-28") as own:
        assert len((await own.call_tool("connector.requests", {"max": 10})).structured_content["requests"]) == 1
        assert not (await own.call_tool("connector.reply", {**held, "result": {}})).is_error


async def test_a_connector_is_reported_the_contacts_of_its_own_mailbox_and_adds_to_that_one_only(switchboard: Served):
    async with switchboard.client(await switchboard.token("connector", OTHER), "2026-07-28") as other:
        await other.call_tool("contacts.written_to", {"addresses": ["uta@x.example"]})
        assert (await other.call_tool("contacts.export")).structured_content["addresses"] == ["uta@x.example"]
    async with switchboard.client(await switchboard.token("connector", OWN), "2026-07-28") as own:
        assert (await own.call_tool("contacts.export")).structured_content["addresses"] == []
