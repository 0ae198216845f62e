"""For each writing verb of tokens, audit log and connector registry: a database in which it has something to do."""

from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.heartbeat import parse_heartbeat
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Role
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation import health
from postroom.store.intake import connectors
from postroom.store.people import audit, tokens
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.mail import keep_mail
from support.store.fault_cases_jobs import Case
from support.store.job_setup import JobSetup


def signed() -> audit.Signature:
    return audit.Signature(new_id(), "cli:ada", "admin")


async def create_token(setup: JobSetup) -> Transaction[Any]:
    return tokens.create_token(tokens.mint(Role.AGENT).token, signed(), setup.clock())


async def _token(setup: JobSetup) -> UUID:
    return (await setup.database.run(await create_token(setup))).id


async def revoke_token(setup: JobSetup) -> Transaction[Any]:
    """Its holder has asked for something that waits for approval, and for something that waits for its turn."""
    id = await _token(setup)
    for number, trusted in enumerate((True, False)):
        by = audit.Signature(new_id(), f"token:{id}", "agent")
        requests = ActionRequests(setup.database, CATALOGUE, Policy(trust_agents=trusted), setup.clock)
        await Agents(requests).propose(await keep_mail(setup.database, setup.clock, number), "star", {}, "x", by)
    return tokens.revoke_token(id, signed(), setup.clock())


async def note_token_use(setup: JobSetup) -> Transaction[Any]:
    return tokens.note_token_use(await _token(setup), setup.clock())


async def record_audit(setup: JobSetup) -> Transaction[Any]:
    entry = audit.AuditEntry(new_id(), "token:1", "agent", "access.refused", "tool", "queue.replay", reason="role")
    return audit.record_audit(entry, setup.clock())


async def record_heartbeat(setup: JobSetup) -> Transaction[Any]:
    report = parse_heartbeat(
        {
            "schema_version": "connector.heartbeat.v1",
            "connector": {"connector_type": "gmail", "endpoint_identity": "gmail:user:a@b", "instance_id": "1"},
            "status": {"state": "healthy", "uptime_s": 1},
            "sent_at": setup.clock(),
        }
    )
    return connectors.record_heartbeat(report, setup.clock())


async def prune_connectors(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await record_heartbeat(setup))
    return connectors.prune_connectors(setup.clock.forward(60))


async def write_probe(setup: JobSetup) -> Transaction[Any]:
    return health.write_probe(setup.clock())


CASES: list[Case] = [
    create_token,
    revoke_token,
    note_token_use,
    record_audit,
    record_heartbeat,
    prune_connectors,
    write_probe,
]
