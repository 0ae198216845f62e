"""The audit log: who did what to which object."""

from pydantic import Field

from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Filter, Paged
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened_number, sealed
from postroom.operations.people.audit import AuditView, list_audit

AUDIT = Noun("Audit")
LIST = "audit"


class AuditQuery(Paged):
    actor: Filter | None = Field(None, description="Only what this actor did, such as `person:mara`.")
    action: Filter | None = Field(None, description="Only this action, such as `rule.edit`.")


@AUDIT.get("/audit")
async def read_audit(call: Call, query: AuditQuery) -> Page[AuditView]:
    """The entries of the audit log, the newest first."""
    before = opened_number(LIST, query.next)
    found = await list_audit(call.database, query.limit + 1, before=before, actor=query.actor, action=query.action)
    shown = found[: query.limit]
    last = shown[-1].seq if len(found) > query.limit else None
    return Page(shown, sealed(LIST, last))
