"""The suppression list: addresses that get no more mail of a tenant, because it bounced, or because they complained."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.addresses import canonical
from postroom.store.audit import Signature, auditing
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows

SuppressionCause = Literal["bounce", "complaint", "person"]

LONGEST_DETAIL = 500


@dataclass(frozen=True, slots=True)
class Suppression:
    """An address that gets no more mail of the tenant, and why."""

    tenant: str
    address: str
    cause: SuppressionCause
    detail: str | None
    created_at: datetime


def suppressing(
    tenant: str, address: str, cause: SuppressionCause, detail: str | None, mail_id: UUID | None, now: datetime
) -> Script[None]:
    """Part of a transaction: suppress the address for the tenant. The first cause is kept."""
    named = canonical(address) or address
    yield sql("insert_suppression", tenant, named, cause, (detail or "")[:LONGEST_DETAIL] or None, mail_id, now)


@transaction
def suppress(tenant: str, address: str, signed: Signature, now: datetime) -> Script[None]:
    """Send nothing of the tenant to this address, for the reason in the signature."""
    if canonical(address) is None:
        raise BadInput("address", f"{address!r} is no mail address", "give one such as ada@example.com")
    yield from suppressing(tenant, address, "person", signed.reason, None, now)
    yield from auditing(signed.under("suppression.add", "suppression", f"{tenant}/{address}"), now)


@transaction
def unsuppress(tenant: str, address: str, signed: Signature, now: datetime) -> Script[None]:
    """Let mail of the tenant go to this address again."""
    if not (yield sql("delete_suppression", tenant, canonical(address) or address)):
        raise NotFound(f"{address} is not suppressed for {tenant}; `postroom suppression list` shows who is")
    yield from auditing(signed.under("suppression.remove", "suppression", f"{tenant}/{address}"), now)


@query
def list_suppressions(tenant: str | None, most: int) -> Script[list[Suppression]]:
    """The newest first, of one tenant or of all."""
    return read_rows(Suppression, (yield sql("select_suppressions", tenant, most)))
