"""The priority of a sender's mail: from the plan, the age of the sender, and a throttle.

    HIGH       a paid plan
    NORMAL     any other plan
    LOW        the free plan, and every sender in the first seven days
    THROTTLED  a throttle is in force, with any plan

While a throttle is in force the mail waits. After its end the mail leaves through the lane `throttled`, until the
sender's abuse score has fallen and the throttle is taken away; then the former priority is back.
"""

from datetime import datetime, timedelta
from enum import IntEnum
from typing import Literal, NamedTuple, cast

from postroom.core.views import Untrusted

NEW_FOR = timedelta(days=7)

SenderLane = Literal["high", "normal", "low", "throttled"]


class Priority(IntEnum):
    HIGH = 2
    NORMAL = 1
    LOW = 0
    THROTTLED = -1


PLANS = {
    "standard": Priority.NORMAL,
    "free": Priority.LOW,
    "team": Priority.HIGH,
    "enhanced_protection": Priority.HIGH,
}
DEFAULT_PLAN = "standard"


class Throttle(NamedTuple):
    """A sender's mail waits until a time. `reason` is shown to the operator."""

    until: datetime
    reason: Untrusted[str]

    def is_in_force(self, now: datetime) -> bool:
        return now < self.until


def calculate_priority(plan: str, created_at: datetime, throttle: Throttle | None, now: datetime) -> Priority:
    """The priority of a sender with this plan, throttle and time of creation. An unknown plan is NORMAL."""
    if throttle is not None:
        return Priority.THROTTLED
    if is_new(created_at, now):
        return Priority.LOW
    return PLANS.get(plan, Priority.NORMAL)


def is_new(created_at: datetime, now: datetime) -> bool:
    return now - created_at < NEW_FOR


def lane_of(plan: str, created_at: datetime, throttle: Throttle | None, now: datetime) -> SenderLane:
    """The lane of a sender's new mail; retries have a lane of their own."""
    return cast("SenderLane", calculate_priority(plan, created_at, throttle, now).name.lower())
