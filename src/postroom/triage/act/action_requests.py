"""Actions that a person or an agent requests. They pass the same safety check as those of rules and models."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, RecordedType, action_hash, known_action
from postroom.core.actions.safety import Policy, Proposed, Ruling, safety_ruling
from postroom.core.actions.snooze import wake_time
from postroom.core.actions.steps import check_action, shown, steps_of
from postroom.core.errors import SafetyRefused
from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.lifecycle import ActionState
from postroom.core.mail.label_names import looks_like
from postroom.store.actions import action_requests as requests
from postroom.store.actions import decisions
from postroom.store.actions.protection import restraints, safety_facts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_builders import ASKED_PRIORITY, action_job, approval_job
from postroom.store.mail.labels import list_labels
from postroom.store.mail.mail import load_message
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock

APPROVAL_TIME = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """The result of a request."""

    action_id: UUID
    state: ActionState
    ruling: Ruling


@dataclass(frozen=True, slots=True)
class ActionRequests:
    """Accept requests for actions on stored messages."""

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
        signed: Signature,
    ) -> RequestedAction:
        """Record the action, to be done or to be approved, with its entry in the audit log.

        Raise BadInput, NotFound, or SafetyRefused with the reasons.
        """
        recorded, ruling = await self._evaluate(
            _ActionRequest(message_id, action_type, parameters, source, asked_by, why)
        )
        decision, action, follow_up = recorded
        await self.database.run(decisions.ask_for_action(decision, action, follow_up, self.clock(), signed))
        return RequestedAction(action.id, action.state, ruling)

    async def ask_once(
        self, message_id: UUID, action_type: str, parameters: Mapping[str, Any], why: str, signed: Signature, most: int
    ) -> RequestedAction:
        """Do the same for an agent, which may have `most` requests open; a request that is still open is not recorded
        again.

        What an agent is trusted with is done without approval only up to its hourly cap, and hides no more than the
        caps on hiding allow. Raise BadInput, NotFound, or SafetyRefused with the reasons.
        """
        request = _ActionRequest(message_id, action_type, parameters, "agent", signed.actor, why)
        recorded, ruling = await self._evaluate(request)
        cap = None
        if ruling.verdict == "allow":
            beyond, _ = await self._evaluate(request, hour_is_used=True)
            cap = requests.AgentCap(self.policy.agent_hourly_cap, beyond)
        now = self.clock()
        hiding = self.policy.hiding_caps(now)
        first = await self.database.run(requests.ask_once(recorded, most, signed, now, cap, hiding))
        if first is None:
            return RequestedAction(recorded.action.id, recorded.action.state, ruling)
        return RequestedAction(first.id, first.state, Ruling(first.safety["verdict"], tuple(first.safety["reasons"])))

    async def _evaluate(
        self, request: "_ActionRequest", hour_is_used: bool = False
    ) -> tuple[requests.Recorded, Ruling]:
        """Return what would be recorded, and why. `hour_is_used`: as if the agent had reached its hourly cap."""
        action_type: RecordedType = "several" if request.action_type == "several" else known_action(request.action_type)
        check_action(action_type, request.parameters)
        now = self.clock()
        for step in steps_of(action_type, request.parameters):
            if step.action_type == "snooze":
                wake_time(step.parameters, now)
        message = await self.database.run(load_message(request.message_id))
        proposed = Proposed(action_type, request.parameters, 1.0, request.source)
        found = await self.database.run(restraints(message.account_id, now))
        around = safety_facts(message, found, proposed, now)
        if request.source == "agent":
            new_label = await self._new_label(message.account_id, request)
            done = self.policy.agent_hourly_cap if hour_is_used else 0
            around = replace(around, new_label=new_label, agent_actions_this_hour=done)
        ruling = safety_ruling(proposed, around, self.policy)
        if ruling.verdict == "refuse":
            done = shown(action_type, request.parameters)
            raise SafetyRefused(f"{done} is not done: {'; '.join(ruling.reasons)}", ruling.reasons)
        decision = decisions.Decision(
            new_id(),
            message.account_id,
            message.id,
            "none",
            action_type,
            request.parameters,
            1.0,
            request.why,
            needs_approval=ruling.verdict == "approve",
            safety=ruling.as_json(),
        )
        action, follow_up = action_and_job(
            self.catalogue, decision, ruling, request.source, now, self.approval_time, ASKED_PRIORITY, request.asked_by
        )
        return requests.Recorded(decision, action, follow_up), ruling

    async def _new_label(self, account_id: UUID, request: "_ActionRequest") -> str | None:
        """Say why a label to be applied is a new one; return None if all exist, or if none is to be applied."""
        steps = steps_of(request.action_type, request.parameters)
        names = [str(step.parameters["label"]) for step in steps if step.action_type == "apply_label"]
        if not names:
            return None
        known = [each for each in await self.database.run(list_labels(account_id)) if each.kind == "user"]
        existing = {each.name.casefold() for each in known} | {each.provider_label_id for each in known}
        name = next((each for each in names if each not in existing and each.casefold() not in existing), None)
        if name is None:
            return None
        # Do not repeat the agent's words: users read a reason as ours.
        alike = looks_like(name, (each.name for each in known))
        beside = "" if alike is None else f" (it looks like your label {alike!r})"
        return f"there is no such label yet, and agents may not create labels by themselves{beside}"


class _ActionRequest(NamedTuple):
    """One request for an action."""

    message_id: UUID
    action_type: str
    parameters: Mapping[str, Any]
    source: Literal["user", "agent"]
    asked_by: str
    why: str


def action_and_job(
    catalogue: Catalogue,
    decision: decisions.Decision,
    ruling: Ruling,
    actor: Actor,
    now: datetime,
    approval_time: timedelta,
    priority: int,
    asked_by: str | None = None,
) -> tuple[decisions.NewAction, NewJob]:
    """Return the action, and the job that carries it out at once or notifies people that it waits for approval."""
    id, account_id = new_id(), decision.account_id
    hashed = action_hash(decision.message_id, decision.action_type, decision.parameters)
    if ruling.verdict == "approve":
        notify = approval_job(catalogue, account_id, id, priority)
        expires_at = now + approval_time
        return decisions.NewAction(id, actor, "approved_pending", hashed, None, expires_at, asked_by), notify
    carry_out = action_job(catalogue, account_id, id, priority)
    hides = ruling.hides
    return decisions.NewAction(id, actor, "queued", hashed, carry_out.id, None, asked_by, hides=hides), carry_out
