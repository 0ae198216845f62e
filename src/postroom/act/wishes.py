"""Actions that a person or an agent asks for. They pass the same safety as those that rules and models decide on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from postroom.core.actions import action_hash, check_parameters
from postroom.core.errors import SafetyRefused
from postroom.core.job_types import ACTION_GMAIL, APPROVAL_NOTIFY, Catalogue
from postroom.core.jobs import NewJob
from postroom.core.safety import Policy, Proposed, Ruling, rule_on
from postroom.core.snooze import wake_time
from postroom.store import decisions, wishes
from postroom.store.audit import Signature
from postroom.store.clock import Clock
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.store.mail import load_message
from postroom.store.new_jobs import new_job
from postroom.store.protection import restraints, surroundings

APPROVAL_TIME = timedelta(hours=24)
# Above the mail of the day: somebody waits for it.
PRIORITY = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a wish."""

    action_id: UUID
    state: str
    ruling: Ruling


@dataclass(frozen=True, slots=True)
class Wishes:
    """Takes wishes for actions on stored messages."""

    database: Database
    catalogue: Catalogue
    policy: Policy
    clock: Clock
    approval_time: timedelta = APPROVAL_TIME

    async def ask(
        self,
        message_id: UUID,
        action_type: str,
        parameters: Mapping[str, Any],
        *,
        source: Literal["user", "agent"],
        asked_by: str,
        why: str,
        signed: Signature | None = None,
    ) -> Asked:
        """Records the action, to be done or to be approved; audited when it is signed.

        Raises BadInput, NotFound, or SafetyRefused with the reasons.
        """
        weighed = await self._weighed(message_id, action_type, parameters, source, asked_by, why)
        wish, action, follow_up, ruling = weighed
        await self.database.run(decisions.ask_for_action(wish, action, follow_up, self.clock(), signed))
        return Asked(action.id, action.state, ruling)

    async def ask_once(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature, most: int
    ) -> Asked:
        """The same for an agent, of which `most` may be open; what it has asked for and is open is not recorded again.

        Raises BadInput, NotFound, or SafetyRefused with the reasons.
        """
        weighed = await self._weighed(message_id, action_type, parameters, "agent", signed.actor, why)
        wish, action, follow_up, ruling = weighed
        first = await self.database.run(wishes.ask_once(wish, action, follow_up, most, signed, self.clock()))
        if first is None:
            return Asked(action.id, action.state, ruling)
        return Asked(first.id, first.state, Ruling(first.safety["verdict"], tuple(first.safety["reasons"])))

    async def _weighed(
        self,
        message_id: UUID,
        action_type: str,
        parameters: Mapping[str, Any],
        source: Literal["user", "agent"],
        asked_by: str,
        why: str,
    ) -> tuple[decisions.Decision, decisions.NewAction, NewJob, Ruling]:
        """What would be recorded, and why."""
        check_parameters(action_type, parameters)
        now = self.clock()
        if action_type == "snooze":
            wake_time(parameters, now)
        message = await self.database.run(load_message(message_id))
        found = await self.database.run(restraints(message.account_id, now))
        ruling = rule_on(Proposed(action_type, parameters, 1.0, source), surroundings(message, found), self.policy)
        if ruling.verdict == "refuse":
            raise SafetyRefused(f"{action_type} is not done: {'; '.join(ruling.reasons)}")
        wish = decisions.Decision(
            new_id(),
            message.account_id,
            message.id,
            "none",
            action_type,
            parameters,
            1.0,
            why,
            needs_approval=ruling.verdict == "approve",
            safety=ruling.as_json(),
        )
        action, follow_up = next_of(self.catalogue, wish, ruling, source, now, self.approval_time, PRIORITY, asked_by)
        return wish, action, follow_up, ruling


def next_of(
    catalogue: Catalogue,
    wish: decisions.Decision,
    ruling: Ruling,
    actor: str,
    now: datetime,
    approval_time: timedelta,
    priority: int,
    asked_by: str | None = None,
) -> tuple[decisions.NewAction, NewJob]:
    """The action, and the job that carries it out at once or tells people that it waits for them."""
    id, account_id = new_id(), wish.account_id
    hashed = action_hash(wish.message_id, wish.action_type, wish.parameters)
    payload = {"account_id": str(account_id), "action_id": str(id)}
    if ruling.verdict == "approve":
        key = f"{APPROVAL_NOTIFY.name}:{account_id}:{id}"
        notify = new_job(catalogue, APPROVAL_NOTIFY.name, payload, key=key, priority=priority)
        expires_at = now + approval_time
        return decisions.NewAction(id, actor, "approved_pending", hashed, None, expires_at, asked_by), notify
    key = f"{ACTION_GMAIL.name}:{account_id}:{id}"
    carry_out = new_job(catalogue, ACTION_GMAIL.name, payload, key=key, priority=priority)
    return decisions.NewAction(id, actor, "queued", hashed, carry_out.id, None, asked_by), carry_out
