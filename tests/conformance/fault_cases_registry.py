"""For each writing verb of tokens, audit log and connector registry: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from postroom.core.heartbeat import parse_heartbeat
from postroom.core.roles import Role
from postroom.store import audit, connectors, health, tokens
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id


def signed() -> audit.Signature:
    return audit.Signature(new_id(), "cli:ada", "admin")


async def create_token(desk: Desk) -> Transaction[Any]:
    return tokens.create_token(tokens.mint(Role.AGENT).token, signed(), desk.clock())


async def _token(desk: Desk) -> UUID:
    return (await desk.database.run(await create_token(desk))).id


async def revoke_token(desk: Desk) -> Transaction[Any]:
    return tokens.revoke_token(await _token(desk), signed(), desk.clock())


async def note_token_use(desk: Desk) -> Transaction[Any]:
    return tokens.note_token_use(await _token(desk), desk.clock())


async def record_audit(desk: Desk) -> Transaction[Any]:
    entry = audit.AuditEntry(new_id(), "token:1", "agent", "access.refused", "tool", "queue.replay", reason="role")
    return audit.record_audit(entry, desk.clock())


async def record_heartbeat(desk: Desk) -> Transaction[Any]:
    report = parse_heartbeat(
        {
            "schema_version": "connector.heartbeat.v1",
            "connector": {"connector_type": "gmail", "endpoint_identity": "gmail:user:a@b", "instance_id": "1"},
            "status": {"state": "healthy", "uptime_s": 1},
            "sent_at": desk.clock(),
        }
    )
    return connectors.record_heartbeat(report, desk.clock())


async def prune_connectors(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await record_heartbeat(desk))
    return connectors.prune_connectors(desk.clock.forward(60))


async def write_probe(desk: Desk) -> Transaction[Any]:
    return health.write_probe(desk.clock())


CASES: list[Case] = [
    create_token,
    revoke_token,
    note_token_use,
    record_audit,
    record_heartbeat,
    prune_connectors,
    write_probe,
]
