"""Strikes: refusals without a reason, which suppress an address for a while if they come again and again.

A refusal counts against the address if its reply to RCPT, or a report, gives no reason. One of the content says nothing
about the address. Neither does a finding of our own.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.replies import Reply


@dataclass(frozen=True, slots=True)
class StrikeRule:
    """Refusals on `days` days within `window`, without a delivery in between, suppress an address for `lasts`.

    With 0 days they never do.
    """

    days: int = 3
    window: timedelta = timedelta(days=30)
    lasts: timedelta = timedelta(days=30)

    def since(self, now: datetime) -> datetime:
        """Strikes count from then on."""
        return now - self.window

    def reason(self, days: int, reply: str | None) -> str:
        last = f"; last: {reply}" if reply else ""
        return f"refused on {days} days without a reason{last}"


USUAL_STRIKES = StrikeRule()


def is_strike(reply: Reply, bounce_class: BounceClass | None) -> bool:
    """Whether a refusal is a strike against the address."""
    return bounce_class is BounceClass.UNEXPLAINED and reply.phase == "rcpt" and reply.severity == 5
