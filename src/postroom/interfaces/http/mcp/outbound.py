"""The tools of senders: submit mail, see what became of it, and cancel it before it leaves. HTTP uses them too."""

import hashlib
from typing import cast
from uuid import UUID

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from postroom.core.errors import AccessRefused, BadInput, Refused, SubmissionRefused
from postroom.core.lifecycle import DeliveryState, RecipientState
from postroom.core.outbound.transport import MessageClass
from postroom.core.roles import Role
from postroom.core.submission.envelope import MailFrom, Recipient, checked_address, release_time
from postroom.core.submission.message import header_values, with_line_ends
from postroom.interfaces.http.mcp.tool import ADDS_ONCE, ENDS, READS, Arguments, Call, Text, tool
from postroom.outbound.submission.mail_parts import (
    Attachment,
    MailParts,
    bare_address,
    build_message,
    decoded,
    recipients_in,
    recipients_of,
)
from postroom.outbound.submission.submissions import Door, Submission, Submissions
from postroom.store.engine.codecs import time_text
from postroom.store.outbound.outbound_answers import Cancellation
from postroom.store.outbound.senders import sender_of_token
from postroom.store.outbound.submissions import SubmissionKey, SubmissionView, cancel_submission, load_submission

LONGEST_KEY = 200
MOST_LISTED = 1000
LONGEST_ADDRESS = 1000
LONGEST_TEXT = 10_000_000
PROTOCOLS: dict[Door, str] = {"http": "HTTP", "mcp": "MCP"}

Address = Text


class AttachmentForm(Arguments):
    filename: Text = Field(min_length=1, max_length=255, description="The name of the file.")
    mime_type: Text = Field(
        "application/octet-stream", max_length=130, description="The type of the file, such as application/pdf."
    )
    data: Text = Field(max_length=LONGEST_TEXT, description="The bytes of the file, in base64.")


class SubmitArguments(Arguments):
    from_: Address | None = Field(
        None, alias="from", max_length=LONGEST_ADDRESS, description="Your address, with or without a name."
    )
    to: list[Address] = Field([], max_length=MOST_LISTED, description="Recipients, with or without names.")
    cc: list[Address] = Field([], max_length=MOST_LISTED, description="Recipients of copies.")
    bcc: list[Address] = Field([], max_length=MOST_LISTED, description="Recipients of copies whom nobody else sees.")
    reply_to: Address | None = Field(None, max_length=LONGEST_ADDRESS, description="Where answers are to go.")
    subject: Text = Field("", max_length=990, description="The subject, as one line of text.")
    text: Text | None = Field(None, max_length=LONGEST_TEXT, description="The text of the mail.")
    html: Text | None = Field(None, max_length=LONGEST_TEXT, description="The same as HTML.")
    attachments: list[AttachmentForm] = Field([], max_length=100, description="Files.")
    raw: Text | None = Field(
        None,
        max_length=2 * LONGEST_TEXT,
        description="Instead of the parts: the whole message in base64. It goes to to, cc and bcc if these are given, "
        "else to those whom it names.",
    )
    send_at: AwareDatetime | None = Field(
        None, description="When to send it, with its offset, at most 30 days ahead; at once without it."
    )
    bulk: bool = Field(False, description="Whether it may wait for other mail of yours, such as a newsletter.")
    idempotency_key: Text | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_KEY,
        description="A text of your own for this mail: the same call under the same key is accepted only once.",
    )


class SubmitAnswer(TypedDict):
    """`duplicate` means that the same call was accepted before, as `id`."""

    id: str
    status: str
    duplicate: bool


@tool("outbound.submit", "Submit a mail", ADDS_ONCE, roles={Role.SENDER})
async def outbound_submit(call: Call, arguments: SubmitArguments) -> SubmitAnswer:
    """Accepts a mail of the sender that this token is bound to, from one of the sender's own addresses. It leaves in
    its turn, or at send_at. Give from, to, subject and text or html, or the whole message as raw. With an
    idempotency_key, the call may be repeated safely. Each recipient counts toward the sender's daily limit.
    """
    return await submit(call, arguments, "mcp")


async def submit(call: Call, arguments: SubmitArguments, door: Door) -> SubmitAnswer:
    submissions, sender_id = _submissions(call), _sender_id(call)
    sender = await call.services.database.run(sender_of_token(sender_id))
    author, content = _message(arguments)
    recipients = _recipients(arguments, content)
    address = checked_address(bare_address(author, "from"), "from", smtputf8=True)
    needs_utf8 = not all(each.isascii() for each in (address, *(each.address for each in recipients)))
    send_at = arguments.send_at
    not_before = None if send_at is None else release_time(send_at, submissions.clock(), "send_at")
    mail = MailFrom(address, smtputf8=needs_utf8 or not content.isascii(), not_before=not_before)
    given = Submission(
        sender, mail, recipients, content, door, protocol=PROTOCOLS[door], bulk=arguments.bulk, key=_key(arguments)
    )
    accepted = await submissions.submit(given)
    return {"id": str(accepted.id), "status": "accepted", "duplicate": accepted.repeated}


