"""The `outbound.send` job: builds the mail of a forward or an automatic answer, and admits it to what is sent.

The job ends there; delivery completes the action. What safety and RFC 3834 forbid by now is not sent: the action is
canceled with the reason, and nothing has failed.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from postroom.core.actions import check_parameters
from postroom.core.auto_reply import why_not_answered
from postroom.core.errors import BadInput, Fatal, JobError, NotFound
from postroom.core.mime import read_letter
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import GmailError, job_error_of
from postroom.handlers.action_gmail import is_the_end, may_begin
from postroom.handlers.payload import text_field, uuid_field
from postroom.jobs.run import JobRun
from postroom.outbound.attachments import attached_to
from postroom.outbound.mime import Built, Original, answer_address, build_forward, build_reply, hops
from postroom.store import actions, outbound
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database, Transaction
from postroom.store.ids import new_id
from postroom.store.mail import StoredMessage, load_message

Ending = Transaction[str | None]

MESSAGE_TYPES = {"forward": "forward", "auto_reply": "reply"}


class OutboundSend:
    """`answer_again` is how long one sender is not answered a second time."""

    def __init__(
        self,
        database: Database,
        client_of: Callable[[UUID], GmailClient],
        hourly_cap: int,
        answer_again: timedelta,
        clock: Clock = wall_clock,
    ) -> None:
        self._database = database
        self._client_of = client_of
        self._hourly_cap = hourly_cap
        self._answer_again = answer_again
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        action = await self._database.run(actions.load_action(uuid_field(run.job, "action_id")))
        _check_payload(run, action)
        beginning = actions.begin_action(run.job, action.id, self._hourly_cap, self._clock())
        if not await may_begin(run, self._database, beginning):
            return
        try:
            await run.complete(await self._ending(run, action))
        except JobError as error:
            if is_the_end(run, error):
                await self._database.run(actions.fail_action(run.job, action.id, str(error), self._clock()))
            raise

    async def _ending(self, run: JobRun, action: actions.Action) -> Ending:
        """The transaction that ends the job: the mail is admitted, or it is said why it is not sent."""
        try:
            check_parameters(action.action_type, action.parameters)
            message = await self._database.run(load_message(action.message_id))
            if action.action_type == "forward":
                return await self._forward(run, action, message)
            return self._reply(run, action, message)
        except GmailError as error:
            raise job_error_of(error, action.action_type, action.account_id) from error
        except (BadInput, NotFound) as error:
            raise Fatal(str(error)) from None

    async def _forward(self, run: JobRun, action: actions.Action, message: StoredMessage) -> Ending:
        if message.account_email.lower() in hops(message.subject.headers):
            reason = "it was forwarded from here before, and would go round in a circle"
            return outbound.refuse_delivery(run.job, action.id, reason, self._clock())
        fetched = await self._client_of(action.account_id).get_message(action.provider_message_id, "raw")
        id, now = new_id(), self._clock()

        def build() -> Built:
            raw = fetched.raw or b""
            letter = read_letter(raw)
            found = message.subject
            original = Original(found.sender, found.subject, letter.headers, letter.text, attached_to(raw))
            return build_forward(id, message.account_email, original, action.parameters, now)

        # Twenty-five megabytes of attachments take their time, in which others shall not wait.
        built = await asyncio.to_thread(build)
        guard = outbound.Guard(message.subject.sender, message.subject.labels)
        return outbound.admit_delivery(run.job, _new(id, action, built), guard, now)

    def _reply(self, run: JobRun, action: actions.Action, message: StoredMessage) -> Ending:
        """To whom the message wants its answers; he must be one who may be answered, as its sender must."""
        found, now, id = message.subject, self._clock(), new_id()
        original = Original(found.sender, found.subject, found.headers)
        for address in dict.fromkeys((found.sender, answer_address(original))):
            if (reason := why_not_answered(address, found.headers, message.own_addresses)) is not None:
                return outbound.refuse_delivery(run.job, action.id, f"it is not answered: {reason}", now)
        built = build_reply(id, message.account_email, original, action.parameters, now)
        guard = outbound.Guard(found.sender, found.labels, once_since=now - self._answer_again)
        new = _new(id, action, built, message.provider_thread_id or None)
        return outbound.admit_delivery(run.job, new, guard, now)


def _new(id: UUID, action: actions.Action, built: Built, thread_id: str | None = None) -> outbound.NewDelivery:
    kind = "forward" if action.action_type == "forward" else "reply"
    return outbound.NewDelivery(
        id, action.account_id, action.id, kind, built.recipients, built.subject, built.mime, thread_id
    )


def _check_payload(run: JobRun, action: actions.Action) -> None:
    if action.account_id != uuid_field(run.job, "account_id"):
        raise Fatal(f"action {action.id} belongs to another account than the job says")
    if action.message_id != uuid_field(run.job, "original_message_id"):
        raise Fatal(f"action {action.id} is about another message than the job says")
    if text_field(run.job, "message_type") != MESSAGE_TYPES.get(action.action_type):
        raise Fatal(f"action {action.id} is {action.action_type}, which is not what the job is to send")
