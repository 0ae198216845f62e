"""The bound of mail in delivery over all processes: `outbound.max_queue`, of which the lanes are shares.

Mail that its destinations keep waiting leaves its place to others, up to a second bound of the same size. So there is
never more than twice the bound in delivery, however many processes there are.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.lanes import Lane
from postroom.store.engine.database import Script, sql
from postroom.store.engine.reading import read_rows
from postroom.store.outbound.outbound_turns import locking_turns


def no_limits(_slots: int) -> Mapping[Lane, int]:
    return {}


@dataclass(frozen=True, slots=True)
class DeliveryBound:
    """`slow` is after how long a mail leaves its place to others; None if it never does. `limits` says how many of so
    many slots each lane may have."""

    most: int
    slow: timedelta | None = None
    limits: Callable[[int], Mapping[Lane, int]] = no_limits

    @property
    def room(self) -> int:
        """The most that is ever in delivery."""
        return self.most if self.slow is None else 2 * self.most

    def free(self, mails: int, slow: int) -> int:
        """How many more there may be beside so many, of which some are slow."""
        counting = mails - (0 if self.slow is None else slow)
        return max(0, min(self.most - counting, self.room - mails))


class InDelivery(NamedTuple):
    """Mail in delivery by all processes, of one lane and tenant."""

    lane: Lane
    tenant_id: int
    mails: int
    slow: int


def bounding(own: InFlight, most: int, bound: DeliveryBound, now: datetime) -> Script[tuple[InFlight, int]]:
    """Part of a transaction: what is in delivery by all processes, and how many mails may be leased beside it.

    Nothing is chosen by others until the end of the transaction, so no two of them lease into the same free place.
    """
    yield from locking_turns()
    found = read_rows(InDelivery, (yield sql("select_in_delivery", now - (bound.slow or timedelta(0)))))
    lanes, tenants = Counter[Lane](), Counter[int]()
    for each in found:
        lanes[each.lane] += each.mails
        tenants[each.tenant_id] += each.mails
    mails = lanes.total()
    elsewhere = max(0, mails - sum(own.lanes.values()))
    slots = min(bound.most, own.slots + elsewhere)
    room = None if bound.slow is None else min(bound.room, (own.room or own.slots) + elsewhere)
    free = bound.free(mails, sum(each.slow for each in found))
    return InFlight(slots, lanes, tenants, bound.limits(slots), room), min(most, free)
