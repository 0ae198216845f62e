"""Destinations of outgoing mail: pauses, and the MTA-STS policies that they have published."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from postroom.core.errors import BadInput, NotFound
from postroom.core.outbound.destinations import StsMode, StsPolicy, smtp_address
from postroom.core.views import Untrusted
from postroom.store.actions.pauses import standing_reason
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.outbound.outbound_signals import CHANNEL
from postroom.store.people.audit import Signature, auditing


@dataclass(frozen=True, slots=True)
class DestinationPause:
    """A destination to which no mail leaves now: the domain of recipients, or the smart host."""

    destination: str
    reason: Untrusted[str]
    paused_by: str
    created_at: datetime


@transaction
def pause_destination(destination: str, signed: Signature, now: datetime) -> Script[None]:
    """Send nothing to the destination, for the reason in the signature. Mail that waits is kept."""
    named, reason = destination_name(destination), signed.reason or "no reason given"
    yield sql("upsert_destination_pause", named, reason, signed.actor, now)
    yield from auditing(signed.under("destination.pause", "destination", named, after={"reason": reason}), now)
    yield Notify(CHANNEL, "destinations")


@transaction
def resume_destination(destination: str, signed: Signature, now: datetime) -> Script[None]:
    """Send to the destination again. What was held is tried within half a minute."""
    named = destination_name(destination)
    if not (yield sql("delete_destination_pause", named)):
        raise NotFound(f"{named} is not paused; `postroom destination list` shows what is")
    yield from auditing(signed.under("destination.resume", "destination", named), now)
    yield Notify(CHANNEL, "destinations")


@query
def list_destination_pauses() -> Script[list[DestinationPause]]:
    return read_rows(DestinationPause, (yield sql("select_destination_pauses")))


@query
def pause_reason(destination: str) -> Script[str | None]:
    """Why nothing may leave for this destination now: the kill switch, or a pause of its own."""
    if (reason := (yield from standing_reason())) is not None:
        return reason
    for paused, reason, *_ in (yield sql("select_destination_pauses")):
        if paused == destination:
            return reason
    return None


def destination_name(destination: str) -> str:
    """The name of a destination as mail finds it: lower case, in ASCII."""
    found = smtp_address(f"x@{destination}")
    if found is None:
        raise BadInput("destination", f"{destination!r} is no domain", "give one such as example.com")
    return found.destination


class _KeptPolicy(NamedTuple):
    policy_id: str
    mode: StsMode
    mx: tuple[str, ...]
    expires_at: datetime


@query
def kept_policy(domain: str) -> Script[StsPolicy | None]:
    """The policy of the domain that was kept last, expired or not."""
    found = read_first(_KeptPolicy, (yield sql("select_sts_policy", domain)))
    return None if found is None else StsPolicy(*found)


@transaction
def keep_policy(domain: str, policy: StsPolicy) -> Script[None]:
    """Keep the policy in place of an earlier one."""
    mx = json_text(list(policy.mx))
    yield sql("upsert_sts_policy", domain, policy.id, policy.mode, mx, policy.expires_at)
