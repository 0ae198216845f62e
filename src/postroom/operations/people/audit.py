"""Signatures for the audit log, and its entries."""

from typing import Annotated
from uuid import UUID

from postroom.core.access import READ
from postroom.core.views import Page
from postroom.operations.nouns import AUDIT
from postroom.operations.operation import Argument, Limit, NextNumber, command, get
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import audit
from postroom.store.people.audit import AuditView as AuditView
from postroom.store.people.audit import Signature as Signature


def signature(actor: str, role: str, reason: str | None = None) -> Signature:
    """Sign one request: the signature becomes its entry in the audit log."""
    return Signature(new_id(), actor, str(role), reason)


def next_entry(signed: Signature) -> Signature:
    """Return the same signature for another entry: each transaction of a longer task writes its own."""
    return signed._replace(entry_id=new_id())


@AUDIT.operation(
    READ,
    get("/audit"),
    command("audit list", "seq", "at", "actor", "role", "action", "object_type", "object_id", "reason"),
)
async def list_audit(
    database: Database,
    /,
    limit: Limit = 50,
    next: NextNumber = None,
    actor: Annotated[str | None, Argument("Only what this actor did, such as `person:mara`.")] = None,
    action: Annotated[str | None, Argument("Only this action, such as `rule.edit`.")] = None,
) -> Page[AuditView]:
    """List what was done, newest first. Nothing in the log can be changed or deleted."""
    found = await database.run(audit.list_audit(limit + 1, next, actor, action))
    shown = found[:limit]
    return Page(shown, str(shown[-1].seq) if len(found) > limit else None)


async def find_entry(database: Database, id: UUID) -> AuditView | None:
    return await database.run(audit.find_audit(id))


async def list_audit_of(database: Database, object_type: str, object_id: str, limit: int) -> list[AuditView]:
    """List what was done to one object, newest first."""
    return await database.run(audit.list_audit_of(object_type, object_id, limit))
