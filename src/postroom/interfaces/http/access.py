"""Access control: roles, bound identities, and the queues of agents. Refusals are counted and audited."""

from typing import cast

import structlog

from postroom.core.errors import StoreError
from postroom.core.metrics import ACCESS_REFUSED
from postroom.core.roles import CHANNELS, Principal, Role
from postroom.interfaces.http.mcp.tool import Tool
from postroom.interfaces.http.problems import AccessRefused
from postroom.interfaces.http.services import Services
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import AuditEntry, record_audit

log = structlog.get_logger()


def require_role(principal: Principal, tool: Tool) -> None:
    if principal.role not in tool.roles:
        names = " or ".join(sorted(tool.roles))
        raise AccessRefused(
            "token", f"the role {principal.role} may not call {tool.name}", f"use a token of the role {names}", "role"
        )
    if not tool.exists_for(principal):
        raise AccessRefused(
            "token",
            f"an agent that is bound to an account has no queues, and may not call {tool.name}",
            "use the token of an agent that was created without --account",
            "role",
        )


def bound_identity(principal: Principal) -> str | None:
    """The only endpoint for which this principal may ingest; None if it is not bound to one."""
    if principal.role is Role.CONNECTOR and principal.identity is None:
        raise AccessRefused(
            "token", "this connector's token names no endpoint", "create one with --identity", "identity"
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
        "use one of these, or a token created with --channel",
        "channel",
    )


def may_ingest(principal: Principal, envelope: object) -> bool:
    """Whether the caller may use the envelope's channel. The intake refuses unknown channels."""
    if not isinstance(envelope, dict):
        return True
    source = cast("dict[str, object]", envelope).get("source")
    channel = cast("dict[str, object]", source).get("channel") if isinstance(source, dict) else None
    return not isinstance(channel, str) or channel not in CHANNELS or channel in principal.allowed_channels


def require_queue(services: Services, principal: Principal, queue: str) -> None:
    """Raise BadInput for an unknown queue, AccessRefused for an agent on a queue that Postroom itself consumes."""
    if not services.queues[queue].for_agents and principal.role is Role.AGENT:
        usable = ", ".join(name for name in services.queues.names if services.queues[name].for_agents)
        raise AccessRefused("queue", f"agents may not use the queue {queue!r}", f"use one of {usable}", "role")


async def note_refusal(services: Services, principal: Principal, tool: str, refused: AccessRefused) -> None:
    """Count and audit a refusal. A failure of the database here does not change the answer.

    The audit log is kept for good, so repeated refusals are written once a minute, with their number.
    """
    services.tally.count(ACCESS_REFUSED, refused.reason)
    repeated = services.refusals.since_last((principal.actor, tool, refused.reason), services.clock())
    if repeated is None:
        return
    entry = AuditEntry(
        id=new_id(),
        actor=principal.actor,
        role=principal.role.value,
        action="access.refused",
        object_type="tool",
        object_id=tool,
        before=None,
        after={"repeated": repeated} if repeated else None,
        reason=refused.problem.text,
    )
    try:
        await services.database.run(record_audit(entry, services.clock()))
    except StoreError as error:
        log.error("access.refusal_not_audited", tool=tool, error=type(error).__name__)
