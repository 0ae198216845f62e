"""Builds the message of a mail that comes in parts, as over HTTP and MCP, and finds whom a whole message goes to.

Header values are one line each: whatever would begin another header is refused. The message is built in seven bits.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP

from postroom.core.errors import SubmissionRefused
from postroom.core.mail.addresses import listed_addresses
from postroom.core.submission.envelope import Recipient, checked_address
from postroom.core.submission.message import header_values

_POLICY = SMTP.clone(cte_type="7bit")
_ANGLE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"<])*<([^<>]+)>\s*', re.DOTALL)
_MIME_TYPE = re.compile(r"([A-Za-z0-9!#$&^_.+-]{1,64})/([A-Za-z0-9!#$&^_.+-]{1,64})")


@dataclass(frozen=True, slots=True)
class Attachment:
    filename: str
    mime_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class MailParts:
    """A mail in parts. Addresses may have names, as in `Ada <ada@example.com>`."""

    author: str
    to: Sequence[str]
    cc: Sequence[str] = ()
    reply_to: str | None = None
    subject: str = ""
    text: str | None = field(default=None, repr=False)
    html: str | None = field(default=None, repr=False)
    attachments: Sequence[Attachment] = ()


def build_message(parts: MailParts) -> bytes:
    """The whole message. Raises SubmissionRefused if a part cannot stand in one."""
    message = EmailMessage(_POLICY)
    headers = [("From", parts.author), ("To", ", ".join(parts.to)), ("Cc", ", ".join(parts.cc))]
    headers += [("Reply-To", parts.reply_to or ""), ("Subject", parts.subject)]
    try:
        for name, value in headers:
            if value:
                message[name] = _one_line(name, value)
        if parts.text is not None or parts.html is None:
            message.set_content(parts.text or "")
        if parts.html is not None and parts.text is not None:
            message.add_alternative(parts.html, subtype="html")
        elif parts.html is not None:
            message.set_content(parts.html, subtype="html")
        for each in parts.attachments:
            _attach(message, each)
        return message.as_bytes(policy=_POLICY)
    except (ValueError, LookupError, IndexError) as error:
        problem = f"the mail cannot be built ({type(error).__name__})"
        raise SubmissionRefused("message", problem, "check the addresses and the text") from None


def decoded(text: str, field: str) -> bytes:
    """The bytes of base64 text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SubmissionRefused(field, "is not base64", "encode the bytes as base64", 501, "5.5.2") from None


def recipients_of(addresses: Sequence[str], field: str) -> list[Recipient]:
    """The recipients that the addresses, with or without names, stand for."""
    return [Recipient(checked_address(bare_address(each, field), field, smtputf8=True)) for each in addresses]


def recipients_in(content: bytes) -> list[Recipient]:
    """Those whom a whole message names in To, Cc and Bcc."""
    values = [value for name in (b"to", b"cc", b"bcc") for value in header_values(content, name)]
    listed = [each for value in values for each in listed_addresses(value)]
    return recipients_of([each.text for each in listed], "raw")


def bare_address(text: str, field: str) -> str:
    """The address of `Ada <ada@example.com>`, as it is written."""
    if _one_line(field, text).endswith(">") and (found := _ANGLE.fullmatch(text)):
        return found[1].strip()
    return text.strip()


def _attach(message: EmailMessage, each: Attachment) -> None:
    found = _MIME_TYPE.fullmatch(each.mime_type)
    if found is None or found[1].lower() in ("multipart", "message"):
        remedy = "give one such as application/pdf"
        raise SubmissionRefused("attachments", "a mime_type is malformed, or not of a file", remedy)
    filename = _one_line("attachments", each.filename)
    message.add_attachment(each.data, maintype=found[1], subtype=found[2], filename=filename)


def _one_line(field: str, value: str) -> str:
    if not all(each.isprintable() for each in value):
        raise SubmissionRefused(field, "contains a line break or control character", "write it as one line of text")
    return value
