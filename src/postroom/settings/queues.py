"""Settings for queues: changes to `email` and `gateway`, queues of your own, and routes to them.

[queues.gateway]
auto_ack_after_s = {}                       # nothing of P3 is dropped unread

[queues.alerts]
tiers = ["page", "mail"]
guards = {page = 5}
otherwise = "mail"
classes = [{tier = "page", kinds = ["*.critical"]}]

[[routes]]
queue = "alerts"
channel = "webhook"
endpoint_identity = "monitoring-*"
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, field_validator

from postroom.core.errors import SettingsError
from postroom.core.queue.envelope import CHANNELS
from postroom.core.queue.queues import EMAIL, GATEWAY, GUARD, ClassRule, QueuePolicy, Queues, Route
from postroom.core.suggestions import did_you_mean
from postroom.settings.sections import Seconds, Section, Whole, from_json

BUILT_IN = {"email": EMAIL, "gateway": GATEWAY}
NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


Guard = Annotated[Whole, Field(ge=1, le=1_000_000)]
Patience = Annotated[Seconds, Field(gt=0)]
Tier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
RawPath = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$", max_length=256)]


class ClassSettings(Section):
    """A rule that puts events into a tier; all conditions must match."""

    tier: Tier
    channels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    commands: bool = False

    @field_validator("channels")
    @classmethod
    def _exist(cls, channels: tuple[str, ...]) -> tuple[str, ...]:
        for channel in channels:
            if channel not in CHANNELS:
                raise ValueError(f"there is no channel {channel!r}; use {', '.join(CHANNELS)}")
        return channels


class QueueSettings(Section):
    """One queue. Settings left out keep the built-in values, or the defaults of a new queue."""

    tiers: tuple[Tier, ...] | None = Field(None, min_length=1)
    max_consecutive_same_tier: Guard | None = None
    guards: dict[Tier, Guard] = Field(default_factory=dict)
    age_after_s: dict[Tier, Patience] | None = None
    coalesce_within_s: dict[Tier, Patience] | None = None
    auto_ack_after_s: dict[Tier, Patience] | None = None
    same_text_within_s: Annotated[Seconds, Field(ge=0)] | None = None
    same_text_ignores: tuple[RawPath, ...] | None = None
    classes: tuple[ClassSettings, ...] | None = None
    otherwise: Tier | None = None
    lease_s: Annotated[Seconds, Field(ge=1, le=86_400)] | None = None
    most_deliveries: Annotated[Whole, Field(ge=1)] | None = None


class RouteSettings(Section):
    """A rule that sends events of some sources to another queue."""

    queue: str
    channel: Literal["email", "api", "mcp", "telegram", "slack", "discord", "webhook", "redis"] | None = None
    endpoint_identity: str | None = None


QueueTables = Annotated[dict[str, QueueSettings], BeforeValidator(from_json)]
RouteTables = Annotated[tuple[RouteSettings, ...], BeforeValidator(from_json)]


def queues_of(queues: Mapping[str, QueueSettings], routes: Sequence[RouteSettings]) -> Queues:
    """All queues, with the changes from the settings. Raises SettingsError, which names the contradictory setting."""
    policies = dict(BUILT_IN)
    for name, given in queues.items():
        if not NAME.fullmatch(name):
            raise SettingsError(f"queues.{name}: is not a valid queue name; use lower-case letters, digits, - and _")
        policies[name] = _policy(name, given, BUILT_IN.get(name))
    for position, route in enumerate(routes):
        if route.queue not in policies:
            raise SettingsError(
                f"routes[{position}].queue: there is no queue {route.queue!r}; use one of {', '.join(policies)}"
            )
        if route.queue == EMAIL.queue and route.channel != "email":
            raise SettingsError(f'routes[{position}].channel: only mail can go to the queue email; write "email"')
    return Queues(list(policies.values()), [Route(each.queue, each.channel, each.endpoint_identity) for each in routes])


def _policy(name: str, given: QueueSettings, base: QueuePolicy | None) -> QueuePolicy:
    if base is None and (given.tiers is None or given.otherwise is None):
        hint = did_you_mean(name, BUILT_IN, "", quoted=False)
        if hint and given.tiers is None:
            raise SettingsError(f"queues.{name}: there is no such queue; {hint}")
        missing = "tiers" if given.tiers is None else "otherwise"
        raise SettingsError(f"queues.{name}.{missing}: a new queue needs its tiers, highest first, and `otherwise`")
    if base is EMAIL and (given.tiers is not None or given.otherwise is not None or given.classes is not None):
        raise SettingsError("queues.email: its tiers are those of ingest.v1 and cannot be changed; its guards can")
    if base is EMAIL and (
        given.coalesce_within_s or given.auto_ack_after_s or given.same_text_within_s or given.same_text_ignores
    ):
        raise SettingsError(
            "queues.email: every mail is processed by itself; leave out coalescing, auto-ack and same_text"
        )
    tiers = given.tiers or (base.tiers if base is not None else ())
    if len(set(tiers)) < len(tiers):
        raise SettingsError(f"queues.{name}.tiers: a tier is named twice; name each once, highest first")
    policy = base or QueuePolicy(name, {})
    changes: dict[str, Any] = {"guards": _guards(name, given, tiers, base)}
    for theirs, ours in (
        ("age_after_s", "age_after"),
        ("coalesce_within_s", "coalesce_within"),
        ("auto_ack_after_s", "auto_ack_after"),
    ):
        table = cast("dict[str, float] | None", getattr(given, theirs))
        kept = getattr(policy, ours) if table is None else {tier: timedelta(seconds=s) for tier, s in table.items()}
        changes[ours] = _check_tiers(name, theirs, kept, tiers)
    if given.same_text_within_s is not None:
        changes["same_text_within"] = timedelta(seconds=given.same_text_within_s) if given.same_text_within_s else None
    if given.same_text_ignores is not None:
        changes["same_text_ignores"] = given.same_text_ignores
    if given.lease_s is not None:
        changes["lease"] = timedelta(seconds=given.lease_s)
    if given.most_deliveries is not None:
        changes["most_deliveries"] = given.most_deliveries
    if given.classes is not None:
        changes["classes"] = tuple(
            ClassRule(each.tier, each.channels, each.kinds, each.commands) for each in given.classes
        )
    changes["otherwise"] = given.otherwise or policy.otherwise
    policy = replace(policy, **changes)
    _check_tiers(name, "classes", {rule.tier: rule for rule in policy.classes}, tiers)
    _check_tiers(name, "otherwise", {} if policy.otherwise is None else {policy.otherwise: None}, tiers)
    return policy


def _guards(name: str, given: QueueSettings, tiers: Sequence[str], base: QueuePolicy | None) -> dict[str, int]:
    usual = given.max_consecutive_same_tier
    came_with: Mapping[str, int] = base.guards if base is not None and usual is None else {}
    _check_tiers(name, "guards", given.guards, tiers)
    return {tier: given.guards.get(tier) or came_with.get(tier) or usual or GUARD for tier in tiers}


def _check_tiers(queue: str, field: str, by_tier: Mapping[str, Any], tiers: Sequence[str]) -> Mapping[str, Any]:
    for tier in by_tier:
        if tier not in tiers:
            raise SettingsError(
                f"queues.{queue}.{field}: there is no tier {tier!r} in this queue; use one of {', '.join(tiers)}"
            )
    return by_tier
