"""Low-water marks: where claims begin on PostgreSQL.

A finished job leaves a dead row behind, and while some long transaction holds back vacuum, a claim that walks from the
head of the queue walks over all of them. Each priority therefore has a mark below which nothing can be claimed.

The mark may move up to the first claimable job, but never past a seq that an open transaction could yet commit. Such
a transaction has held a lock on the table since before it took the seq. So: look at the last seq taken, then at who
holds that lock; once all of those have gone, every seq up to there has either been committed or never will be.
Those who make an old job claimable again rewind the mark, with an update that waits for whoever is moving it.
"""

from dataclasses import dataclass

from postroom.store.engine.database import Script, query, sql, transaction


@dataclass(frozen=True, slots=True)
class Watch:
    """Every seq up to `bound` is settled when none of the `open` transactions is left."""

    bound: int
    open: frozenset[str]


@query
def watch_inserts() -> Script[Watch]:
    """The order matters: first the seq, then who might still be using one that low."""
    last = yield sql("select_last_seq")
    holders = yield from _open_inserts()
    return Watch(last[0][0], holders)


@query
def still_open(watch: Watch) -> Script[bool]:
    return bool(watch.open & (yield from _open_inserts()))


@transaction
def advance(bound: int) -> Script[None]:
    """Moves the marks up, to the bound at most. The lock comes first, so that what follows sees every rewind."""
    yield sql("lock_marks")
    yield sql("advance_marks", bound)


def _open_inserts() -> Script[frozenset[str]]:
    rows = yield sql("select_open_inserts")
    return frozenset(row[0] for row in rows)
