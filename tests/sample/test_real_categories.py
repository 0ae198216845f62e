"""The category packs on real mail that a person has labelled: `labels.txt` knows the files by their hashes alone."""

import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from postroom.core.mail.categories import CATEGORIES, categories_of, queries_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from postroom_sandbox.mailbox import Mailbox
from support.category_figures import figures_of

LABELS = Path(__file__).with_name("labels.txt")
ENOUGH = 30
RECALL, PRECISION = 0.95, 0.9
USERS = (
    "yyyy@spamassassin.taint.org",
    "yyyy@netnoteinc.com",
    "zzzz@spamassassin.taint.org",
    "zzz@spamassassin.taint.org",
    "aebenjam@opentext.com",
)


@dataclass(frozen=True)
class Label:
    categories: frozenset[str]
    unclear: frozenset[str]


def labels() -> dict[str, list[str]]:
    lines = (line.split() for line in LABELS.read_text("ascii").splitlines() if not line.startswith("#"))
    return {words[0]: words[1:] for words in lines}


@pytest.fixture(scope="module")
def labelled() -> tuple[Mailbox, dict[str, Label]]:
    """A mailbox with the labelled messages, spam in its place, and the labels by message id."""
    known, truth = labels(), dict[str, Label]()
    mailbox = Mailbox(USERS[0], Random(1))
    for path in sorted(Path(os.environ["POSTROOM_SAMPLE_MAIL"]).rglob("*")):
        if not path.is_file() or (words := known.get(hashlib.sha256(path.read_bytes()).hexdigest()[:16])) is None:
            continue
        is_spam = words == ["spam"]
        message = mailbox.deliver(path.read_bytes(), ["SPAM"] if is_spam else ["INBOX"])
        certain = frozenset(word for word in words if word in CATEGORIES)
        truth[message.id] = Label(certain, frozenset(word[:-1] for word in words if word.endswith("?")))
    if not truth:
        pytest.skip("the folder has none of the messages that are labelled")
    return mailbox, truth


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_check_tells_the_categories_of_real_mail(labelled: tuple[Mailbox, dict[str, Label]], category: str) -> None:
    mailbox, truth = labelled
    known = Known.of(USERS)
    accepted = {
        message.id
        for message in mailbox.search()
        if category in categories_of(IngestionFacts.of(parse_message(message.mail.raw)), known)
    }
    listed = {
        message.id
        for user in USERS
        for query in queries_of([CATEGORIES[category]], user)
        for message in mailbox.search(query)
    }
    ham = {message.id for message in mailbox.search()}
    figures = figures_of(category, accepted, {id: label for id, label in truth.items() if id in ham})
    together = figures_of(category, accepted & listed, {id: label for id, label in truth.items() if id in ham})
    print(f"\n{category}, the check alone: {figures}; after the search: {together}; {len(listed & ham)} of {len(ham)}")
    assert figures.wrong <= len(ham) * 0.01
    if figures.found + figures.missed >= ENOUGH:
        assert figures.recall >= RECALL
        assert figures.precision >= PRECISION


def test_the_labels_say_how_much_there_is_of_each_category() -> None:
    print("\nlabels:", Counter(" ".join(words) for words in labels().values()).most_common())
