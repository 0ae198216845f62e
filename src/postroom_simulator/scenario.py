"""A scenario of outgoing mail: who sends how much and when, and how long destinations take.

    slots = 100                     # deliveries at once
    lasts = "1h"                    # when the last mail comes

    [[tenants]]                     # a group of tenants that are alike
    name = "small"
    tenants = 10
    burst = 10                      # mails of each tenant at once,
    every = "10m"                   # again and again
    rate = 0.1                      # and mails a second at random moments

    [destinations.default]
    median = "800ms"
    p95 = "3s"

Times are seconds, or text such as "90s", "10m", "2h".
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from postroom.core.errors import BadInput
from postroom.core.outbound.priority import SenderLane
from postroom.core.strict import Strict, problem_in, shown_name

MOST_MAILS = 20_000_000
MOST_TENANTS = 1_000_000
SEE = "see docs/reference/outbound.md"
DEFAULT = "default"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 366 * 86400.0

Model = TypeVar("Model", bound=Strict)


def _seconds(value: object) -> object:
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)", value, re.ASCII)
        if found is None:
            raise ValueError(f"{shown_name(value)!r} is not a time")
        return float(found[1]) * _UNITS[found[2]]
    return value


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=_LONGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
TIME = 'seconds, or text such as "90s", "10m" or "2h"'


class Destination(Strict):
    """How long deliveries to a destination take: half of them less than the median; without `p95`, all the same."""

    median: Seconds = Field(default=1.0, description=TIME)
    p95: Seconds | None = Field(default=None, description=f"{TIME}, at least the median")
    deferred: Share = Field(default=0.0, description="the share of attempts that are put off, from 0 to below 1")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.p95 is not None and (self.p95 < self.median or self.median == 0):
            raise ValueError("p95 is less than the median, or the median is 0")
        if self.deferred >= 1:
            raise ValueError("deferred is 1: no mail would ever arrive")
        return self


class Throttling(Strict):
    """The senders of a group are throttled at a time: what waits is held, and what they submit is refused. Afterwards
    it leaves in the lane `throttled`, until their former priority is restored."""

    at: Seconds = Field(description=TIME)
    lasts: Seconds = Field(default=3600.0, description=TIME)
    restored_after: Seconds = Field(default=3600.0, description=f"{TIME}, counted from the end of the throttle")


class TenantGroup(Strict):
    """Tenants that are alike. Counts and rates are those of each of them."""

    name: str = Field(min_length=1, max_length=40, pattern=r"^[\w .,:+-]+$", description="a short name")
    tenants: int = Field(default=1, ge=1, le=MOST_TENANTS, description="how many tenants are alike")
    domains: int = Field(default=1, ge=1, le=10_000, description="how many domains each of them has")
    users: int = Field(default=1, ge=1, le=10_000, description="how many users each of its domains has")
    lane: SenderLane = Field(default="normal", description="high, normal, low or throttled")
    weight: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False, description="above 0 and at most 1000")
    burst: int = Field(default=0, ge=0, le=MOST_MAILS, description="how many mails come at once")
    every: Seconds | None = Field(default=None, gt=0, description=f"{TIME}, above 0: when the next burst comes")
    rate: float = Field(default=0.0, ge=0, le=1e6, allow_inf_nan=False, description="mails a second, 0 or more")
    starts: Seconds = Field(default=0.0, description=TIME)
    ends: Seconds | None = Field(default=None, description=TIME)
    recipients: int = Field(default=1, ge=1, le=1000, description="how many recipients each mail has, 1 to 1000")
    bulk: bool = Field(default=False, description="true or false")
    destination: str = Field(default=DEFAULT, description="the name of one of the destinations")
    throttle: Throttling | None = Field(default=None, description="a table with `at`, `lasts` and `restored_after`")


class Scenario(Strict):
    """All of it. The order of groups is that of their mail when it comes at the same time."""

    name: str = Field(default="scenario", max_length=60, description="a short name")
    slots: int = Field(default=100, ge=1, le=100_000, description="how many mails are delivered at once, 1 or more")
    lasts: Seconds = Field(default=3600.0, description=f"{TIME}: no mail comes after it")
    seed: int = Field(default=1, ge=0, description="a whole number: the same one gives the same result")
    pass_every: Seconds = Field(default=1.0, gt=0, description=f"{TIME}, above 0: between two passes of `single-pass`")
    tenants: tuple[TenantGroup, ...] = Field(description="at least one group of tenants")
    destinations: dict[str, Destination] = Field(default={}, description="tables [destinations.NAME]")

    def destination_of(self, group: TenantGroup) -> Destination:
        return self.destinations.get(group.destination) or Destination()

    def end_of(self, group: TenantGroup) -> float:
        return self.lasts if group.ends is None else min(group.ends, self.lasts)

    def only(self, group: TenantGroup) -> "Scenario":
        """The same with this group alone."""
        return self.model_copy(update={"tenants": (group,)})

    def expected_mails(self) -> float:
        return sum(_expected_mails(group, self.end_of(group)) for group in self.tenants)

    def changed(self, flood: int, slots: int | None, seed: int | None) -> "Scenario":
        """The same with a tenant that sends `flood` mails at once, and other slots or another seed. Raises BadInput."""
        groups = self.tenants
        if flood:
            # First, so that all mail that comes at the same time is behind it.
            groups = (TenantGroup(name="flood", burst=flood), *(group for group in groups if group.name != "flood"))
        changes = {"tenants": groups, "slots": slots or self.slots, "seed": self.seed if seed is None else seed}
        return check_scenario(self.model_copy(update=changes))


def _expected_mails(group: TenantGroup, end: float) -> float:
    length = end - group.starts
    if length < 0:
        return 0.0
    bursts = 1 + (length // group.every if group.every else 0)
    return group.tenants * (group.burst * bursts + group.rate * length)


def read_scenario(document: Mapping[str, Any]) -> Scenario:
    """Check a scenario as TOML has it. Raises BadInput, which names the field and the remedy."""
    parts = dict(document)
    groups = parts.get("tenants")
    if not isinstance(groups, list) or not groups:
        raise BadInput("tenants", "there is no group of tenants", "write [[tenants]] and its settings below")
    tables = cast("list[object]", groups)
    parts["tenants"] = tuple(
        _check(TenantGroup, each, f"tenants.{number}") for number, each in enumerate(tables, start=1)
    )
    destinations = parts.get("destinations", {})
    if not isinstance(destinations, dict):
        raise BadInput("destinations", "is not a table", "write [destinations.NAME] and its settings below")
    named = cast("dict[str, object]", destinations)
    parts["destinations"] = {
        name: _check(Destination, each, f"destinations.{shown_name(name)}") for name, each in named.items()
    }
    return check_scenario(_check(Scenario, parts, ""))


def read_destination(field: str, median: str) -> Destination:
    """A destination whose deliveries all take this time."""
    try:
        return Destination.model_validate({"median": median})
    except ValidationError:
        raise BadInput(field, f"{shown_name(median)!r} is not a time", "write 800ms, 2s or 1m") from None


def _check(model: type[Model], value: object, above: str) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problem = problem_in(error, model, above or "a scenario", SEE)
        field = ".".join(part for part in (above, problem.field) if part)
        raise BadInput(field, problem.problem, problem.remedy) from None


def check_scenario(scenario: Scenario) -> Scenario:
    """Check what no field shows by itself."""
    for number, group in enumerate(scenario.tenants, start=1):
        field = f"tenants.{number}"
        if not group.burst and not group.rate:
            raise BadInput(field, f"{group.name!r} sends nothing", "give `burst` or `rate`")
        if group.destination != DEFAULT and group.destination not in scenario.destinations:
            name = shown_name(group.destination)
            remedy = f"write [destinations.{name}] with a `median`, or leave `destination` out"
            raise BadInput(f"{field}.destination", f"there is no destination {name!r}", remedy)
    names = [group.name for group in scenario.tenants]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput("tenants", f"two groups are named {twice!r}", "give each group a name of its own")
    if (expected := scenario.expected_mails()) > MOST_MAILS:
        remedy = "lower `rate`, `burst`, `tenants` or `lasts`"
        raise BadInput("tenants", f"about {expected:,.0f} mails would come; at most {MOST_MAILS:,} can", remedy)
    return scenario
