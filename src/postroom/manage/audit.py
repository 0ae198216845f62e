"""Who asks for something, as the audit log names them, and what the log holds."""

from postroom.store import audit
from postroom.store.audit import AuditView, Signature
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id

__all__ = ["AuditView", "Signature", "list_audit", "next_entry", "signature"]


def signature(actor: str, role: str, reason: str | None = None) -> Signature:
    """The signature under one thing that is asked for: it is the entry of the audit log that tells of it."""
    return Signature(new_id(), actor, str(role), reason)


def next_entry(signed: Signature) -> Signature:
    """The same signature, under another entry: each transaction of a longer piece of work writes its own."""
    return signed._replace(entry_id=new_id())


async def list_audit(
    database: Database, limit: int, *, actor: str | None = None, action: str | None = None
) -> list[AuditView]:
    """The entries of one actor or of one kind, or all of them, the newest first."""
    return await database.run(audit.list_audit(limit, actor=actor, action=action))
