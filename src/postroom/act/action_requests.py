"""Actions that a person or an agent asks for. They pass the same safety as those that rules and models decide on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, action_hash, check_parameters, known_action
from postroom.core.actions.safety import Policy, Proposed, Ruling, safety_ruling
from postroom.core.actions.snooze import wake_time
from postroom.core.errors import SafetyRefused
from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.lifecycle import ActionState
from postroom.core.mail.label_names import looks_like
from postroom.store import action_requests as wishes
from postroom.store import decisions
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.job_builders import ASKED_PRIORITY, action_job, approval_job
from postroom.store.labels import list_labels
from postroom.store.mail import load_message
from postroom.store.protection import restraints, safety_facts

APPROVAL_TIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """What became of a wish."""

    action_id: UUID
    state: ActionState
    ruling: Ruling


@dataclass(frozen=True, slots=True)
class ActionRequests:
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
    ) -> RequestedAction:
        """Records the action, to be done or to be approved; audited when it is signed.

        Raises BadInput, NotFound, or SafetyRefused with the reasons.
        """
        recorded, ruling = await self._weighed(_Wanted(message_id, action_type, parameters, source, asked_by, why))
        wish, action, follow_up = recorded
        await self.database.run(decisions.ask_for_action(wish, action, follow_up, self.clock(), signed))
        return RequestedAction(action.id, action.state, ruling)

    async def ask_once(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature, most: int
    ) -> RequestedAction:
        """The same for an agent, of which `most` may be open; what it has asked for and is open is not recorded again.

        What an agent is trusted with is done without a person's yes only as often as the hour allows. Raises BadInput,
        NotFound, or SafetyRefused with the reasons.
        """
        wanted = _Wanted(message_id, action_type, parameters, "agent", signed.actor, why)
        recorded, ruling = await self._weighed(wanted)
        cap = None
        if ruling.verdict == "allow":
            beyond, _ = await self._weighed(wanted, hour_is_used=True)
            cap = wishes.AgentCap(self.policy.agent_hourly_cap, beyond)
        first = await self.database.run(wishes.ask_once(recorded, most, signed, self.clock(), cap))
        if first is None:
            return RequestedAction(recorded.action.id, recorded.action.state, ruling)
        return RequestedAction(first.id, first.state, Ruling(first.safety["verdict"], tuple(first.safety["reasons"])))

    async def _weighed(self, wanted: "_Wanted", hour_is_used: bool = False) -> tuple[wishes.Recorded, Ruling]:
        """What would be recorded, and why. `hour_is_used`: as if the agent had used its share of the hour."""
        action_type = known_action(wanted.action_type)
        check_parameters(action_type, wanted.parameters)
        now = self.clock()
        if action_type == "snooze":
            wake_time(wanted.parameters, now)
        message = await self.database.run(load_message(wanted.message_id))
        around = safety_facts(message, await self.database.run(restraints(message.account_id, now)))
        if wanted.source == "agent":
            new_label = await self._new_label(message.account_id, wanted)
            done = self.policy.agent_hourly_cap if hour_is_used else 0
            around = replace(around, new_label=new_label, agent_actions_this_hour=done)
        proposed = Proposed(action_type, wanted.parameters, 1.0, wanted.source)
        ruling = safety_ruling(proposed, around, self.policy)
        if ruling.verdict == "refuse":
            raise SafetyRefused(f"{wanted.action_type} is not done: {'; '.join(ruling.reasons)}")
        wish = decisions.Decision(
            new_id(),
            message.account_id,
            message.id,
            "none",
            action_type,
            wanted.parameters,
            1.0,
            wanted.why,
            needs_approval=ruling.verdict == "approve",
            safety=ruling.as_json(),
        )
        action, follow_up = next_of(
            self.catalogue, wish, ruling, wanted.source, now, self.approval_time, ASKED_PRIORITY, wanted.asked_by
        )
        return wishes.Recorded(wish, action, follow_up), ruling

    async def _new_label(self, account_id: UUID, wanted: "_Wanted") -> str | None:
        """Why the label that would be applied is a new one; None when it exists, or none would be applied."""
        name = wanted.parameters.get("label")
        if wanted.action_type != "apply_label" or not isinstance(name, str):
            return None
        known = [each for each in await self.database.run(list_labels(account_id)) if each.kind == "user"]
        if any(name.casefold() == each.name.casefold() or name == each.provider_label_id for each in known):
            return None
        # The agent's own words are not repeated: a reason is ours, and is read as such.
        alike = looks_like(name, (each.name for each in known))
        beside = "" if alike is None else f" (it looks like your label {alike!r})"
        return f"there is no such label yet, and agents create none by themselves{beside}"


class _Wanted(NamedTuple):
    """What somebody asks for."""

    message_id: UUID
    action_type: str
    parameters: Mapping[str, Any]
    source: Literal["user", "agent"]
    asked_by: str
    why: str


def next_of(
    catalogue: Catalogue,
    wish: decisions.Decision,
    ruling: Ruling,
    actor: Actor,
    now: datetime,
    approval_time: timedelta,
    priority: int,
    asked_by: str | None = None,
) -> tuple[decisions.NewAction, NewJob]:
    """The action, and the job that carries it out at once or tells people that it waits for them."""
    id, account_id = new_id(), wish.account_id
    hashed = action_hash(wish.message_id, wish.action_type, wish.parameters)
    if ruling.verdict == "approve":
        notify = approval_job(catalogue, account_id, id, priority)
        expires_at = now + approval_time
        return decisions.NewAction(id, actor, "awaiting_approval", hashed, None, expires_at, asked_by), notify
    carry_out = action_job(catalogue, account_id, id, priority)
    return decisions.NewAction(id, actor, "queued", hashed, carry_out.id, None, asked_by), carry_out
