"""The suppression list: addresses that get no more mail of a tenant.

An address that does not exist, whose owner complained, or that a person named, is suppressed for good. Refusals without
a reason are strikes; several of them suppress an address for a while (`core/outbound/strikes.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.limits import day_of
from postroom.core.outbound.strikes import StrikeRule
from postroom.core.views import Untrusted
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing

SuppressionCause = Literal["bounce", "complaint", "person", "refusals"]

LONGEST_DETAIL = 500
KEEP_STRIKES = timedelta(days=366)
"""Longer than any window that the settings allow."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """An address that gets no more mail of the tenant, and why. One with `expires_at` ends by itself."""

    tenant: str
    address: Untrusted[str]
    cause: SuppressionCause
    detail: Untrusted[str | None]
    created_at: datetime
    expires_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.expires_at is None or self.expires_at > now


class Refusal(NamedTuple):
    """A refusal without a reason."""

    tenant: str
    address: str
    reply: str | None
    mail_id: UUID


@dataclass(frozen=True, slots=True)
class StruckAddress:
    """An address that was refused without a reason on so many days, and is not suppressed for it yet."""

    tenant: str
    address: str
    days: int
    last_at: datetime
    last_reply: str | None


def suppressing(
    tenant: str,
    address: str,
    cause: SuppressionCause,
    detail: str | None,
    mail_id: UUID | None,
    now: datetime,
    expires_at: datetime | None = None,
) -> Script[None]:
    """Part of a transaction: suppress the address for the tenant. The first cause is kept, unless it ends by itself."""
    named, said = _name(address), (detail or "")[:LONGEST_DETAIL] or None
    yield sql("insert_suppression", tenant, named, cause, said, mail_id, now, expires_at)


def striking(refusal: Refusal, rule: StrikeRule, now: datetime) -> Script[None]:
    """Part of a transaction: count a strike, at most one a day; the last that the rule allows suppresses it."""
    if not rule.days:
        return
    tenant, address, reply, mail_id = refusal._replace(address=_name(refusal.address))
    said = (reply or "")[:LONGEST_DETAIL] or None
    yield sql("insert_strike", tenant, address, day_of(now), said, mail_id, now)
    days = (yield sql("count_strikes", tenant, address, rule.since(now)))[0][0]
    if days >= rule.days:
        reason, until = rule.reason(days, said), now + rule.lasts
        yield from suppressing(tenant, address, "refusals", reason, mail_id, now, until)
        yield sql("delete_strikes", tenant, address)


def clearing_strikes(delivered: Iterable[tuple[str, str]]) -> Script[None]:
    """Part of a transaction: take back the strikes of addresses, each with its tenant, that mail has reached."""
    reached = {(tenant, _name(address)) for tenant, address in delivered}
    if not reached:
        return
    tenants, addresses = ({each[place] for each in reached} for place in (0, 1))
    rows = yield sql("select_struck", sorted(tenants), sorted(addresses))
    for tenant, address in sorted(reached & {(row[0], row[1]) for row in rows}):
        yield sql("delete_strikes", tenant, address)


@transaction
def suppress(tenant: str, address: str, signed: Signature, now: datetime) -> Script[None]:
    """Send nothing of the tenant to this address, for the reason in the signature."""
    if canonical(address) is None:
        raise BadInput("address", f"{address!r} is no mail address", "give one such as ada@example.com")
    yield from suppressing(tenant, address, "person", signed.reason, None, now)
    yield from auditing(signed.under("suppression.add", "suppression", f"{tenant}/{address}"), now)


@transaction
def unsuppress(tenant: str, address: str, signed: Signature, now: datetime) -> Script[None]:
    """Let mail of the tenant go to this address again, and forget its strikes."""
    suppressed = yield sql("delete_suppression", tenant, _name(address))
    struck = yield sql("delete_strikes", tenant, _name(address))
    if not suppressed and not struck:
        raise NotFound(f"{address} is not suppressed for {tenant}; `postroom suppression list` shows who is")
    yield from auditing(signed.under("suppression.remove", "suppression", f"{tenant}/{address}"), now)


@transaction
def prune_suppressions(now: datetime) -> Script[None]:
    """Forget suppressions that have ended, and strikes that no longer count."""
    yield sql("prune_suppressions", now, now - KEEP_STRIKES)


@query
def list_suppressions(tenant: str | None, most: int) -> Script[list[Suppression]]:
    """The newest first, of one tenant or of all."""
    return read_rows(Suppression, (yield sql("select_suppressions", tenant, most)))


@query
def list_strikes(tenant: str | None, since: datetime, most: int) -> Script[list[StruckAddress]]:
    """Addresses with strikes since then, the last one first, of one tenant or of all."""
    return read_rows(StruckAddress, (yield sql("select_strikes", tenant, since, most)))


def _name(address: str) -> str:
    return canonical(address) or address
