"""What is attached to a message, taken out of its raw bytes so that it can be sent along.

The bytes come from a stranger: they are taken apart by the same linear passes that read mail, and what is too large is
left behind before it is decoded.
"""

from dataclasses import dataclass, field

from postroom.core.mime import decoded_content
from postroom.core.mime_fields import safe_filename
from postroom.core.mime_headers import head_of, with_line_ends
from postroom.core.mime_parts import Part, find_parts

# What Gmail attaches at most; as text it is a third longer, which still fits into what it takes.
LARGEST_TOGETHER = 25 * 1024 * 1024
UNNAMED = "unnamed"
OPAQUE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that is sent along."""

    filename: str = field(repr=False)
    mime_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Attached:
    """The files of a message, or, when they are too large together, how many there are and none of them."""

    files: tuple[Attachment, ...] = ()
    left_out: int = 0


def attached_to(raw: bytes) -> Attached:
    """Everything but the text that a reader sees. All or none: half of the files would look like all of them."""
    raw = with_line_ends(raw)
    head = head_of(raw)
    root, _ = find_parts(raw, head.block, head.body_at)
    leaves = [part for part in _leaves(root) if _is_file(part)]
    # Decoded, nothing is larger than three quarters of base64, or than itself.
    if (
        sum(len(part.content) * (3 if part.fields.encoding == "base64" else 4) // 4 for part in leaves)
        > LARGEST_TOGETHER
    ):
        return Attached(left_out=len(leaves))
    return Attached(tuple(map(_file, leaves)))


def _leaves(root: Part) -> list[Part]:
    """In the order of the message. Not recursive: parts may lie deep within each other."""
    found: list[Part] = []
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if part.parts:
            waiting += reversed(part.parts)
        else:
            found.append(part)
    return found


def _is_file(part: Part) -> bool:
    fields = part.fields
    if fields.attached or fields.filename:
        return True
    return fields.content_type not in ("text/plain", "text/html") and not part.is_multipart


def _file(part: Part) -> Attachment:
    fields = part.fields
    content = decoded_content(fields, part.content)
    name = safe_filename(fields.filename)
    if fields.content_type == "message/rfc822":
        # A message within a message may not be encoded, and this one has to be: it goes as a file.
        return Attachment(name or "message.eml", OPAQUE, part.content if content is None else content)
    kind = OPAQUE if part.is_multipart or fields.content_type.startswith("message/") else fields.content_type
    return Attachment(name or UNNAMED, kind, part.content if content is None else content)
