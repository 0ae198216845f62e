"""Takes the attachments out of a raw message so that they can be forwarded.

The bytes come from a stranger: they are parsed by the same linear passes that read mail, and whatever is too large is
left out before it is decoded.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from postroom.core.mail.fields import safe_filename
from postroom.core.mail.headers import head_of, with_line_ends
from postroom.core.mail.html_message import html_parts, text_of_part
from postroom.core.mail.mime import decoded_content
from postroom.core.mail.parts import Part, find_parts

# Gmail's limit for attachments; base64 makes them a third longer, which still fits into its limit for a message.
LARGEST_TOGETHER = 25 * 1024 * 1024
UNNAMED = "unnamed"
OPAQUE = "application/octet-stream"
# Larger HTML is left out; the plain text is always there.
LARGEST_HTML = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file to attach."""

    filename: str = field(repr=False)
    mime_type: str
    content: bytes = field(repr=False)
    content_id: str = ""
    """The id by which the HTML of the same message refers to it."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The files of a message; if together they are too large, none of them, and how many were left out."""

    files: tuple[Attachment, ...] = ()
    left_out: int = 0


def attached_to(raw: bytes) -> Attached:
    """All parts but the text that a reader sees. All or none: some of the files would look like all of them."""
    raw = with_line_ends(raw)
    head = head_of(raw)
    root, _ = find_parts(raw, head.block, head.body_at)
    leaves = [part for part in root.leaves() if part.is_file]
    # Decoded, nothing is larger than three quarters of base64, or than itself.
    if (
        sum(len(part.content) * (3 if part.fields.encoding == "base64" else 4) // 4 for part in leaves)
        > LARGEST_TOGETHER
    ):
        return Attached(left_out=len(leaves))
    return Attached(tuple(map(_file, leaves)))


def html_of(raw: bytes) -> str | None:
    """The HTML that a reader sees, unchanged; None when there is none, or it is too large."""
    raw = with_line_ends(raw)
    head = head_of(raw)
    root, _ = find_parts(raw, head.block, head.body_at)
    shown = html_parts(root)
    if not shown or sum(len(part.content) for part in shown) > LARGEST_HTML:
        return None
    return "\n".join(map(text_of_part, shown))


def _file(part: Part) -> Attachment:
    fields = part.fields
    content = decoded_content(fields, part.content)
    name = safe_filename(fields.filename)
    if fields.content_type == "message/rfc822":
        # A message/rfc822 part must not be base64, and ours must be seven bits: it is attached as a file.
        return Attachment(name or "message.eml", OPAQUE, part.content if content is None else content)
    kind = OPAQUE if part.is_multipart or fields.content_type.startswith("message/") else fields.content_type
    return Attachment(name or UNNAMED, kind, part.content if content is None else content, fields.content_id)


def given_attachments(parameters: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """The files that the action itself attaches."""
    return tuple(
        Attachment(safe_filename(each["filename"]) or UNNAMED, each.get("mime_type") or OPAQUE, b64decode(each["data"]))
        for each in parameters.get("attachments") or ()
    )
