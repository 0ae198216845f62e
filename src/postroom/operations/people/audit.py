"""Signatures for the audit log, and its entries."""

from uuid import UUID

from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import audit
from postroom.store.people.audit import AuditView, Signature

__all__ = ["AuditView", "Signature", "find_entry", "list_audit", "list_audit_of", "next_entry", "signature"]


def signature(actor: str, role: str, reason: str | None = None) -> Signature:
    """Sign one request: the signature becomes its entry in the audit log."""
    return Signature(new_id(), actor, str(role), reason)


def next_entry(signed: Signature) -> Signature:
    """Return the same signature for another entry: each transaction of a longer task writes its own."""
    return signed._replace(entry_id=new_id())


async def list_audit(
    database: Database,
    limit: int,
    *,
    before: int | None = None,
    actor: str | None = None,
    action: str | None = None,
) -> list[AuditView]:
    """List the entries of one actor or one action, or all of them, newest first; `before` is where a page ended."""
    return await database.run(audit.list_audit(limit, before, actor, action))


async def find_entry(database: Database, id: UUID) -> AuditView | None:
    return await database.run(audit.find_audit(id))


async def list_audit_of(database: Database, object_type: str, object_id: str, limit: int) -> list[AuditView]:
    """List what was done to one object, newest first."""
    return await database.run(audit.list_audit_of(object_type, object_id, limit))
