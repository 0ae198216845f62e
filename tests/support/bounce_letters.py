"""Bounces that are letters, in the forms of common mail systems, and what each says: `bounce_letters.txt`.

All were written for these tests. The reader was made with the `known` ones. The `other` ones were written when it was
done, to see how it does on forms that it was not made for: it read 7 of 11, and now reads all. `none` are no bounces.
"""

import re
from pathlib import Path
from typing import NamedTuple

MESSAGE_ID = "<1@sender.example>"
_BLOCK = re.compile(r"^=== (\w+) \| ([^|\n]+) \| ?([^\n]*)\n", re.MULTILINE)


class BounceLetter(NamedTuple):
    """A message, and the address, action and class of bounce of each recipient that it reports."""

    kind: str
    name: str
    raw: bytes
    said: list[tuple[str, ...]]


def _read() -> list[BounceLetter]:
    _, *parts = _BLOCK.split(Path(__file__).with_suffix(".txt").read_text("utf-8"))
    blocks = zip(*(iter(parts),) * 4, strict=True)
    return [
        BounceLetter(
            kind, name, text.replace("\n", "\r\n").encode(), [tuple(each.split()) for each in said.split("; ") if each]
        )
        for kind, name, said, text in blocks
    ]


LETTERS = _read()
BOUNCES = [each for each in LETTERS if each.kind != "none"]
NO_BOUNCES = [each for each in LETTERS if each.kind == "none"]