def _message(arguments: SubmitArguments) -> tuple[str, bytes]:
    """The author, and the whole message."""
    if arguments.raw is not None:
        return _raw_message(arguments)
    if arguments.from_ is None:
        raise BadInput("from", "is missing", "give your address")
    attachments = [
        Attachment(each.filename, each.mime_type, decoded(each.data, "attachments")) for each in arguments.attachments
    ]
    parts = MailParts(
        arguments.from_,
        arguments.to,
        arguments.cc,
        arguments.reply_to,
        arguments.subject,
        arguments.text,
        arguments.html,
        attachments,
    )
    return arguments.from_, build_message(parts)


def _raw_message(arguments: SubmitArguments) -> tuple[str, bytes]:
    parts = (arguments.subject, arguments.text, arguments.html, arguments.attachments, arguments.reply_to)
    if any(parts):
        raise BadInput("raw", "is given together with parts of a mail", "give the whole message, or its parts")
    content = with_line_ends(decoded(cast("str", arguments.raw), "raw"))
    authors = [arguments.from_] if arguments.from_ is not None else header_values(content, b"from")
    if len(authors) != 1:
        raise SubmissionRefused("raw", "there is not exactly one From", "add From with your address")
    return authors[0], content


def _recipients(arguments: SubmitArguments, content: bytes) -> tuple[Recipient, ...]:
    given = {"to": arguments.to, "cc": arguments.cc, "bcc": arguments.bcc}
    found = [each for name, addresses in given.items() for each in recipients_of(addresses, name)]
    if not found and arguments.raw is not None:
        found = recipients_in(content)
    if not found:
        raise BadInput("to", "is empty", "name a recipient")
    return tuple(dict.fromkeys(found))


def _key(arguments: SubmitArguments) -> SubmissionKey | None:
    """The key with the hash of everything else, which tells a repeated call from another one."""
    if arguments.idempotency_key is None:
        return None
    request = arguments.model_dump_json(exclude={"idempotency_key"})
    return SubmissionKey(arguments.idempotency_key, hashlib.sha256(request.encode()).hexdigest())


class MailArguments(Arguments):
    id: UUID = Field(description="The id that outbound.submit returned.")


class UntrustedReply(TypedDict):
    last_reply: str | None


class RecipientForm(TypedDict):
    """`last_reply` is what the other server has said."""

    address: str
    state: RecipientState
    attempts: int
    next_attempt: str | None
    untrusted: UntrustedReply


class UntrustedMail(TypedDict):
    error: str | None


class StatusAnswer(TypedDict):
    id: str
    state: DeliveryState
    message_class: MessageClass
    created_at: str
    send_at: str
    ended_at: str | None
    recipients: list[RecipientForm]
    untrusted: UntrustedMail


@tool("outbound.status", "See what became of a mail", READS, roles={Role.SENDER})
async def outbound_status(call: Call, arguments: MailArguments) -> StatusAnswer:
    """Shows a mail that the sender of this token has submitted: its state, and that of each recipient, with the last
    reply of the other server under untrusted.
    """
    found = await call.services.database.run(load_submission(_sender_id(call), arguments.id))
    return _status(found)


def _status(found: SubmissionView) -> StatusAnswer:
    waiting = ("queued", "deferred")
    return {
        "id": str(found.id),
        "state": found.state,
        "message_class": found.message_class,
        "created_at": time_text(found.created_at),
        "send_at": time_text(found.not_before),
        "ended_at": None if found.ended_at is None else time_text(found.ended_at),
        "recipients": [
            {
                "address": each.address,
                "state": each.state,
                "attempts": each.attempts,
                "next_attempt": time_text(each.not_before) if each.state in waiting else None,
                "untrusted": {"last_reply": each.last_reply},
            }
            for each in found.recipients
        ],
        "untrusted": {"error": found.error},
    }


class CancelAnswer(TypedDict):
    """`stopping`: it is being sent, and is canceled as far as it has not left."""

    id: str
    result: Cancellation


@tool("outbound.cancel", "Cancel a mail before it leaves", ENDS, roles={Role.SENDER})
async def outbound_cancel(call: Call, arguments: MailArguments) -> CancelAnswer:
    """Cancels a mail that the sender of this token has submitted and that has not left yet. What has been sent cannot
    be called back.
    """
    now, sender_id = call.services.clock(), _sender_id(call)
    canceling = cancel_submission(sender_id, arguments.id, call.signed("by its sender"), now)
    return {"id": str(arguments.id), "result": await call.services.database.run(canceling)}


def _submissions(call: Call) -> Submissions:
    if call.services.submissions is None:
        raise Refused("this server accepts no mail of senders")
    return call.services.submissions


def _sender_id(call: Call) -> int:
    if call.principal.sender_id is None:
        problem, remedy = "this token is not bound to a sender", "create one with --role sender --sender USERNAME"
        raise AccessRefused("token", problem, remedy, "role")
    return call.principal.sender_id


TOOLS = (outbound_submit, outbound_status, outbound_cancel)
