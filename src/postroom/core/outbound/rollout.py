"""The staged roll-out of the fair queue: which tenants use it, and which still have plain first in, first out.

off      none, and nothing is measured
measure  none, and fairness is measured
share    a share of the tenants, chosen by a hash of their names; the same is measured for both
all      all tenants
"""

import hashlib
from typing import Literal, NamedTuple

Stage = Literal["off", "measure", "share", "all"]


class Rollout(NamedTuple):
    """The stage, and the share of tenants that the stage `share` takes in."""

    stage: Stage = "all"
    share: float = 0.1

    @property
    def is_measured(self) -> bool:
        return self.stage != "off"

    @property
    def fair_share(self) -> float:
        """The part of the capacity that the fair queue has."""
        return 1.0 if self.stage == "all" else self.share if self.stage == "share" else 0.0

    def is_fair(self, tenant: str) -> bool:
        """Whether this tenant uses the fair queue. A larger share keeps all tenants of a smaller one."""
        return self.stage == "all" or (self.stage == "share" and _place(tenant) < self.share)


def _place(tenant: str) -> float:
    """A number from 0 to below 1 that depends on the name alone."""
    digest = hashlib.sha256(f"fair queue:{tenant}".encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48
