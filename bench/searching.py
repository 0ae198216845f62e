"""The process that searches stored mail: `python -m bench.searching fill|search postgres|sqlite ADDRESS COUNT`.

Words are as frequent as in language: the commonest stands in most messages, the rarest in a few. Each query is of one
kind that people type, with words from common to rare.
"""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any

from postroom.core.mail.search import read_query
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.mail.mail import keep_account
from postroom.store.mail.search import search_mail

from .order import Outcome, Target, answer, run
from .ours import opened

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
CHUNK, PAGE, QUERIES = 1_000, 20, 400
VOCABULARY, WORDS, PEOPLE = 20_000, 120, 2_000
_SYLLABLES = ("ba", "ko", "li", "mé", "nu", "ra", "so", "ti", "vö", "zu")


def word(rank: int) -> str:
    """The word of this rank among the most frequent."""
    return "".join(_SYLLABLES[int(digit)] for digit in str(rank)) + "n"


def _texts(rng: Random) -> Iterator[list[str]]:
    ranks = range(VOCABULARY)
    weights = list(accumulate(1 / (rank + 3) for rank in ranks))
    while True:
        yield [word(rank) for rank in rng.choices(ranks, cum_weights=weights, k=WORDS)]


def _person(number: int) -> str:
    return f"{word(number).title()} {word(number + 7).title()} <p{number}@{word(number % 300)}.example>"


async def fill(target: Target, count: int) -> Outcome:
    """Not measured."""
    rng = Random(7)
    texts = _texts(rng)
    async with opened(target) as database:
        await migrate(database)
        account = await database.run(keep_account(new_id(), "gmail", "gmail:user:m@x", "m@x.example", NOW))
        thread = new_id()
        for start in range(0, count, CHUNK):
            numbers = range(start, min(start + CHUNK, count))
            await database.run(_store(account.id, thread, [(number, next(texts)) for number in numbers], rng, count))
    return Outcome()


@transaction
def _store(account: Any, thread: Any, chunk: list[tuple[int, list[str]]], rng: Random, count: int) -> Script[None]:
    threads = yield sql("upsert_thread", thread, account, "t", "a thread", NOW, NOW)
    for number, words in chunk:
        person = rng.randrange(PEOPLE)
        sender, subject = f"p{person}@{word(person % 300)}.example", " ".join(words[:6])
        headers = [("From", _person(person)), ("To", _person(rng.randrange(PEOPLE))), ("Subject", subject)]
        headers.append(("Message-ID", f"<{number}@{word(person % 300)}.example>"))
        labels = ["INBOX"] if rng.random() < 0.1 else [f"Label_{number % 50}"]
        sent_at = NOW - timedelta(minutes=count - number)
        named = (account, threads[0][0], new_id(), f"m{number}", "full", "default", sender, subject)
        texts = (json_text(headers), json_text(labels), "", " ".join(words), number % 10 == 0)
        yield sql("insert_message", new_id(), *named, *texts, sent_at, "", 2_000, "[]", False, False, NOW)


def queries(seed: int) -> Iterator[str]:
    """Searches of all kinds; every fifth word is a common one."""
    rng = Random(seed)

    def some() -> str:
        return word(rng.randrange(20) if rng.random() < 0.2 else rng.randrange(20, VOCABULARY))

    kinds = (
        lambda: some(),
        lambda: f"{some()} {some()}",
        lambda: f'"{some()} {word(rng.randrange(20))}"',
        lambda: f"{some()} -{some()}",
        lambda: f"{some()[:6]}*",
        lambda: f"from:p{rng.randrange(PEOPLE)}",
        lambda: f'from:"{word(rng.randrange(PEOPLE))}" {some()}',
        lambda: f"to:p{rng.randrange(PEOPLE)} has:attachment",
        lambda: f"subject:{some()} in:inbox",
        lambda: f"label:Label_{rng.randrange(50)}",
        lambda: f"in:inbox -{some()}",
        lambda: f"{some()} after:2026-10-01",
    )
    while True:
        yield rng.choice(kinds)()


async def measure(target: Target, count: int) -> Outcome:
    """`latencies` are those of the searches, in seconds; `handled` is how many messages they found."""
    latencies, found = list[float](), 0
    async with opened(target) as database:
        for number, line in zip(range(QUERIES), queries(11), strict=False):
            asked, started = read_query(line), time.perf_counter()
            page = await database.run(search_mail(asked, database.dialect, PAGE))
            latencies += [time.perf_counter() - started] if number >= QUERIES // 10 else []
            found += len(page.found)
    return Outcome(latencies=latencies, handled=found, finished=count)


if __name__ == "__main__":
    verb, kind, address, number = sys.argv[1:]
    where = Target("postgres" if kind == "postgres" else "sqlite", address)
    work = fill(where, int(number)) if verb == "fill" else measure(where, int(number))
    answer(run(work).to_json())
