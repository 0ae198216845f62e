"""Text from outside without the characters that could act on a reader: agents follow instructions, terminals follow
escape sequences.
"""

import re
import unicodedata

# CSI sequences, strings up to their end, and two-character sequences, in their seven- and eight-bit forms.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -~]?"
)
_KEPT = "\n\t"


def harmless(text: str) -> str:
    """The text without escape sequences, control and format characters, and halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(each for each in _ESCAPE.sub("", text) if each in _KEPT or unicodedata.category(each)[0] != "C")
