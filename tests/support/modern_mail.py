"""Mail of today with its categories (`modern_mail.txt`), in two halves: one to tune the packs on, one held out."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OWNER = "mara@x.example"


@dataclass(frozen=True)
class Letter:
    name: str
    categories: frozenset[str]
    raw: bytes
    unclear: frozenset[str] = frozenset()

    @property
    def is_held_out(self) -> bool:
        return bool(hashlib.sha256(self.name.encode()).digest()[0] & 1)


def letters() -> Iterator[Letter]:
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    for part in text.split("\n== ")[1:]:
        title, _, message = part.partition("\n")
        name, _, categories = title.partition("|")
        head, _, body = message.partition("\n\n")
        if "\nTo: " not in f"\n{head}":
            head = f"To: {OWNER}\n{head}"
        chosen = frozenset(each.strip() for each in categories.split(",")) - {""}
        yield Letter(
            name.strip(),
            chosen,
            f"{head}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n{body}".encode(),
        )
