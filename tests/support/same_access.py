"""The operations that exist on more than one interface, and those that exist on one only, with what each allows.

The table names each operation that exists on more than one interface: its tool over MCP, its operation of the JSON API,
and its form on the pages. Whatever is on one interface only is listed below it, so that a new tool, operation or form
has to be put somewhere here. The command line acts as the machine's owner, and refuses nothing.
"""

from postroom.core.access import ANSWER, OWN, OWN_AGAIN, SEES_ALL
from postroom.interfaces.dashboard.forms import FormRoute
from postroom.interfaces.http.api.operation import ApiOperation
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from support.signed_in import Pages

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
# Only on the pages: what is begun, uploaded or drafted there, and what asks Google or a mail server; with its people.
ONLY_FORMS = {
    "/jobs/runs/{run}/cancel": ANSWER,
    "/mail/bring-back": ANSWER,
    "/connectors/new/begin": OWN_AGAIN,
    "/connectors/new/finish": OWN_AGAIN,
    "/connectors/new/forget": OWN,
    "/connectors/imap/connect": OWN_AGAIN,
    "/connectors/new/{provider}/connect": OWN_AGAIN,
    "/rules/simulate": ANSWER,
    "/rules/simulations/{task}/cancel": ANSWER,
    "/rules/starter/{starter}/add": ANSWER,
    "/rules/import/read": ANSWER,
    "/rules/import/keep": ANSWER,
    "/rules/import/enable": ANSWER,
    "/rules/draft": ANSWER,
    "/outbound/simulate": ANSWER,
    "/outbound/simulate/cancel": ANSWER,
}


def forms_of(pages: Pages) -> dict[str, FormRoute]:
    return {route.path: route for route in pages.app.routes if isinstance(route, FormRoute)}


def operations() -> dict[str, ApiOperation]:
    return {f"{each.method} {each.path}": each for each in OPERATIONS}


def tools_that_differ() -> list[tuple[str, str]]:
    """The tools whose tokens differ from those of the same operation of the API, each with that operation."""
    known = operations()
    pairs = [(tool, operation) for tool, operation, _ in ROWS if tool != "-"]
    return [pair for pair in pairs if TOOLS_BY_NAME[pair[0]].roles & SEES_ALL != known[pair[1]].access.tokens]


def forms_that_differ(forms: dict[str, FormRoute]) -> list[tuple[str, str]]:
    """The operations of the API whose people differ from those of the same form, each with that form."""
    known = operations()
    pairs = [(operation, form) for _, operation, form in ROWS if form != "-"]
    return [pair for pair in pairs if _for_people(known[pair[0]]) != (forms[pair[1]].role, forms[pair[1]].again)]


def _for_people(operation: ApiOperation) -> tuple[str, bool]:
    return operation.access.person, operation.access.is_fresh
