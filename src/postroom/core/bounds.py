"""The bounds of tokens: the endpoint and channels of a connector, the queues of an agent."""

from typing import cast

from postroom.core.errors import AccessRefused
from postroom.core.queue.queues import Queues
from postroom.core.roles import CHANNELS, Principal, Role


def bound_identity(principal: Principal) -> str | None:
    """The only endpoint for which this principal may ingest; None if it is not bound to one."""
    if principal.role is Role.CONNECTOR and principal.identity is None:
        raise AccessRefused(
            "token", "this connector's token names no endpoint", "create one that is bound to an endpoint", "identity"
        )
    return principal.identity if principal.role is Role.CONNECTOR else None


def own_identity(principal: Principal) -> str:
    """The endpoint to which the caller is bound; it cannot name another."""
    identity = bound_identity(principal)
    if identity is None:
        raise AccessRefused(
            "token", "this token is not bound to an endpoint", "use the token of a connector", "identity"
        )
    return identity


def not_its_identity(principal: Principal, field: str) -> AccessRefused:
    return AccessRefused(
        field,
        "is not the endpoint that this token is bound to",
        f"use {principal.identity!r}, or the token of the other connector",
        "identity",
    )


def not_its_channel(principal: Principal) -> AccessRefused:
    channels = ", ".join(sorted(principal.allowed_channels))
    return AccessRefused(
        "source.channel",
        f"is not a channel that this token is bound to ({channels})",
        "use one of these, or a token that is bound to that channel",
        "channel",
    )


def may_ingest(principal: Principal, envelope: object) -> bool:
    """Whether the caller may use the envelope's channel. The intake refuses unknown channels."""
    if not isinstance(envelope, dict):
        return True
    source = cast("dict[str, object]", envelope).get("source")
    channel = cast("dict[str, object]", source).get("channel") if isinstance(source, dict) else None
    return not isinstance(channel, str) or channel not in CHANNELS or channel in principal.allowed_channels


def require_queue(queues: Queues, principal: Principal, queue: str) -> None:
    """Raise BadInput for an unknown queue, AccessRefused for an agent on a queue that Postroom itself consumes."""
    if not queues[queue].for_agents and principal.role is Role.AGENT:
        usable = ", ".join(name for name in queues.names if queues[name].for_agents)
        raise AccessRefused("queue", f"agents may not use the queue {queue!r}", f"use one of {usable}", "role")
