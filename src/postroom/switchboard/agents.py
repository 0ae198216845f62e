"""The service that acts on mailboxes on behalf of agents, as the switchboard sees it. `compose` provides it."""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from postroom.core.actions.safety import Ruling
from postroom.core.lifecycle import ActionState
from postroom.store.audit import Signature


class Outcome(Protocol):
    """The result of a proposal."""

    @property
    def action_id(self) -> UUID: ...

    @property
    def state(self) -> ActionState: ...

    @property
    def ruling(self) -> Ruling: ...


class AgentService(Protocol):
    """Accepts proposals and undoes actions. It cannot approve an action."""

    async def propose(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature
    ) -> Outcome: ...

    async def undo(self, action_id: UUID, account_id: UUID | None, signed: Signature) -> str: ...
