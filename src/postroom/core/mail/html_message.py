"""The HTML of a raw message with the images that it encloses, ready to be shown, within limits."""

import html
from base64 import b64encode
from typing import NamedTuple

from postroom.core.mail.charsets import decode_text
from postroom.core.mail.clean_html import LONGEST_HTML, clean_html
from postroom.core.mail.headers import head_of, with_line_ends
from postroom.core.mail.mime import LARGEST_MESSAGE, decoded_content
from postroom.core.mail.parts import Part, find_parts

LARGEST_IMAGE = 1_048_576
LARGEST_IMAGES = 4 * LARGEST_IMAGE
_ROOM = 12 * LONGEST_HTML
"""More bytes than the characters of the longest HTML take up, encoded."""
_IMAGES = frozenset(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp"))


class HtmlMessage(NamedTuple):
    """The cleaned HTML of a message, and the omissions."""

    body: str
    remote_images: int
    is_cut: bool


def html_message(raw: bytes) -> HtmlMessage | None:
    """The HTML of the message; None if it has none. Plain text beside it, such as a list's footer, stays as it is."""
    raw = with_line_ends(raw[:LARGEST_MESSAGE])
    head = head_of(raw)
    root, _ = find_parts(raw, head.block, head.body_at)
    shown = _shown_parts(root)
    if not any(map(_is_html, shown)):
        return None
    images, room = _images_of(root), LONGEST_HTML
    pieces: list[str] = []
    remote, is_cut = 0, False
    for part in shown:
        text = text_of_part(part)
        if _is_html(part):
            clean = clean_html(text[:room], images)
            pieces.append(clean.body)
            remote += clean.remote_images
        else:
            pieces.append(f"<pre>{html.escape(text[:room])}</pre>")
        is_cut = is_cut or len(text) > room
        room -= min(len(text), room)
    return HtmlMessage("\n".join(pieces), remote, is_cut)


def html_parts(root: Part) -> list[Part]:
    """The HTML that a reader sees, as parts."""
    return [part for part in root.leaves() if _is_html(part)]


def text_of_part(part: Part) -> str:
    """The text of one part, without its encoding."""
    content = decoded_content(part.fields, part.content[:_ROOM])
    text, _ = decode_text(part.content[:_ROOM] if content is None else content, part.fields.charset)
    return text


def _is_html(part: Part) -> bool:
    return part.fields.content_type == "text/html" and not part.is_file


def _shown_parts(root: Part) -> list[Part]:
    """The texts to show: of alternatives the last with HTML in it, otherwise all of them in their order."""
    found: list[Part] = []
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if part.fields.content_type == "multipart/alternative" and part.parts:
            chosen = next((each for each in reversed(part.parts) if html_parts(each)), part.parts[0])
            waiting.append(chosen)
        elif part.parts:
            waiting += reversed(part.parts)
        elif not part.is_file and part.content.strip():
            found.append(part)
    return found


def _images_of(root: Part) -> dict[str, str]:
    """The images that HTML can refer to, as `data:` addresses by their ids."""
    found: dict[str, str] = {}
    room = LARGEST_IMAGES
    for part in root.leaves():
        fields = part.fields
        if not fields.content_id or fields.content_type not in _IMAGES or len(part.content) > 2 * LARGEST_IMAGE:
            continue
        content = decoded_content(fields, part.content)
        if content is None or len(content) > min(room, LARGEST_IMAGE):
            continue
        room -= len(content)
        found.setdefault(fields.content_id, f"data:{fields.content_type};base64,{b64encode(content).decode()}")
    return found
