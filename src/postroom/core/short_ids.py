"""Short ids, as people read and type them.

Our ids begin with the time of their creation, so those of one minute look alike. Their last eight digits are random:
they are shown, and any beginning of them that is unique may be typed, as may a longer part of the whole id.
"""

import re
from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

SHOWN = 8
FEWEST = 4
DIGITS = 32
_HEX = re.compile(rf"[0-9a-f]{{{FEWEST},{DIGITS}}}")


def short_id(id: UUID, digits: int = SHOWN) -> str:
    return id.hex[-digits:]


def digits_to_tell_apart(ids: Collection[UUID]) -> int:
    """How many last digits tell these ids apart, at least those that are always shown."""
    known = set(ids)
    enough = (count for count in (SHOWN, 12, 16) if len({short_id(id, count) for id in known}) == len(known))
    return next(enough, DIGITS)


class PartOfId(NamedTuple):
    """The beginning of a short id, or the beginning or end of a whole one, in hexadecimal digits."""

    digits: str

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last short id that ids with this part may have."""
        start = self.digits[-SHOWN:] if len(self.digits) > SHOWN else self.digits
        return start.ljust(SHOWN, "0"), start.ljust(SHOWN, "f")

    @property
    def whole(self) -> tuple[UUID, UUID] | None:
        """The first and the last id that begins with this part; None if it is too short to be meant so."""
        if len(self.digits) <= SHOWN:
            return None
        return UUID(self.digits.ljust(DIGITS, "0")), UUID(self.digits.ljust(DIGITS, "f"))

    def fits(self, id: UUID) -> bool:
        return id.hex[-SHOWN:].startswith(self.digits) or (
            len(self.digits) > SHOWN and (id.hex.endswith(self.digits) or id.hex.startswith(self.digits))
        )


def part_of_id(text: str) -> PartOfId | None:
    """The part of an id that a text is; None if it is something else."""
    digits = text.strip().replace("-", "").lower()
    return PartOfId(digits) if _HEX.fullmatch(digits) else None
