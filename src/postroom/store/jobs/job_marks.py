"""Low-water marks: where claims begin on PostgreSQL.

A finished job leaves a dead row behind, and while some long transaction holds back vacuum, a claim that walks from the
head of the queue walks over all of them. Each priority therefore has a mark below which nothing can be claimed.

The mark may move up to the first claimable job, but never past a seq that an open transaction could still commit. Such
a transaction has held a lock on the table since before it took the seq. So: read the last seq taken, then who holds
that lock; once all of those have ended, every seq up to there has either been committed or never will be. A transaction
that makes an old job claimable again rewinds the mark, with an update that waits for anyone moving it.
"""

from dataclasses import dataclass

from postroom.store.engine.database import Script, query, sql, transaction


@dataclass(frozen=True, slots=True)
class Watch:
    """Every seq up to `bound` is settled once none of the `open` transactions is left."""

    bound: int
    open: frozenset[str]


@query
def watch_inserts() -> Script[Watch]:
    """Read the last seq, then the transactions that might still use one that low. The order matters."""
    last = yield sql("select_last_seq")
    holders = yield from _open_inserts()
    return Watch(last[0][0], holders)


@query
def still_open(watch: Watch) -> Script[bool]:
    return bool(watch.open & (yield from _open_inserts()))


@transaction
def advance(bound: int) -> Script[None]:
    """Move the marks up, at most to the bound. The lock comes first, so that what follows sees every rewind."""
    yield sql("lock_marks")
    yield sql("advance_marks", bound)


def _open_inserts() -> Script[frozenset[str]]:
    rows = yield sql("select_open_inserts")
    return frozenset(row[0] for row in rows)
