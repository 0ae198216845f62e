"""The requests of agents: they propose actions, which mostly wait for approval, and undo their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import why_agent_may_not_undo
from postroom.core.errors import NotFound, SafetyRefused
from postroom.core.roles import Role
from postroom.store.actions.undos import RequestedUndo, UndoCandidate
from postroom.store.people.audit import Signature
from postroom.triage.act.action_requests import ActionRequests, RequestedAction
from postroom.triage.act.undo_requests import undo_one

MOST_OPEN = 100


@dataclass(slots=True)
class Agents:
    """Act for the signer, within its role. Nothing here approves anything. `requests` are replaced when the safety
    settings change."""

    requests: ActionRequests

    async def propose(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature
    ) -> RequestedAction:
        """Record the proposal. If the same proposal is still open, return that one.

        Raise BadInput, NotFound, or SafetyRefused with the reasons.
        """
        return await self.requests.ask_once(message_id, action_type, parameters, why, signed, MOST_OPEN)

    async def undo(self, action_id: UUID, account_id: UUID | None, signed: Signature) -> RequestedUndo:
        """Start an undo, unless it was started before; see `undo_requests`.

        An agent may undo only its own actions, see `core/actions/safety.py`. Raise NotFound, also for an action of
        another account; SafetyRefused with the reason; BadInput if the action cannot be undone.
        """

        def check(found: UndoCandidate) -> None:
            if account_id not in (None, found.account_id):
                raise NotFound(f"there is no action {action_id}")
            self._check_agent(found, signed)

        requests = self.requests
        cap = requests.policy.agent_hourly_cap if signed.role == Role.AGENT else None
        return await undo_one(
            requests.database,
            requests.catalogue,
            action_id,
            signed,
            requests.clock,
            field="action_id",
            check=check,
            hourly_cap=cap,
        )

    def _check_agent(self, found: UndoCandidate, signed: Signature) -> None:
        if signed.role != Role.AGENT:
            return
        policy = self.requests.policy
        reason = why_agent_may_not_undo(signed.actor, found.actor, found.asked_by, found.approved_by, policy)
        if reason is not None:
            raise SafetyRefused(reason)
