"""The words in which the outbound page speaks of lanes, states, results and classes of bounces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from postroom.operations.outbound.outbound_overview import MAIL_STATES, MOST_DESTINATIONS, WINDOWS, ClassResults

CLASSES_OF_FAILURE = ("deferred", "bounced", "rejected", "expired")
MANY_FAILED = 0.05
"""The share of failed recipients from which on the number is marked as bad."""

WORDS: Mapping[str, object] = {
    "windows": tuple((name, name.replace("h", " h").replace("d", " d")) for name in WINDOWS),
    "states": tuple((name, name) for name in MAIL_STATES),
    "stages": {
        "off": "first in, first out for all; not measured",
        "measure": "first in, first out for all, measured",
        "share": "the fair queue for {share:.0%} of the tenants",
        "all": "the fair queue for all",
    },
    "conditions": {
        "healthy": "short and prompt",
        "degraded": "long, or mail waits over 30 min",
        "overloaded": "long, and mail waits over 30 min",
    },
    "lane_words": {
        "high": ("High", "plans with priority"),
        "normal": ("Normal", "everyone else"),
        "low": ("Low", "new senders and bulk plans"),
        "throttled": ("Throttled", "what was held, drains slowly"),
        "retry": ("Retries", "tried before"),
        "fifo": ("First in, first out", "tenants not on the fair queue"),
    },
    "moods": {
        "sent": "good",
        "sending": "busy",
        "deferred": "ask",
        "unknown": "ask",
        "partially_sent": "bad",
        "bounced": "bad",
        "rejected": "bad",
        "expired": "bad",
    },
    "cause_words": {
        "bounce": "it bounced",
        "complaint": "it complained",
        "person": "a person said so",
        "refusals": "refused without a reason",
    },
    "result_words": {
        "deferred": "put off, tried again",
        "bounced": "bounced",
        "rejected": "rejected",
        "expired": "given up",
    },
    "class_words": {
        "": ("No class", "the answer did not say"),
        "hard": ("No such address", "suppressed"),
        "soft": ("Trouble at the destination", ""),
        "policy": ("Against its policy", ""),
        "reputation": ("Distrusts our address", ""),
        "full": ("Mailbox full", ""),
        "greylist": ("Wants a second attempt", ""),
        "content": ("Content refused", ""),
        "unexplained": ("Refused without a reason", "suppressed if it happens again"),
    },
    "most_destinations": MOST_DESTINATIONS,
}
MAIL_WORDS: Mapping[str, object] = {name: WORDS[name] for name in ("moods", "class_words")}


@dataclass(frozen=True, slots=True)
class Counts:
    """The results of all recipients in a window."""

    sent: int = 0
    deferred: int = 0
    bounced: int = 0
    rejected: int = 0
    expired: int = 0

    @classmethod
    def of(cls, classes: Iterable[ClassResults]) -> "Counts":
        sums = dict.fromkeys(("sent", *CLASSES_OF_FAILURE), 0)
        for each in classes:
            sums[each.result] += each.count
        return cls(**sums)

    @property
    def failed(self) -> int:
        return self.bounced + self.rejected + self.expired

    @property
    def ended(self) -> int:
        return self.sent + self.failed

    @property
    def share_failed(self) -> str:
        return f"{self.failed / self.ended:.1%} of {self.ended:,} recipients" if self.ended else "nothing has ended"

    @property
    def is_bad(self) -> bool:
        return self.failed > MANY_FAILED * self.ended
