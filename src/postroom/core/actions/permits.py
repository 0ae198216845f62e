"""Permits: what entitles a request to change a mailbox or send a mail, checked just before the request leaves."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from postroom.core.jobs.job import Claim

GRANT_S = 2.0
"""How long after it has asked a process may begin a request. A pause waits a little longer than this."""


@dataclass(slots=True)
class HeldLease:
    """A lease as its holder knows it: valid until `deadline`, in seconds since boot, which a renewal extends."""

    deadline: float


class DeliveryLease(NamedTuple):
    """The mail being delivered, and the token of the lease on it."""

    id: UUID
    lease_token: UUID


@dataclass(frozen=True, slots=True)
class Permit:
    """The claim, and the action, under which a request changes the mailbox of an account.

    A job names its claim, outgoing mail its lease; with neither, only the account and the worker's lease are checked.
    An action must still be in progress and its message unprotected, unless the request only restores an earlier state
    (`gives_back`): an undo, or snoozed mail that returns.
    """

    account_id: UUID
    lease: HeldLease
    claim: Claim | None = None
    delivery: DeliveryLease | None = None
    action_id: UUID | None = None
    gives_back: bool = False
