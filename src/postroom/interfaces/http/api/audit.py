"""The audit log: who did what to which object."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.cursors import opened_number, sealed
from postroom.interfaces.http.api.forms import Answer, Filter, Json, Page, Paged
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.people.audit import list_audit

AUDIT = Noun("Audit")
LIST = "audit"


class AuditQuery(Paged):
    actor: Filter | None = Field(None, description="Only what this actor did, such as `person:mara`.")
    action: Filter | None = Field(None, description="Only this action, such as `rule.edit`.")


class UntrustedEntry(Answer):
    object_id: str
    before: Json | None
    after: Json | None
    reason: str | None


class AuditEntryForm(Answer):
    seq: int
    id: UUID
    at: datetime
    actor: str
    role: str
    action: str
    object_type: str
    untrusted: UntrustedEntry


class AuditPage(Page):
    """The newest first."""

    entries: list[AuditEntryForm]


@AUDIT.get("/audit")
async def read_audit(call: Call, query: AuditQuery) -> AuditPage:
    """The entries of the audit log, the newest first."""
    before = opened_number(LIST, query.next)
    found = await list_audit(call.database, query.limit + 1, before=before, actor=query.actor, action=query.action)
    shown = found[: query.limit]
    last = shown[-1].seq if len(found) > query.limit else None
    return AuditPage(entries=[AuditEntryForm.of(each) for each in shown], next=sealed(LIST, last))
