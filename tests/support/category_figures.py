"""Recall and precision of the category packs: the messages found, against the truth about them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


class Truth(Protocol):
    """The categories of a message, and those it may be in or not."""

    @property
    def categories(self) -> Collection[str]: ...
    @property
    def unclear(self) -> Collection[str]: ...


@dataclass
class Figures:
    """How many messages of a category were found, were missed, and were found wrongly."""

    found: int = 0
    missed: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        return self.found / max(self.found + self.missed, 1)

    @property
    def precision(self) -> float:
        return self.found / max(self.found + self.wrong, 1)

    def __str__(self) -> str:
        of = self.found + self.missed
        return f"recall {self.recall:.3f} of {of}, precision {self.precision:.3f} ({self.wrong} wrong)"


def figures_of(category: str, found: Collection[str], truth: Mapping[str, Truth]) -> Figures:
    """Compare the ids found for a category with the truth; what is unclear counts neither way."""
    figures = Figures()
    for id, true in truth.items():
        if category in true.unclear:
            continue
        if category not in true.categories:
            figures.wrong += id in found
        elif id in found:
            figures.found += 1
        else:
            figures.missed += 1
    return figures
