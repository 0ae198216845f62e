"""The results of all recipients in a window, as the outbound page sums them up."""

from collections.abc import Iterable
from dataclasses import dataclass

from postroom.core.outbound.delivery_health import is_many_failed
from postroom.operations.outbound.outbound_overview import ClassResults

CLASSES_OF_FAILURE = ("deferred", "bounced", "rejected", "expired")


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
        return is_many_failed(self.failed, self.ended)
