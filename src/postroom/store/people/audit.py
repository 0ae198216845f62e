"""The audit log: who did what to which object, and what changed. Rows are only ever added.

The database itself refuses to change or delete them. What is written here stays for good, so secrets and the content
of mail never go in: objects are named by their ids, and `before` and `after` hold settings and states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import Refused
from postroom.core.views import Untrusted
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows

LONGEST_TEXT = 512
TOKENS = "token:"
LAST_SEQ = 2**63 - 1
_TEXTS = ("actor", "role", "action", "object_type", "object_id", "reason")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that an actor did, or tried and was refused."""

    id: UUID
    actor: str
    role: str
    action: AuditedAction
    object_type: str
    object_id: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    reason: str | None = None


class Signature(NamedTuple):
    """Who acts, for a verb that writes its own audit entry: the id of the entry, the actor and the role."""

    entry_id: UUID
    actor: str
    role: str
    reason: str | None = None

    @property
    def is_token(self) -> bool:
        """Whether a program acts, by its token, and not a person."""
        return self.actor.startswith(TOKENS)

    def require_person(self, what: str) -> None:
        """Raise Refused for a token, whatever its role: the interfaces refuse it before, and this is for good."""
        if self.is_token:
            raise Refused(f"no token may {what}; only people do, on the page or at the command line")

    def under(
        self,
        action: AuditedAction,
        object_type: str,
        object_id: str,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        """The signed entry for what was done."""
        return AuditEntry(
            self.entry_id, self.actor, self.role, action, object_type, object_id, before, after, self.reason
        )


@dataclass(frozen=True, slots=True)
class AuditView:
    """An entry as it is stored."""

    seq: int
    id: UUID
    at: datetime
    actor: str
    role: str
    action: str
    object_type: str
    object_id: Untrusted[str]
    before: Untrusted[Mapping[str, Any] | None]
    after: Untrusted[Mapping[str, Any] | None]
    reason: Untrusted[str | None]


def auditing(entry: AuditEntry, now: datetime) -> Script[None]:
    """Part of a transaction: add the entry, so that it exists if and only if the change happened."""
    texts = {name: _storable(getattr(entry, name)) for name in _TEXTS}
    yield fill("insert_audit", entry, **texts, now=now)


@transaction
def record_audit(entry: AuditEntry, now: datetime) -> Script[None]:
    """Add an entry for something that changed nothing in this database, such as a refused call."""
    yield from auditing(entry, now)


@query
def list_audit(
    limit: int, before_seq: int | None = None, actor: str | None = None, action: str | None = None
) -> Script[list[AuditView]]:
    """The newest entries first; with `before_seq`, those before it, for paging."""
    before = LAST_SEQ if before_seq is None else before_seq
    # One statement for each combination, so that each is served by an index.
    match actor, action:
        case None, None:
            rows = yield sql("select_audit", before, limit)
        case str(), None:
            rows = yield sql("select_audit_of_actor", before, actor, limit)
        case None, str():
            rows = yield sql("select_audit_of_action", before, action, limit)
        case _:
            rows = yield sql("select_audit_of_both", before, actor, action, limit)
    return read_rows(AuditView, rows)


@query
def find_audit(id: UUID) -> Script[AuditView | None]:
    """The entry with this id, if there is one."""
    return read_first(AuditView, (yield sql("select_audit_entry", id)))


@query
def list_audit_of(object_type: str, object_id: str, limit: int) -> Script[list[AuditView]]:
    """Return the entries about one object, the newest first."""
    return read_rows(AuditView, (yield sql("select_audit_of", object_type, object_id, limit)))


def _storable(text: str | None) -> str | None:
    """Make the text storable in both databases. An entry must not be lost because its object has a hostile name."""
    if text is None:
        return None
    whole = text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")
