"""Builds sample mail as raw bytes, as a mail program would send it.

The headers are written by hand around a body from `email`, because the library would turn every encoded word into
UTF-8, unlike real mail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email import policy
from email.header import Header
from email.message import EmailMessage
from email.utils import format_datetime


@dataclass(frozen=True)
class Person:
    """A person or a service that sends mail."""

    name: str
    address: str

    @property
    def first_name(self) -> str:
        return self.name.split()[0]

    @property
    def domain(self) -> str:
        return self.address.partition("@")[2]

    def as_header(self, charset: str = "utf-8") -> str:
        return f"{header_text(self.name, charset)} <{self.address}>"


@dataclass(frozen=True)
class Attachment:
    filename: str
    mime_type: str
    content: bytes


@dataclass(frozen=True)
class SampleMail:
    """A raw mail with its labels and the time it was received."""

    raw: bytes
    labels: frozenset[str]
    received_at: datetime


def write(
    sender: Person,
    to: Person,
    subject: str,
    text: str,
    at: datetime,
    message_id: str,
    headers: Mapping[str, str] | None = None,
    html: str = "",
    charset: str = "utf-8",
    attachments: Sequence[Attachment] = (),
    invitation: str = "",
) -> bytes:
    """Build the raw mail."""
    lines = {
        "From": sender.as_header(charset),
        "To": to.as_header(),
        "Subject": header_text(subject, charset),
        "Date": format_datetime(at),
        "Message-ID": message_id,
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return head.encode("ascii") + _body(text, html, charset, attachments, invitation, _boundary(message_id))


def _body(
    text: str, html: str, charset: str, attachments: Sequence[Attachment], invitation: str, boundary: str
) -> bytes:
    """The body with its MIME headers."""
    body = EmailMessage(policy=policy.SMTP)
    body.set_content(text, charset=charset)
    if html:
        body.add_alternative(html, subtype="html", charset=charset)
    if invitation:
        body.add_alternative(invitation, subtype="calendar", params={"method": "REQUEST"})
    for attachment in attachments:
        maintype, _, subtype = attachment.mime_type.partition("/")
        body.add_attachment(attachment.content, maintype, subtype, filename=attachment.filename)
    for number, part in enumerate(body.walk()):
        if part.is_multipart():
            part.set_boundary(f"{boundary}.{number}")
    return body.as_bytes()


def _boundary(message_id: str) -> str:
    return "=_" + message_id.strip("<>").partition("@")[0]


def header_text(text: str, charset: str = "utf-8") -> str:
    """The text of a header, as encoded words unless it is plain ASCII."""
    return text if text.isascii() else Header(text, charset, maxlinelen=64).encode(linesep="\r\n")
