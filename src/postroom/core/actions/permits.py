"""What a change to a mailbox, or a mail that is sent, rests on: whoever asks for it says so, and it is checked when the
request is about to leave.
"""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from postroom.core.jobs.job import Claim


@dataclass(slots=True)
class HeldLease:
    """A lease as its holder knows it: good until `deadline`, in seconds since boot. A renewal moves it on."""

    deadline: float


class DeliveryLease(NamedTuple):
    """Names the lease under which a delivery is being sent."""

    id: UUID
    lease_token: UUID


@dataclass(frozen=True, slots=True)
class Permit:
    """Under whose claim, and for which action, a request changes the mailbox of an account.

    A job names its claim, a delivery its hold; with neither, only the account and the lease are asked about. An action
    must be under way still, and what it is about must not be protected, unless the request only gives back what was
    done before (`gives_back`): snoozed mail that returns, or an undo.
    """

    account_id: UUID
    lease: HeldLease
    claim: Claim | None = None
    delivery: DeliveryLease | None = None
    action_id: UUID | None = None
    gives_back: bool = False
