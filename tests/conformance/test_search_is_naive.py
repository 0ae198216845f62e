"""Every search finds what a naive one finds, page by page, by whichever way it looks: walking back, or by an index."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from postroom.core.mail.search import SearchQuery, Term, read_query
from postroom.store.engine.database import Database
from postroom.store.mail.search import NEWEST, search_mail
from support.clocks import ManualClock
from support.mail import keep_mail
from support.scale import scale

MESSAGES, QUERIES = 60, scale(150, 5_000)
WORDS = ("alpha", "alphabet", "beta", "gamma", "Größe", "delta7", "rare")
WEIGHTS = (20, 4, 10, 6, 4, 3, 1)
LABELS = ("INBOX", "UNREAD", "Label_1")
START = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Mail:
    subject: str
    sender: str
    recipients: str
    body: str
    labels: frozenset[str]
    sent_at: datetime
    has_attachment: bool


def _text(rng: Random, most: int) -> str:
    return " ".join(rng.choices(WORDS, WEIGHTS, k=rng.randint(1, most)))


def _mail(rng: Random, number: int) -> Mail:
    """Two of three have a moment of their own; the subject begins with the number."""
    labels = frozenset(label for label in LABELS if rng.random() < 0.4)
    moment = START + timedelta(hours=number - number % 3)
    return Mail(
        f"{number} {_text(rng, 3)}", _text(rng, 2), _text(rng, 2), _text(rng, 8), labels, moment, number % 4 == 0
    )


def _queries(rng: Random) -> Iterator[str]:
    word = lambda: rng.choices(WORDS, WEIGHTS)[0]  # noqa: E731
    kinds = (
        lambda: word(),
        lambda: f'"{word()} {word()}"',
        lambda: f"{word()[:4]}*",
        lambda: f"from:{word()}",
        lambda: f'to:"{word()} {word()}"',
        lambda: f"subject:{word()}",
        lambda: "in:inbox",
        lambda: "in:archive",
        lambda: "label:Label_1",
        lambda: "is:unread",
        lambda: "has:attachment",
        lambda: f"after:2026-11-0{rng.randint(1, 3)}",
        lambda: f"before:2026-11-0{rng.randint(2, 4)}",
    )
    while True:
        parts = [rng.choice(kinds)() for _ in range(rng.randint(1, 3))]
        may_be_excluded = [not part.startswith(("after", "before", "in:archive")) for part in parts]
        yield " ".join(
            f"-{part}" if negatable and rng.random() < 0.25 else part
            for part, negatable in zip(parts, may_be_excluded, strict=True)
        )


def _matches(query: SearchQuery, mail: Mail) -> bool:
    labels = {each.casefold() for each in mail.labels}
    return (
        all(_has(term, mail) for term in query.terms)
        and not any(_has(term, mail) for term in query.excluded)
        and labels.issuperset(label.casefold() for label in query.labels)
        and labels.isdisjoint(label.casefold() for label in query.other_labels)
        and query.has_attachment in (None, mail.has_attachment)
        and (query.after is None or mail.sent_at >= query.after)
        and (query.before is None or mail.sent_at < query.before)
    )


def _has(term: Term, mail: Mail) -> bool:
    places = {"subject": mail.subject, "sender": mail.sender, "recipients": mail.recipients}
    texts = [places[term.place]] if term.place else [mail.subject, mail.sender, mail.body]
    wanted = [_folded(word) for word in term.words]
    return any(_follow(wanted, _folded(text).split(), term.prefix) for text in texts)


def _follow(wanted: list[str], words: list[str], prefix: bool) -> bool:
    for start in range(len(words) - len(wanted) + 1):
        *others, last = words[start : start + len(wanted)]
        if others == wanted[:-1] and (last.startswith(wanted[-1]) if prefix else last == wanted[-1]):
            return True
    return False


def _folded(text: str) -> str:
    return text.lower().replace("ö", "o").replace("ß", "ss")


async def _stored(database: Database, clock: ManualClock, mail: list[Mail], rng: Random) -> None:
    """In another order than they were sent in."""
    for each in rng.sample(mail, len(mail)):
        headers = [("From", f"{each.sender} <x@y.example>"), ("Cc", f"{each.recipients} <z@y.example>")]
        await keep_mail(
            database,
            clock,
            each.subject,
            subject=each.subject,
            body=each.body,
            sender="x@y.example",
            labels=each.labels,
            sent_at=each.sent_at.isoformat(),
            headers=headers,
            files=["a.pdf"] if each.has_attachment else [],
        )


async def _found(database: Database, query: SearchQuery, size: int) -> list[str]:
    """The subjects of all pages, one after another."""
    subjects, cursor = list[str](), NEWEST
    while True:
        page = await database.run(search_mail(query, database.dialect, size, cursor))
        subjects += [each.subject for each in page.found]
        if page.following is None:
            return subjects
        assert len(page.found) == size
        cursor = page.following


def _look_everywhere(monkeypatch: pytest.MonkeyPatch, rng: Random) -> float:
    """Choose how far searches walk before they ask the index: not at all, some messages, or all."""
    walked = rng.choice((0, 3, 10, 1_000))
    monkeypatch.setattr("postroom.store.mail.search_in_sqlite.WINDOW", walked)
    monkeypatch.setattr("postroom.store.mail.search_in_postgres.SHORTEST_WALK", 1)
    monkeypatch.setattr("postroom.store.mail.search_in_postgres.FOUND_PER_READ", 1 / walked if walked else 1_000_000)
    return walked


async def test_every_search_finds_what_a_naive_one_finds_page_by_page(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    seed = Random().randrange(10**9)
    print(f"seed {seed}")
    rng = Random(seed)
    mail = [_mail(rng, number) for number in range(MESSAGES)]
    await _stored(database, clock, mail, rng)
    hits = 0
    for _, line in zip(range(QUERIES), _queries(rng), strict=False):
        query, walked = read_query(line), _look_everywhere(monkeypatch, rng)
        expected = {each.subject: each.sent_at for each in mail if _matches(query, each)}
        found = await _found(database, query, rng.choice((1, 2, 7, 50)))
        assert sorted(found) == sorted(expected), (line, walked)
        times = [expected[subject] for subject in found]
        assert times == sorted(times, reverse=True), (line, walked)
        hits += len(found) > 0
    assert hits > QUERIES // 4
