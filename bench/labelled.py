"""Precision and recall of the category packs on a folder of real mail and a file of labels: `python -m bench.labelled`.

The labels are a CSV file with the columns `path` (below the folder), `categories` (joined by `|`) and `sure`: `yes`,
`no`, or the categories that are in doubt, joined by `|`. Paths are split into two halves by their hash, so that packs
may be tuned on one half and reported on the other. Prints figures and, if asked, the paths of errors; never a text.
"""

import argparse
import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from postroom.core.mail.categories import CATEGORIES, categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known

HALVES = ("tuned", "held-out")
Z = 1.96


@dataclass(frozen=True)
class Labelled:
    """A mail with the categories that a person gave it, those in doubt, and those that the check finds."""

    path: str
    categories: frozenset[str]
    doubtful: frozenset[str]
    found: frozenset[str]

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(self.path.encode()).digest()[0] & 1]


def wilson(part: int, of: int) -> str:
    """The interval that holds the true share with 95 % (Wilson)."""
    if not of:
        return "-"
    share, square = part / of, Z * Z / of
    middle, spread = share + square / 2, Z * sqrt((share * (1 - share) + square / 4) / of)
    return f"{share:.2f} ({(middle - spread) / (1 + square):.2f}-{(middle + spread) / (1 + square):.2f})"


def read_labels(folder: Path, labels: Path, known: Known) -> Iterator[Labelled]:
    """Check every labelled mail of the folder."""
    with labels.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            facts = IngestionFacts.of(parse_message((folder / row["path"]).read_bytes()))
            given = frozenset(row["categories"].split("|")) & set(CATEGORIES)
            yield Labelled(row["path"], given, doubts(row["sure"]), frozenset(categories_of(facts, known)))


def doubts(sure: str) -> frozenset[str]:
    if sure == "yes":
        return frozenset()
    return frozenset(CATEGORIES) if sure == "no" else frozenset(sure.split("|"))


def figures(mails: Sequence[Labelled], category: str, sure_only: bool) -> str:
    """One line: how many of the category were found, and how many found are of it."""
    counted = [mail for mail in mails if not (sure_only and category in mail.doubtful)]
    right = sum(category in mail.found & mail.categories for mail in counted)
    found = sum(category in mail.found for mail in counted)
    true = sum(category in mail.categories for mail in counted)
    precision, recall = f"{right}/{found} = {wilson(right, found)}", f"{right}/{true} = {wilson(right, true)}"
    return f"{category:13} {'sure' if sure_only else 'all':5} precision {precision:30} recall {recall}"


def errors(mails: Sequence[Labelled], category: str) -> Iterator[str]:
    for mail in mails:
        if (category in mail.found) != (category in mail.categories):
            kind = "wrong " if category in mail.found else "missed"
            yield f"  {kind} {category:13} {'?' if category in mail.doubtful else ' '} {mail.path}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--user", action="append", default=[], help="an address of the mailbox's owner")
    parser.add_argument("--only", action="append", default=[], help="only paths that begin so")
    parser.add_argument("--errors", choices=HALVES, help="print the paths of the errors in this half")
    asked = parser.parse_args()
    every = read_labels(asked.folder, asked.labels, Known.of(asked.user))
    mails = [mail for mail in every if mail.path.startswith(tuple(asked.only) or "")]
    for half in HALVES:
        chosen = [mail for mail in mails if mail.half == half]
        print(f"\n{half}: {len(chosen)} mails")
        for category in CATEGORIES:
            print(figures(chosen, category, sure_only=False))
            print(figures(chosen, category, sure_only=True))
            if asked.errors == half:
                print(*errors(chosen, category), sep="\n")


if __name__ == "__main__":
    main()
