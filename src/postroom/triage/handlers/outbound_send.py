"""The `outbound.send` job: builds the mail of a forward or an automatic reply, and admits it to outgoing mail.

The job ends there; delivery completes the action. Mail that safety or RFC 3834 forbids by now is not sent: the action
is canceled with the reason, which is no failure.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast
from uuid import UUID

from postroom.core.actions.action import check_parameters
from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import sending_step
from postroom.core.errors import BadInput, Fatal, JobError, MailboxError, NotFound
from postroom.core.mail.auto_reply import why_not_answered
from postroom.core.mail.mailbox import MailboxOf, job_error_of
from postroom.core.mail.mime import parse_message
from postroom.core.mail.restores import source_key
from postroom.core.outbound.rollout import Rollout
from postroom.core.outbound.send_payload import MESSAGE_TYPES, decided_fields
from postroom.core.submission.envelope import Recipient
from postroom.jobs.run import JobRun
from postroom.outbound.queue.attachments import attached_to, html_of
from postroom.outbound.queue.mime import Author, Built, Original, answer_address, build_forward, build_reply, hops
from postroom.store.actions import actions
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation.timeline import load_timeline
from postroom.store.mail.mail import StoredMessage, load_message
from postroom.store.outbound import outbound
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.action_gmail import is_the_end, may_begin
from postroom.triage.handlers.payload import text_field, uuid_field

Ending = Transaction[str | None]


@dataclass(eq=False, slots=True)
class OutboundSend:
    """`answer_again` is how long one sender is not answered a second time."""

    database: Database
    mailbox_of: MailboxOf
    hourly_cap: int
    answer_again: timedelta
    rollout: Rollout = outbound.EVERYWHERE
    clock: Clock = wall_clock

    async def __call__(self, run: JobRun) -> None:
        action = _sending_part(await self.database.run(actions.load_action(uuid_field(run.job, "action_id"))))
        _check_payload(run, action)
        beginning = actions.begin_action(run.job, action.id, self.hourly_cap, self.clock())
        if not await may_begin(run, self.database, beginning):
            return
        try:
            await run.complete(await self._ending(run, action))
        except JobError as error:
            if is_the_end(run, error):
                await self.database.run(actions.fail_action(run.job, action.id, str(error), self.clock()))
            raise

    async def _ending(self, run: JobRun, action: actions.Action) -> Ending:
        """The transaction that ends the job: it admits the mail, or records why it is not sent."""
        try:
            check_parameters(action.action_type, action.parameters)
            message = await self.database.run(load_message(action.message_id))
            if action.action_type == "forward":
                return await self._forward(run, action, message)
            return await self._reply(run, action, message)
        except MailboxError as error:
            raise job_error_of(error, action.action_type, action.account_id) from error
        except (BadInput, NotFound) as error:
            raise Fatal(str(error)) from None

    async def _forward(self, run: JobRun, action: actions.Action, message: StoredMessage) -> Ending:
        if message.account_email.lower() in hops(message.facts.headers):
            reason = "it was forwarded from here before; forwarding it again would make a loop"
            return outbound.refuse_mail(run.job, action.id, reason, self.clock())
        raw = await (await self.mailbox_of(action.account_id)).raw(action.provider_message_id)
        author = await self._author(message)
        id, now = new_id(), self.clock()
        source = await self._source(action, message, recipients_of(action.parameters))

        def build() -> Built:
            letter = parse_message(raw)
            found = message.facts
            files, html = attached_to(raw), html_of(raw)
            original = Original(found.sender, found.subject, letter.headers, letter.text, files, html)
            return build_forward(id, author, original, action.parameters, now, source)

        # Twenty-five megabytes of attachments take time: the event loop must not wait for them.
        built = await asyncio.to_thread(build)
        guard = outbound.SendGuard(message.facts.sender, message.facts.labels)
        return outbound.admit_mail(run.job, _new(id, action, message, built, source), guard, now, self.rollout)

    async def _reply(self, run: JobRun, action: actions.Action, message: StoredMessage) -> Ending:
        """Replies go to the address in `Reply-To`, and only if both it and the sender may be answered (RFC 3834)."""
        found, now, id = message.facts, self.clock(), new_id()
        original = Original(found.sender, found.subject, found.headers)
        for address in dict.fromkeys((found.sender, answer_address(original))):
            if (reason := why_not_answered(address, found.headers, message.own_addresses)) is not None:
                return outbound.refuse_mail(run.job, action.id, f"it is not answered: {reason}", now)
        source = await self._source(action, message, (answer_address(original),))
        built = build_reply(id, await self._author(message), original, action.parameters, now, source)
        guard = outbound.SendGuard(found.sender, found.labels, once_since=now - self.answer_again)
        new = _new(id, action, message, built, source, message.provider_thread_id or None)
        return outbound.admit_mail(run.job, new, guard, now, self.rollout)

    async def _author(self, message: StoredMessage) -> Author:
        """The account's address, under the name that the user has given themselves in the mailbox."""
        mailbox = await self.mailbox_of(message.account_id)
        return Author(message.account_email, await mailbox.display_name(message.account_email))

    async def _source(self, action: actions.Action, message: StoredMessage, recipients: Iterable[str]) -> str:
        """The source key of the mail; empty in a database that has no identity yet."""
        timeline = await self.database.run(load_timeline())
        if timeline is None:
            return ""
        kind = MESSAGE_TYPES[action.action_type]
        return source_key(
            timeline.instance_id, message.account_email.lower(), action.provider_message_id, kind, recipients
        )


def _new(
    id: UUID, action: actions.Action, message: StoredMessage, built: Built, source: str, thread_id: str | None = None
) -> outbound.NewMail:
    return outbound.NewMail(
        id,
        action.account_id,
        action.id,
        outbound.MailSender.of_mailbox(message.account_email),
        "forward" if action.action_type == "forward" else "reply",
        tuple(Recipient(each) for each in built.recipients),
        built.subject,
        built.mime.encode("ascii"),
        thread_id,
        source or None,
    )


def _sending_part(action: actions.Action) -> actions.Action:
    """The action as if it only sent mail, which is the last of several things that it does."""
    step = sending_step(action.action_type, action.parameters)
    return action if step is None else replace(action, action_type=step.action_type, parameters=step.parameters)


def _check_payload(run: JobRun, action: actions.Action) -> None:
    if action.account_id != uuid_field(run.job, "account_id"):
        raise Fatal(f"action {action.id} belongs to another account than the job says")
    if action.message_id != uuid_field(run.job, "original_message_id"):
        raise Fatal(f"action {action.id} is about another message than the job says")
    if text_field(run.job, "message_type") != MESSAGE_TYPES.get(action.action_type):
        raise Fatal(f"action {action.id} is {action.action_type}, but the job is to send something else")
    _check_mail(run, action)


def _check_mail(run: JobRun, action: actions.Action) -> None:
    """The payload must agree with the action, which is what was decided on and approved."""
    for name, meant in decided_fields(action.action_type, action.parameters).items():
        given = run.job.payload.get(name)
        if given and (_as_list(given) if isinstance(meant, list) else given) != meant:
            raise Fatal(f"the payload of outbound.send has another {name} than action {action.id}; it is not sent")


def _as_list(given: object) -> list[object]:
    return list(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else [given]
