"""Google's quota for one user: units per minute, and the price of each method in units."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from postroom.core.errors import BadInput
from postroom.core.suggestions import did_you_mean

# Live calls are those a person waits for; steady ones read new mail that seems less urgent, and leave room for live;
# bulk calls may take their time, such as reading years of old mail.
Use = Literal["live", "steady", "bulk"]

# Units by method, for projects created since 1 May 2026.
PRICES: Mapping[str, int] = {
    "getProfile": 1,
    "watch": 100,
    "messages.list": 5,
    "messages.get": 20,
    "messages.modify": 5,
    "messages.trash": 20,
    "messages.untrash": 5,
    "messages.delete": 10,
    "drafts.create": 10,
    "drafts.get": 5,
    "drafts.list": 5,
    "drafts.send": 100,
    "drafts.delete": 10,
    "threads.get": 10,
    "history.list": 2,
    "labels.list": 1,
    "labels.create": 5,
    "settings.sendAs.list": 1,
}


@dataclass(frozen=True)
class Terms:
    """`reserve` are the units that steady and bulk leave for live; `most_at_once` is how many requests run at once."""

    per_minute: int = 6_000
    reserve: int = 1_200
    prices: Mapping[str, int] = field(default_factory=lambda: PRICES)
    most_at_once: int = 8

    def __post_init__(self) -> None:
        for method, price in self.prices.items():
            if method not in PRICES:
                remedy = did_you_mean(
                    method, PRICES, "use the names of Google's reference, such as messages.get", quoted=False
                )
                raise BadInput("prices", f"Gmail has no method {method!r}", remedy)
            if price < 0:
                raise BadInput("prices", f"{price} for {method} is negative", "use 0 or more")
        if missing := sorted(PRICES.keys() - self.prices.keys()):
            raise BadInput("prices", f"{missing[0]} has no price", "give the units of every method")
        if self.most_at_once < 1:
            raise BadInput("most_at_once", f"{self.most_at_once} is not positive", "use 1 or more")
        if self.reserve < 0:
            raise BadInput("reserve", f"{self.reserve} is negative", "use 0 or more")
        dearest = max(self.prices, key=lambda method: self.prices[method])
        if self.allowance("bulk") < self.prices[dearest]:
            raise BadInput(
                "reserve",
                f"{self.per_minute} units a minute less {self.reserve} are not enough for one {dearest}",
                f"leave at least {self.prices[dearest]} units",
            )

    def allowance(self, use: Use) -> int:
        """The units that this use may spend within a minute."""
        return self.per_minute if use == "live" else self.per_minute - self.reserve


NEW_PROJECT = Terms()
