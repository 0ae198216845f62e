"""The requests of agents: they propose actions, which mostly wait for approval, and undo their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from postroom.act.action_requests import ActionRequests, RequestedAction
from postroom.core.actions.safety import why_agent_may_not_undo
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import BadInput, NotFound, SafetyRefused
from postroom.core.roles import Role
from postroom.store import undos
from postroom.store.audit import Signature
from postroom.store.job_builders import ASKED_PRIORITY, undo_job

MOST_OPEN = 100


@dataclass(frozen=True, slots=True)
class Agents:
    """Act for the signer, within its role. Nothing here approves anything."""

    requests: ActionRequests

    async def propose(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature
    ) -> RequestedAction:
        """Record the proposal. If the same proposal is still open, return that one.

        Raise BadInput, NotFound, or SafetyRefused with the reasons.
        """
        return await self.requests.ask_once(message_id, action_type, parameters, why, signed, MOST_OPEN)

    async def undo(self, action_id: UUID, account_id: UUID | None, signed: Signature) -> str:
        """Start an undo, unless it was started before, and return its state.

        An agent may undo only its own actions, see `core/actions/safety.py`. Raise NotFound, also for an action of
        another account; SafetyRefused with the reason; BadInput if the action cannot be undone.
        """
        found = await self.requests.database.run(undos.undo_candidate(action_id))
        if found is None or account_id not in (None, found.account_id):
            raise NotFound(f"there is no action {action_id}")
        self._check_agent(found, signed)
        if (reason := why_not_undoable(found.action_type, found.state, found.hint)) is not None:
            raise BadInput("action_id", f"cannot be undone: {reason}", "actions.list shows what is reversible")
        if found.undone in ("queued", "executing", "completed"):
            return found.undone
        now = self.requests.clock()
        again = 0 if found.undone is None else int(now.timestamp() * 1_000_000)
        job = undo_job(self.requests.catalogue, found.account_id, (action_id,), ASKED_PRIORITY, again)
        cap = self.requests.policy.agent_hourly_cap if signed.role == Role.AGENT else None
        await self.requests.database.run(undos.enqueue_undo(job, action_id, signed, now, cap))
        return "queued"

    def _check_agent(self, found: undos.UndoCandidate, signed: Signature) -> None:
        if signed.role != Role.AGENT:
            return
        policy = self.requests.policy
        reason = why_agent_may_not_undo(signed.actor, found.actor, found.asked_by, found.approved_by, policy)
        if reason is not None:
            raise SafetyRefused(reason)
