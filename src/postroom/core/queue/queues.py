"""The named queues as data: their tiers, guards and routes, and the treatment of messages that wait long.

Postroom ships two queues, `email` and `gateway`; settings change them and add more. No code knows a queue by name: the
picker, the intake and the buffer read these policies.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import get_args

from postroom.core.errors import BadInput
from postroom.core.queue.envelope import Envelope, PolicyTier

GUARD = 10
LOWEST: PolicyTier = "default"
HISTORY = "history"
NOTHING: Mapping[str, timedelta] = MappingProxyType({})


# Channels on which people write: there, a text that begins with "/" is a command.
PEOPLE = ("telegram", "slack", "discord")
# Channels on which an agent gateway passes on people's messages, among other events.
GATEWAYS = ("redis",)
# Elsewhere such a text may be a path; a command is a word.
_COMMAND = re.compile(r"/[a-z][\w-]*(\s|$)")


@dataclass(frozen=True, slots=True)
class ClassRule:
    """Which events belong in a tier: everything given must match. `kinds` are globs such as `test.*`.

    `commands` matches texts that begin with a command, on the given channels, or by default on those on which people
    write: there all that begins with "/", elsewhere "/" and a word.
    """

    tier: str
    channels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    commands: bool = False

    @property
    def _channels(self) -> tuple[str, ...]:
        return self.channels or ((*PEOPLE, *GATEWAYS) if self.commands else ())

    def fits(self, envelope: Envelope) -> bool:
        kind = envelope.event.kind or ""
        return (
            (not (channels := self._channels) or envelope.source.channel in channels)
            and (not self.kinds or any(fnmatchcase(kind, glob) for glob in self.kinds))
            and (not self.commands or _is_command(envelope))
        )


def _is_command(envelope: Envelope) -> bool:
    text = envelope.payload.normalized_text
    return text.startswith("/") if envelope.source.channel in PEOPLE else _COMMAND.match(text) is not None


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """One queue: its tiers, highest first, with the guard of each. The other rules are by tier and may be empty.

    `age_after`: a head that has waited longer counts one tier higher. `coalesce_within`: when the tier is leased, its
    messages that are no older become one summary. `auto_ack_after`: older messages end without processing.
    `same_text_within`: the same content from the same source within this time is a duplicate, even under another id;
    `same_text_ignores` are paths in `payload.raw` that are then ignored. Without class rules, the tier is the
    `policy_tier` that the envelope asks for. Agents may lease from the queue unless Postroom consumes it itself.
    """

    queue: str
    guards: Mapping[str, int]
    age_after: Mapping[str, timedelta] = field(default_factory=lambda: NOTHING)
    coalesce_within: Mapping[str, timedelta] = field(default_factory=lambda: NOTHING)
    auto_ack_after: Mapping[str, timedelta] = field(default_factory=lambda: NOTHING)
    same_text_within: timedelta | None = None
    classes: tuple[ClassRule, ...] = ()
    otherwise: str | None = None
    lease: timedelta = timedelta(seconds=300)
    most_deliveries: int = 5
    for_agents: bool = True
    same_text_ignores: tuple[str, ...] = ()

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(self.guards)

    def tier_of(self, envelope: Envelope) -> str:
        """The tier of an envelope. Backfilled mail goes to `history` where that exists; no envelope can ask for it.
        Mail on demand always goes to the lowest tier of live mail.
        """
        if self.otherwise is None:
            if envelope.control.backfill_job_id is not None and HISTORY in self.guards:
                return HISTORY
            return LOWEST if envelope.is_on_demand else envelope.control.policy_tier
        return next((rule.tier for rule in self.classes if rule.fits(envelope)), self.otherwise)


EMAIL = QueuePolicy(
    "email",
    dict.fromkeys((*get_args(PolicyTier), HISTORY), GUARD),
    lease=timedelta(seconds=60),
    most_deliveries=25,
    for_agents=False,
)
GATEWAY = QueuePolicy(
    "gateway",
    {"P0": 3, "P1": GUARD, "P2": GUARD, "P3": GUARD},
    age_after={"P2": timedelta(minutes=5), "P3": timedelta(minutes=5)},
    coalesce_within={"P3": timedelta(seconds=60)},
    auto_ack_after={"P3": timedelta(seconds=60)},
    same_text_within=timedelta(seconds=30),
    classes=(
        ClassRule("P0", channels=PEOPLE),
        ClassRule("P0", commands=True),
        ClassRule("P0", kinds=("callback_query",)),
        ClassRule("P1", kinds=("*deploy.failed*", "*friction-fix*")),
        # `test.` anywhere, but as a word: `latest.release` is not a test, and P3 may end unread.
        ClassRule("P3", kinds=("test.*", "*[!a-zA-Z0-9]test.*", "*media.processed*")),
    ),
    otherwise="P2",
)


@dataclass(frozen=True, slots=True)
class Route:
    """Sends some sources to a queue other than the default; `endpoint_identity` is a glob, None matches any."""

    queue: str
    channel: str | None = None
    endpoint_identity: str | None = None

    def fits(self, envelope: Envelope) -> bool:
        source = envelope.source
        return (self.channel is None or source.channel == self.channel) and (
            self.endpoint_identity is None or fnmatchcase(source.endpoint_identity, self.endpoint_identity)
        )


class Queues:
    """All queues, and which of them an envelope goes to."""

    def __init__(self, policies: Sequence[QueuePolicy] = (EMAIL, GATEWAY), routes: Sequence[Route] = ()) -> None:
        self._policies = {policy.queue: policy for policy in policies}
        self._routes = tuple(routes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._policies)

    def __getitem__(self, name: str) -> QueuePolicy:
        try:
            return self._policies[name]
        except KeyError:
            raise BadInput("queue", f"there is no queue {name!r}", f"use one of {', '.join(self.names)}") from None

    def of(self, envelope: Envelope) -> QueuePolicy:
        """The queue of the first route that matches; otherwise `email` for mail and `gateway` for everything else."""
        for route in self._routes:
            if route.fits(envelope):
                return self[route.queue]
        return self["email" if envelope.source.channel == "email" else "gateway"]
