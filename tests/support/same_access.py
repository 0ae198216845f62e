"""The operations that are tools and in the JSON API, and those that are on one interface only, with what each allows.

The table names the operation of the API that does the same as a tool. Listed below it are the tools that no operation
of the API is like, and the forms that no operation declares. The command line acts as the machine's owner, and refuses
nothing.
"""

from postroom.core.access import ANSWER, OWN, OWN_AGAIN, SEES_ALL, Access
from postroom.interfaces.dashboard.forms import FormRoute
from postroom.interfaces.http.api.operation import ApiOperation
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.operations.registry import operations as declared_operations
from support.signed_in import Pages

TABLE = """
tool                     operation
mutations.pause          POST /pause
mutations.status         GET /overview
mail.search              GET /mail
mail.read                GET /mail/{message}
decisions.explain        GET /mail/{message}
actions.list             GET /mail
actions.undo             POST /actions/{action}/undo
connector.list           GET /connectors
connector.request        POST /connectors/sync
backfill.list            GET /backfill
backfill.estimate        POST /backfill/estimates
create_backfill_job      POST /backfill
backfill.pause           POST /backfill/{job}/pause
backfill.resume          POST /backfill/{job}/resume
backfill.cancel          POST /backfill/{job}/cancel
queue.peek               GET /queues/{queue}/waiting
queue.stats              GET /queues/{queue}
queue.replay             POST /queues/{queue}/replay
"""
ROWS = [(tool, f"{method} {path}") for tool, method, path in map(str.split, TABLE.strip().splitlines()[1:])]
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
# Only on the pages: what is begun or drafted there, and what asks Google; with its people.
ONLY_FORMS = {
    "/jobs/runs/{run}/cancel": ANSWER,
    "/connectors/new/begin": OWN_AGAIN,
    "/connectors/new/finish": OWN_AGAIN,
    "/connectors/new/forget": OWN,
    "/rules/simulate": ANSWER,
    "/rules/simulations/{task}/cancel": ANSWER,
    "/rules/draft": ANSWER,
    "/start/look": ANSWER,
    "/start/count": ANSWER,
    "/start/choose": ANSWER,
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
    return [pair for pair in ROWS if TOOLS_BY_NAME[pair[0]].roles & SEES_ALL != known[pair[1]].access.tokens]


def declared_forms() -> dict[str, Access]:
    """The forms that operations declare, with the access of each."""
    return {form: each.access for each in declared_operations() for form in each.forms}
