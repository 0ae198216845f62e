"""The content of a mail as it goes over the wire: lines end in CRLF, and no line but the last is a single dot."""

import re

_STRAY = re.compile(rb"\r(?!\n)|(?<!\r)\n")
END = b".\r\n"


def with_whole_line_ends(content: bytes) -> bytes:
    """The content with CRLF at every line's end, the last one included.

    A lone LF becomes CRLF. A lone CR becomes a blank: no server agrees with another on whether it ends a line, and that
    is how one mail can be made to look like two.
    """
    breaks = content.count(b"\r\n")
    if not breaks == content.count(b"\n") == content.count(b"\r"):
        content = _STRAY.sub(lambda found: b"\r\n" if found.group() == b"\n" else b" ", content)
    return content if content.endswith(b"\r\n") or not content else content + b"\r\n"


def dot_stuffed(content: bytes) -> bytes:
    """The content, of which every line ends in CRLF, with the dots doubled that begin a line, and the final one."""
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    return b"." + stuffed + END if content.startswith(b".") else stuffed + END


def xtext(value: str) -> str:
    """A value as it may stand in an argument of MAIL or RCPT (RFC 3461, 4)."""
    written = value.encode("utf-8", "replace")
    return "".join(chr(each) if 33 <= each <= 126 and each not in b"+=" else f"+{each:02X}" for each in written)
