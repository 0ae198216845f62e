"""Stored messages, and actions on them in every state."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import ActionType, DecidedType, label_change
from postroom.core.actions.undo import undo_hint
from postroom.core.jobs.job import Job
from postroom.core.mail.message import read_mail
from postroom.core.queue.envelope import parse_envelope
from postroom.core.queue.queues import EMAIL
from postroom.store.actions import actions, decisions
from postroom.store.engine.ids import new_id
from postroom.store.intake import inbox
from postroom.store.mail import mail
from support import storing
from support.store.fault_cases_inbox import ENDPOINT, accepting
from support.store.job_setup import JobSetup

CAP = 3
ARRIVED = frozenset({"INBOX", "UNREAD"})
OTHERS = "gmail:user:other@example.com"


class Stored(NamedTuple):
    """A message, and the job that is deciding about it."""

    account_id: UUID
    message_id: UUID
    deciding: Job


class Waiting(NamedTuple):
    """An action, and the job that is to carry it out and was claimed."""

    id: UUID
    account_id: UUID
    message_id: UUID
    job: Job


class ActionSetup:
    """Short names for what leads to an action."""

    def __init__(self, setup: JobSetup) -> None:
        self.setup = setup
        self._messages = 0

    async def stored(self, endpoint: str = ENDPOINT) -> Stored:
        run, now = self.setup.database.run, self.setup.clock()
        self._messages += 1
        account = await run(mail.keep_account(new_id(), "gmail", endpoint, endpoint.split(":")[-1], now))
        await run(accepting(self.setup, [_letter(self._messages, endpoint)], EMAIL))
        ((leased,), _) = await run(inbox.lease(EMAIL, 1, new_id(), now, new_id()))
        message_id, classify = new_id(), self.setup.new()
        content = read_mail(leased.envelope)
        await run(storing.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, now))
        return Stored(account.id, message_id, await self.setup.claim_one())

    async def waiting(
        self,
        kind: DecidedType = "archive",
        *,
        endpoint: str = ENDPOINT,
        rule_name: str | None = None,
        batch_id: UUID | None = None,
        after: Waiting | None = None,
        **options: Any,
    ) -> Waiting:
        """An action on a new message, or on that of an earlier action, by the message's second decision."""
        if after is None:
            account_id, message_id, deciding = await self.stored(endpoint)
        else:
            account_id, message_id, deciding = after.account_id, after.message_id, await self.setup.claimed()
        generation = 0 if after is None else 1
        decision = decision_about(account_id, message_id, kind, rule_name=rule_name, generation=generation)
        follow_up, id = self.setup.new(**options), new_id()
        action = decisions.NewAction(id, "rule", "queued", "hash", follow_up.id, batch_id=batch_id)
        now = self.setup.clock()
        await self.setup.database.run(decisions.record_decision(deciding, decision, action, follow_up, now))
        return Waiting(id, account_id, message_id, await self.setup.claim_one())

    async def begin(self, waiting: Waiting, job: Job | None = None) -> None:
        now = self.setup.clock()
        await self.setup.database.run(actions.begin_action(job or waiting.job, waiting.id, CAP, now))

    async def begun(self, kind: DecidedType = "archive", **options: Any) -> Waiting:
        waiting = await self.waiting(kind, **options)
        await self.begin(waiting)
        return waiting

    async def completed(
        self, kind: ActionType = "archive", before: frozenset[str] = ARRIVED, **options: Any
    ) -> Waiting:
        """Done to a message that had these labels."""
        begun = await self.begun(kind, **options)
        await self.complete(begun, kind, before)
        return begun

    async def complete(self, begun: Waiting, kind: ActionType = "archive", before: frozenset[str] = ARRIVED) -> None:
        change = label_change(kind).effective(before)
        hint, after = undo_hint(kind, before, change), change.applied_to(before)
        now = self.setup.clock()
        await self.setup.database.run(
            actions.complete_action(begun.job, begun.id, actions.DoneChange(after, hint), now)
        )

    async def fail(self, begun: Waiting, error: str = "refused") -> None:
        """The action and its job."""
        await self.setup.database.run(actions.fail_action(begun.job, begun.id, error, self.setup.clock()))
        await self.setup.fail(begun.job, error)

    async def view(self, id: UUID) -> actions.ActionView:
        (view,) = [each for each in await self.views() if each.id == id]
        return view

    async def views(self) -> Sequence[actions.ActionView]:
        return await self.setup.database.run(actions.list_actions(100))

    async def state(self, id: UUID) -> str:
        return (await self.view(id)).state


def decision_about(
    account_id: UUID, message_id: UUID, kind: DecidedType = "archive", **options: Any
) -> decisions.Decision:
    return decisions.Decision(
        new_id(), account_id, message_id, "deterministic", kind, parameters_of(kind), 1.0, "a rule", **options
    )


def parameters_of(kind: str) -> Mapping[str, Any]:
    return {"to": "ada@example.com"} if kind == "forward" else {}


def _letter(number: int, endpoint: str) -> Any:
    return parse_envelope(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": "email", "provider": "gmail", "endpoint_identity": endpoint},
            "event": {"external_event_id": f"m{number}", "observed_at": "2026-11-15T08:00:00Z"},
            "sender": {"identity": "shop@example.com"},
            "payload": {"raw": {"labels": sorted(ARRIVED)}, "normalized_text": "hello"},
        }
    )
