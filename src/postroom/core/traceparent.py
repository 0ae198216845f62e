"""The `traceparent` of W3C Trace Context: the trace and the parent span that a piece of work belongs to.

It comes from outside. A trace is only an aid, never a reason to refuse anything: a malformed one counts as absent.
"""

import re
from typing import NamedTuple

# No id is all zeros. Version ff is forbidden; versions after 00 may append fields.
_IDS = "-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_FORM = re.compile(f"00{_IDS}|(?!00|ff)[0-9a-f]{{2}}{_IDS}(?:-[ -~]{{0,400}})?")


class Traceparent(NamedTuple):
    """A position in a trace; the standard writes its numbers in hexadecimal."""

    trace_id: int
    span_id: int
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def is_traceparent(text: str) -> bool:
    """Whether the text is a valid `traceparent`."""
    return _FORM.fullmatch(text) is not None


def parse_traceparent(text: str | None) -> Traceparent | None:
    """The parsed text, or None when it is malformed."""
    if text is None or not is_traceparent(text):
        return None
    return Traceparent(int(text[3:35], 16), int(text[36:52], 16), int(text[53:55], 16))
