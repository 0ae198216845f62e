"""Access belongs to the operation, not to the interface: what one interface refuses, no other allows.

The table names each operation that exists on more than one interface: its tool over MCP, its operation of the JSON API,
and its form on the pages. Whatever is on one interface only is listed below it, so that a new tool, operation or form
has to be put somewhere here. The command line acts as the machine's owner, and refuses nothing.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.api.operation import Operation
from postroom.api.registry import OPERATIONS
from postroom.core.access import SEES_ALL
from postroom.core.roles import Role
from postroom.dashboard.forms import FormRoute
from postroom.switchboard.tools.registry import ALL_TOOLS, TOOLS_BY_NAME
from support.clocks import ManualClock
from support.signed_in import Pages, running_pages
from support.sqlite import new_sqlite

TABLE = """
tool                     operation                                        form
mutations.pause          POST /pause                                      /pause
-                        POST /resume                                     /resume
mutations.status         GET /overview                                    -
mail.search              GET /mail                                        -
mail.read                GET /mail/{message}                              -
decisions.explain        GET /mail/{message}                              -
actions.list             GET /mail                                        -
actions.undo             POST /actions/{action}/undo                      /mail/{message}/undo
-                        POST /mail/{message}/actions                     /mail/{message}/do
-                        POST /mail/{message}/reclassify                  /mail/{message}/reclassify
-                        POST /actions/{action}/wrong                     /mail/{message}/wrong
-                        POST /approvals/{action}/approve                 /approvals/{action}/approve
-                        POST /approvals/{action}/reject                  /approvals/{action}/reject
-                        POST /approvals/{action}/always                  /approvals/{action}/always
-                        POST /approvals/answers                          /approvals/approve-several
-                        POST /approvals/answers                          /approvals/reject-several
-                        POST /rules                                      /rules/save
-                        PUT /rules/{rule}                                /rules/save
-                        POST /rules/check                                /rules/check
-                        DELETE /rules/{rule}                             /rules/{rule}/remove
-                        POST /rules/{rule}/enable                        /rules/{rule}/enable
-                        POST /rules/{rule}/confirm                       /rules/{rule}/confirm
-                        POST /rules/{rule}/disable                       /rules/{rule}/disable
-                        POST /rules/{rule}/move                          /rules/{rule}/move
-                        POST /rules/{rule}/watch                         /rules/{rule}/watch
-                        POST /rules/{rule}/act                           /rules/{rule}/act
-                        POST /rules/proposals/{proposal}/accept          /rules/proposals/{proposal}/accept
-                        POST /rules/proposals/{proposal}/dismiss         /rules/proposals/{proposal}/dismiss
connector.list           GET /connectors                                  -
connector.request        POST /connectors/sync                            /connectors/sync
-                        POST /connectors/pause                           /connectors/pause
-                        POST /connectors/resume                          /connectors/resume
-                        POST /connectors/act                             /connectors/act
-                        POST /connectors/retry                           /connectors/retry
backfill.list            GET /backfill                                    -
backfill.estimate        POST /backfill/estimates                         /backfill/estimate
-                        POST /backfill/estimates/runs/{run}/cancel       /backfill/estimate/cancel
create_backfill_job      POST /backfill                                   /backfill/create
backfill.pause           POST /backfill/{job}/pause                       /backfill/{job}/pause
backfill.resume          POST /backfill/{job}/resume                      /backfill/{job}/resume
backfill.cancel          POST /backfill/{job}/cancel                      /backfill/{job}/cancel
queue.peek               GET /queues/{queue}/waiting                      -
queue.stats              GET /queues/{queue}                              -
queue.replay             POST /queues/{queue}/replay                      /queues/replay
-                        POST /queues/{queue}/dismiss                     /queues/dismiss
-                        POST /jobs/{id}/retry                            /jobs/{id}/retry
-                        POST /jobs/{id}/cancel                           /jobs/{id}/cancel
-                        POST /jobs/{id}/dismiss                          /jobs/{id}/dismiss
-                        POST /jobs/bulk                                  /jobs/bulk/{verb}
-                        POST /jobs/causes/{key}                          /jobs/cause/{verb}
-                        POST /outbound/tenants/{tenant}/pause            /outbound/tenants/pause
-                        POST /outbound/tenants/{tenant}/resume           /outbound/tenants/resume
-                        POST /outbound/senders/{username}/throttle       /outbound/senders/throttle
-                        POST /outbound/senders/{username}/release        /outbound/senders/release
-                        POST /outbound/suppressions                      /outbound/suppress
-                        POST /outbound/suppressions/remove               /outbound/unsuppress
-                        POST /outbound/destinations/{destination}/pause  /outbound/destinations/pause
-                        POST /outbound/destinations/{destination}/resume /outbound/destinations/resume
-                        POST /outbound/mail/{mail}/cancel                /outbound/{message}/cancel
-                        POST /outbound/mail/{mail}/send-now              /outbound/{message}/send-now
-                        POST /outbound/mail/{mail}/resolve               /outbound/{message}/resolve
-                        POST /settings/tokens                            /settings/tokens
-                        POST /settings/tokens/{token}/revoke             /settings/tokens/{token}/revoke
-                        POST /settings/people                            /settings/people
-                        POST /settings/people/{name}/link                /settings/people/{name}/link
-                        POST /settings/people/{name}/role                /settings/people/{name}/role
-                        DELETE /settings/people/{name}                   /settings/people/{name}/remove
-                        POST /settings/protection                        /settings/protection
-                        POST /settings/protection/remove                 /settings/protection/remove
"""
ROWS = [(tool, f"{method} {path}", form) for tool, method, path, form in map(str.split, TABLE.strip().splitlines()[1:])]
# Only over MCP and `/v1`: what connectors, senders and consumers of queues do, and proposals, which agents make.
ONLY_TOOLS = [
    "ingest",
    "ingest.batch",
    "connector.heartbeat",
    "connector.requests",
    "connector.reply",
    "credentials.access_token",
    "mail.changes",
    "contacts.export",
    "contacts.written_to",
    "contacts.add",
    "filters.export",
    "backfill.poll",
    "backfill.progress",
    "outbound.report",
    "queue.next",
    "queue.ack",
    "queue.nack",
    "mail.propose_action",
    "email_search_and_ingest",
    "outbound.submit",
    "outbound.status",
    "outbound.cancel",
]
# Only on the pages: what is begun, uploaded or drafted there, and what asks Google or a mail server.
ONLY_FORMS = [
    "/jobs/runs/{run}/cancel",
    "/mail/bring-back",
    "/connectors/new/begin",
    "/connectors/new/finish",
    "/connectors/new/forget",
    "/connectors/imap/connect",
    "/rules/simulate",
    "/rules/simulations/{task}/cancel",
    "/rules/starter/{starter}/add",
    "/rules/import/read",
    "/rules/import/keep",
    "/rules/import/enable",
    "/rules/draft",
    "/outbound/simulate",
    "/outbound/simulate/cancel",
]


@pytest.fixture
async def forms(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[dict[str, FormRoute]]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield forms_of(running)
    await database.close()


def forms_of(pages: Pages) -> dict[str, FormRoute]:
    return {route.path: route for route in pages.app.routes if isinstance(route, FormRoute)}


def operations() -> dict[str, Operation]:
    return {f"{each.method} {each.path}": each for each in OPERATIONS}


def test_a_tool_and_an_operation_of_the_api_are_for_the_same_tokens() -> None:
    known = operations()
    pairs = [(tool, operation) for tool, operation, _ in ROWS if tool != "-"]
    over_mcp = {pair: sorted(TOOLS_BY_NAME[pair[0]].roles & SEES_ALL) for pair in pairs}
    assert over_mcp == {pair: sorted(known[pair[1]].access.tokens) for pair in pairs}


def test_the_api_serves_no_token_that_is_bound_to_something() -> None:
    for name, operation in operations().items():
        assert operation.access.tokens <= SEES_ALL or name in ("GET /session", "GET /openapi.json"), name


async def test_a_form_and_an_operation_of_the_api_are_for_the_same_people(forms: dict[str, FormRoute]) -> None:
    known = operations()
    pairs = [(operation, form) for _, operation, form in ROWS if form != "-"]
    on_pages = {pair: (forms[pair[1]].role, forms[pair[1]].again) for pair in pairs}
    assert on_pages == {pair: (known[pair[0]].access.person, known[pair[0]].access.is_fresh) for pair in pairs}


async def test_every_tool_operation_and_form_is_compared(forms: dict[str, FormRoute]) -> None:
    tools, compared, submitted = (set(column) - {"-"} for column in zip(*ROWS, strict=True))
    assert tools | set(ONLY_TOOLS) == {each.name for each in ALL_TOOLS}
    assert not tools & set(ONLY_TOOLS)
    assert {name for name, each in operations().items() if not each.is_safe} <= compared <= operations().keys()
    assert submitted | set(ONLY_FORMS) == forms.keys()
    assert not submitted & set(ONLY_FORMS)


def test_no_tool_does_what_is_a_persons_own() -> None:
    own = {operation for operation, each in operations().items() if not each.access.tokens}
    assert [row for row in ROWS if row[1] in own and row[0] != "-"] == []
    assert not {"mutations.resume", "approvals.approve"} & TOOLS_BY_NAME.keys()


def test_only_over_mcp_are_tools_that_no_person_has_a_form_for() -> None:
    unbound = {name for name in ONLY_TOOLS if TOOLS_BY_NAME[name].roles & {Role.DASHBOARD}}
    assert unbound == {"contacts.add", "email_search_and_ingest"}
