"""Builds the report that a sender gets about mail that failed, is delayed, or was delivered (RFC 3464). Pure.

Replies and addresses in it were written by strangers: they are on one line each, in seven bits, and only where a value
is expected. Of the original the head is returned, or all of it if its sender asked for that. The report has an empty
envelope sender, so that no report answers it.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from email.utils import format_datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.outbound.destinations import smtp_address
from postroom.core.outbound.replies import Reply
from postroom.core.outbound.transport import Notify
from postroom.words.outbound import REPORT_SENTENCES, REPORT_SUBJECTS

LARGEST_HEAD = 32_768
LARGEST_WHOLE = 1_048_576
LONGEST_LINE = 900

Action = Literal["failed", "delayed", "relayed"]

_NOTIFIED: dict[Action, Notify] = {"failed": "failure", "delayed": "delay", "relayed": "success"}


class ReportedRecipient(NamedTuple):
    address: str
    action: Action
    reply: Reply
    tried_until: datetime | None = None
    """For a delayed mail: when it is given up."""
    original: str | None = None
    """The address as the sender gave it (ORCPT)."""


class ReportedMail(NamedTuple):
    """The mail that is reported about. `content` need not be more than its head."""

    id: UUID
    envelope_sender: str
    content: bytes
    accepted_at: datetime
    envelope_id: str | None = None
    return_full: bool = False


def wants_report(notify: Sequence[Notify], action: Action) -> bool:
    """Whether a report was asked for. Without a word, failures and delays are reported, and successes are not."""
    return _NOTIFIED[action] in notify if notify else action != "relayed"


def delivery_report(
    id: UUID, hostname: str, mail: ReportedMail, recipients: Sequence[ReportedRecipient], now: datetime
) -> bytes:
    """The report as a whole message, for the envelope sender of the mail. Raises BadInput if that cannot get one."""
    to = smtp_address(mail.envelope_sender)
    if to is None or not recipients:
        raise BadInput("report", "there is nobody to report to, or about", "ask only for mail that has both")
    worst: Action = next(each for each in _NOTIFIED if any(recipient.action == each for recipient in recipients))
    boundary = f"report-{id.hex}"
    # A whole mail is returned only if it fits into seven bits without change; otherwise its head is.
    whole = mail.return_full and worst == "failed" and _is_plain(mail.content, boundary)
    original = mail.content.decode("ascii") if whole else _head(mail.content)
    head = [
        f"From: Mail Delivery System <mailer-daemon@{hostname}>",
        f"To: {to}" if to.is_ascii else "To: undisclosed-recipients:;",
        f"Subject: {REPORT_SUBJECTS[worst]}",
        f"Date: {format_datetime(now)}",
        f"Message-ID: <{id.hex}@{hostname}>",
        "Auto-Submitted: auto-replied",
        "MIME-Version: 1.0",
        f'Content-Type: multipart/report; report-type=delivery-status;\r\n boundary="{boundary}"',
    ]
    parts = [
        ("text/plain; charset=us-ascii", _explanation(hostname, recipients)),
        ("message/delivery-status", _status(hostname, mail, recipients)),
        ("message/rfc822" if whole else "text/rfc822-headers", original),
    ]
    lines = ["\r\n".join(head), ""]
    for kind, content in parts:
        lines += [f"--{boundary}", f"Content-Type: {kind}", "", content]
    return "\r\n".join([*lines, f"--{boundary}--", ""]).encode("ascii")


def _explanation(hostname: str, recipients: Sequence[ReportedRecipient]) -> str:
    lines = [f"This is the mail system at {hostname}.", ""]
    for action, sentence in REPORT_SENTENCES.items():
        those = [each for each in recipients if each.action == action]
        if those:
            lines += [sentence, ""]
        for each in those:
            lines += [f"  {_ascii(each.address)}", f"    {_ascii(str(each.reply))}"]
            if each.tried_until is not None:
                lines.append(f"    It is tried until {format_datetime(each.tried_until)}.")
            lines.append("")
    return "\r\n".join(lines)


def _status(hostname: str, mail: ReportedMail, recipients: Sequence[ReportedRecipient]) -> str:
    lines = [
        f"Reporting-MTA: dns; {hostname}",
        f"X-Postroom-Delivery: {mail.id}",
        f"Arrival-Date: {format_datetime(mail.accepted_at)}",
    ]
    if mail.envelope_id is not None:
        lines.insert(1, f"Original-Envelope-Id: {_ascii(mail.envelope_id)}")
    for each in recipients:
        reply = each.reply
        lines.append("")
        if each.original is not None:
            lines.append(f"Original-Recipient: {_original(each.original)}")
        lines += [
            f"Final-Recipient: {_typed_address(each.address)}",
            f"Action: {each.action}",
            f"Status: {_status_of(each)}",
        ]
        if reply.host is not None:
            lines.append(f"Remote-MTA: dns; {_ascii(reply.host.partition('[')[0] or reply.host)}")
        if reply.code is not None:
            said = " ".join(filter(None, (str(reply.code), reply.enhanced, reply.text)))
            lines.append(f"Diagnostic-Code: smtp; {_ascii(said)}")
        elif reply.text:
            lines.append(f"Diagnostic-Code: x-postroom; {_ascii(reply.text)}")
        if each.tried_until is not None:
            lines.append(f"Will-Retry-Until: {format_datetime(each.tried_until)}")
    return "\r\n".join([*lines, ""])


def _status_of(recipient: ReportedRecipient) -> str:
    """A status whose first digit is that of the action: a mail may fail in the end after nothing but 4xx."""
    severity = {"failed": "5", "delayed": "4", "relayed": "2"}[recipient.action]
    detail = (recipient.reply.enhanced or "x.0.0").partition(".")[2]
    return f"{severity}.{detail}"


def _typed_address(address: str) -> str:
    """The address with its type; what is not ASCII in the form of RFC 6533."""
    if address.isascii():
        return f"rfc822; {_ascii(address)}"
    written = "".join(each if " " < each <= "~" and each not in "\\+=" else f"\\x{{{ord(each):X}}}" for each in address)
    return f"utf-8; {written}"


def _original(given: str) -> str:
    """The value of ORCPT, whose type stands before a semicolon."""
    kind, separator, address = given.partition(";")
    return _ascii(f"{kind}; {address}" if separator else f"rfc822; {given}")


def _ascii(text: str) -> str:
    """One printable line of ASCII."""
    return "".join(each if " " <= each <= "~" else "?" for each in text)[:LONGEST_LINE]


def _is_plain(content: bytes, boundary: str) -> bool:
    lines = content.split(b"\r\n")
    return (
        len(content) <= LARGEST_WHOLE
        and content.isascii()
        and b"\0" not in content
        and boundary.encode() not in content
        and not any(len(line) > LONGEST_LINE or b"\r" in line or b"\n" in line for line in lines)
    )


def _head(content: bytes) -> str:
    """The head of the original in seven bits, cut after a whole line, without what could end the part."""
    head = content[:LARGEST_HEAD].partition(b"\r\n\r\n")[0]
    if len(head) == LARGEST_HEAD:
        head = head.rpartition(b"\r\n")[0]
    lines = re.split(r"\r\n|\r|\n", head.decode("ascii", "replace").replace("\ufffd", "?"))
    return "\r\n".join([*(_ascii(line.replace("\t", " ")) for line in lines if line and not line.startswith("--")), ""])
