"""One subject's counts, and what was counted."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Section:
    """`found` lists what the numbers count; `is_short` if that is shown even when no list is asked for."""

    title: str
    numbers: dict[str, int]
    found: list[str] = field(default_factory=list[str])
    is_short: bool = False
