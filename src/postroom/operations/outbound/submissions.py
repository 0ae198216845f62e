"""Mail of senders: they submit it, see what became of it, and cancel it before it leaves; also for `/v1/messages`."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic_core import to_json

from postroom.core.access import SENDERS
from postroom.core.errors import AccessRefused, BadInput, SubmissionRefused
from postroom.core.lifecycle import DeliveryState, RecipientState
from postroom.core.outbound.transport import MessageClass
from postroom.core.submission.envelope import MailFrom, Recipient, checked_address, release_time
from postroom.core.submission.message import header_values, with_line_ends
from postroom.core.views import Untrusted
from postroom.operations.caller import Caller
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import ADDS_ONCE, ENDS, READS, Argument, Spread, tool
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
from postroom.store.outbound.outbound import RecipientView
from postroom.store.outbound.outbound_answers import Cancellation
from postroom.store.outbound.senders import sender_of_token
from postroom.store.outbound.submissions import SubmissionKey, SubmissionView, cancel_submission, load_submission

LONGEST_KEY = 200
MOST_LISTED = 1000
LONGEST_ADDRESS = 1000
LONGEST_TEXT = 10_000_000
PROTOCOLS: dict[Door, str] = {"http": "HTTP", "mcp": "MCP"}
RAW = (
    "Instead of the parts: the whole message in base64. It goes to to, cc and bcc if these are given, else to those "
    "whom it names."
)
KEY = "A text of your own for this mail: the same call under the same key is accepted only once."

Addresses = Sequence[Annotated[str, Argument(least=0, most=0)]]
MailId = Annotated[UUID, Argument("The id that outbound.submit returned.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentForm:
    """A file, as it is sent."""

    filename: Annotated[str, Argument("The name of the file.", most=255)]
    mime_type: Annotated[str, Argument("The type of the file, such as application/pdf.", 0, 130)] = (
        "application/octet-stream"
    )
    data: Annotated[str, Argument("The bytes of the file, in base64.", 0, LONGEST_TEXT)] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SubmittedMail:
    """A mail as its sender gives it: in parts, or as a whole message."""

    from_: Annotated[
        str | None, Argument("Your address, with or without a name.", 0, LONGEST_ADDRESS, sent_as="from")
    ] = None
    to: Annotated[Addresses, Argument("Recipients, with or without names.", most=MOST_LISTED)] = ()
    cc: Annotated[Addresses, Argument("Recipients of copies.", most=MOST_LISTED)] = ()
    bcc: Annotated[Addresses, Argument("Recipients of copies whom nobody else sees.", most=MOST_LISTED)] = ()
    reply_to: Annotated[str | None, Argument("Where answers are to go.", 0, LONGEST_ADDRESS)] = None
    subject: Annotated[str, Argument("The subject, as one line of text.", 0, 990)] = ""
    text: Annotated[str | None, Argument("The text of the mail.", 0, LONGEST_TEXT)] = field(default=None, repr=False)
    html: Annotated[str | None, Argument("The same as HTML.", 0, LONGEST_TEXT)] = field(default=None, repr=False)
    attachments: Annotated[Sequence[AttachmentForm], Argument("Files.", most=100)] = ()
    raw: Annotated[str | None, Argument(RAW, 0, 2 * LONGEST_TEXT)] = field(default=None, repr=False)
    send_at: Annotated[
        datetime | None,
        Argument("When to send it, with its offset, at most 30 days ahead; at once without it.", is_ahead=True),
    ] = None
    bulk: Annotated[bool, Argument("Whether it may wait for other mail of yours, such as a newsletter.")] = False
    idempotency_key: Annotated[str | None, Argument(KEY, most=LONGEST_KEY)] = None


@dataclass(frozen=True, slots=True)
class AcceptedMail:
    """`duplicate` means that the same call was accepted before, as `id`."""

    id: UUID
    status: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class RecipientForm:
    """`last_reply` is what the other server has said."""

    address: str
    state: RecipientState
    attempts: int
    next_attempt: datetime | None
    last_reply: Untrusted[str | None]

    @classmethod
    def of(cls, view: RecipientView) -> Self:
        due = view.not_before if view.state in ("queued", "deferred") else None
        return cls(view.address, view.state, view.attempts, due, view.last_reply)


# No docstring: the tool's description says the same to those who read its schema.
@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    id: UUID
    state: DeliveryState
    message_class: MessageClass
    created_at: datetime
    send_at: datetime
    ended_at: datetime | None
    recipients: Sequence[RecipientForm]
    error: Untrusted[str | None]

    @classmethod
    def of(cls, view: SubmissionView) -> Self:
        recipients = [RecipientForm.of(each) for each in view.recipients]
        created, due, ended = view.created_at, view.not_before, view.ended_at
        return cls(view.id, view.state, view.message_class, created, due, ended, recipients, view.error)


@dataclass(frozen=True, slots=True)
class CanceledSubmission:
    """`stopping`: it is being sent, and is canceled as far as it has not left."""

    id: UUID
    result: Cancellation


@OUTBOUND.operation(SENDERS, tool("outbound.submit", "Submit a mail", ADDS_ONCE))
async def submit_mail(
    by: Caller, submissions: Submissions, /, mail: Annotated[SubmittedMail, Spread()]
) -> AcceptedMail:
    """Accepts a mail of the sender that this token is bound to, from one of the sender's own addresses. It leaves in
    its turn, or at send_at. Give from, to, subject and text or html, or the whole message as raw. With an
    idempotency_key, the call may be repeated safely. Each recipient counts toward the sender's daily limit.
    """
    return await submit(by, submissions, mail, "mcp")


async def submit(
    by: Caller, submissions: Submissions, mail: SubmittedMail, door: Literal["http", "mcp"]
) -> AcceptedMail:
    """Accept a mail that came through this door."""
    sender = await by.run(sender_of_token(_sender_id(by)))
    author, content = _message(mail)
    recipients = _recipients(mail, content)
    address = checked_address(bare_address(author, "from"), "from", smtputf8=True)
    needs_utf8 = not all(each.isascii() for each in (address, *(each.address for each in recipients)))
    not_before = None if mail.send_at is None else release_time(mail.send_at, submissions.clock(), "send_at")
    envelope = MailFrom(address, smtputf8=needs_utf8 or not content.isascii(), not_before=not_before)
    given = Submission(
        sender, envelope, recipients, content, door, protocol=PROTOCOLS[door], bulk=mail.bulk, key=_key(mail)
    )
    accepted = await submissions.submit(given)
    return AcceptedMail(accepted.id, "accepted", accepted.repeated)


@OUTBOUND.operation(SENDERS, tool("outbound.status", "See what became of a mail", READS))
async def load_submitted(by: Caller, /, id: MailId) -> SubmissionStatus:
    """Shows a mail that the sender of this token has submitted: its state, and that of each recipient, with the last
    reply of the other server under untrusted.
    """
    return SubmissionStatus.of(await by.run(load_submission(_sender_id(by), id)))


@OUTBOUND.operation(SENDERS, tool("outbound.cancel", "Cancel a mail before it leaves", ENDS))
async def cancel_submitted(by: Caller, /, id: MailId) -> CanceledSubmission:
    """Cancels a mail that the sender of this token has submitted and that has not left yet. What has been sent cannot
    be called back.
    """
    signed = by.because("by its sender").signature
    return CanceledSubmission(id, await by.run(cancel_submission(_sender_id(by), id, signed, by.clock())))


def _sender_id(by: Caller) -> int:
    sender_id = by.program.sender_id
    if sender_id is None:
        problem, remedy = "this token is not bound to a sender", "create one with --role sender --sender USERNAME"
        raise AccessRefused("token", problem, remedy, "role")
    return sender_id


def _message(mail: SubmittedMail) -> tuple[str, bytes]:
    """The author, and the whole message."""
    if mail.raw is not None:
        return _raw_message(mail, mail.raw)
    if mail.from_ is None:
        raise BadInput("from", "is missing", "give your address")
    attachments = [
        Attachment(each.filename, each.mime_type, decoded(each.data, "attachments")) for each in mail.attachments
    ]
    parts = MailParts(mail.from_, mail.to, mail.cc, mail.reply_to, mail.subject, mail.text, mail.html, attachments)
    return mail.from_, build_message(parts)


def _raw_message(mail: SubmittedMail, raw: str) -> tuple[str, bytes]:
    if any((mail.subject, mail.text, mail.html, mail.attachments, mail.reply_to)):
        raise BadInput("raw", "is given together with parts of a mail", "give the whole message, or its parts")
    content = with_line_ends(decoded(raw, "raw"))
    authors = [mail.from_] if mail.from_ is not None else header_values(content, b"from")
    if len(authors) != 1:
        raise SubmissionRefused("raw", "there is not exactly one From", "add From with your address")
    return authors[0], content


def _recipients(mail: SubmittedMail, content: bytes) -> tuple[Recipient, ...]:
    given = {"to": mail.to, "cc": mail.cc, "bcc": mail.bcc}
    found = [each for name, addresses in given.items() for each in recipients_of(addresses, name)]
    if not found and mail.raw is not None:
        found = recipients_in(content)
    if not found:
        raise BadInput("to", "is empty", "name a recipient")
    return tuple(dict.fromkeys(found))


def _key(mail: SubmittedMail) -> SubmissionKey | None:
    """The key with the hash of everything else, which tells a repeated call from another one."""
    if mail.idempotency_key is None:
        return None
    request = to_json(mail, exclude={"idempotency_key"})
    return SubmissionKey(mail.idempotency_key, hashlib.sha256(request).hexdigest())
