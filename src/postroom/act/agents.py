"""What agents have done on their word: actions proposed, which mostly wait for a person, and actions undone."""

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
    """Serves whoever signs, as a role. Nothing here approves anything."""

    wishes: ActionRequests

    async def propose(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature
    ) -> RequestedAction:
        """Records the proposal. The same once more, while the first is open, is the first.

        Raises BadInput, NotFound, or SafetyRefused with the reasons.
        """
        return await self.wishes.ask_once(message_id, action_type, parameters, why, signed, MOST_OPEN)

    async def undo(self, action_id: UUID, account_id: UUID | None, signed: Signature) -> str:
        """The state of the undo, which is begun unless it was before.

        Of agents each undoes its own, see `core/actions/safety.py`. Raises NotFound, also for an action of another
        account than this one; SafetyRefused with the reason; BadInput for what cannot be undone.
        """
        found = await self.wishes.database.run(undos.undo_candidate(action_id))
        if found is None or account_id not in (None, found.account_id):
            raise NotFound(f"there is no action {action_id}")
        self._check_agent(found, signed)
        if (reason := why_not_undoable(found.action_type, found.state, found.hint)) is not None:
            raise BadInput("action_id", f"cannot be undone: {reason}", "actions.list shows what is reversible")
        if found.undone in ("queued", "executing", "completed"):
            return found.undone
        now = self.wishes.clock()
        again = 0 if found.undone is None else int(now.timestamp() * 1_000_000)
        job = undo_job(self.wishes.catalogue, found.account_id, (action_id,), ASKED_PRIORITY, again)
        cap = self.wishes.policy.agent_hourly_cap if signed.role == Role.AGENT else None
        await self.wishes.database.run(undos.enqueue_undo(job, action_id, signed, now, cap))
        return "queued"

    def _check_agent(self, found: undos.UndoCandidate, signed: Signature) -> None:
        if signed.role != Role.AGENT:
            return
        policy = self.wishes.policy
        reason = why_agent_may_not_undo(signed.actor, found.actor, found.asked_by, found.approved_by, policy)
        if reason is not None:
            raise SafetyRefused(reason)
