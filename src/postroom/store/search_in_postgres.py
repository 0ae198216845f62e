"""Searches in PostgreSQL, by its index of all words or that of the words by their place, or by walking back.

There are two ways to the newest matches. Walking back from the newest message reads the words of each, until the page
is full: fast for common words. The index knows which messages have all words; they are sorted, and read from the newest
on only for what the index does not know (that words follow each other, and their place). That is fast unless very many
messages have them all. How many there are is what the planner estimates.

The walk comes first, and ends where it has cost as much as the index would. So a search takes at most twice the time of
the better way, also where the estimate says nothing about the number of matches, as for phrases and labels.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from postroom.core.mail.search import SearchQuery, Term
from postroom.store.engine.database import Rows, Script, sql
from postroom.store.search_filter import SearchFilter

# Reading the words of one message takes as long as finding and sorting this many by the index.
FOUND_PER_READ = 8
# Shorter walks are not worth their statement.
SHORTEST_WALK = 50
_WEIGHTS = {"sender": "A", "recipients": "B", "subject": "C", None: ""}


class _Index(NamedTuple):
    """An index that finds messages for a query, and about how many."""

    statement: str
    query: str
    estimate: int


def search_in_postgres(asked: SearchQuery, where: SearchFilter) -> Script[Rows]:
    """The rows of one page, of the newest matches."""
    words, in_head = _tsquery(asked, placed=False), _tsquery(asked, placed=True)
    index = yield from _better_index(asked)
    if index is None:
        return (yield sql("search_newest", words, in_head, *where, None))
    window = int(index.estimate / FOUND_PER_READ)
    if window >= SHORTEST_WALK:
        rows = yield sql("search_newest", words, in_head, *where, window)
        if len(rows) == where.most:
            return rows
    if index.query == words:
        words = None  # the index knows
    return (yield sql(index.statement, index.query, words, in_head, *where))


def _better_index(asked: SearchQuery) -> Script[_Index | None]:
    """The index that finds fewer messages; None if no word is asked for."""
    found: list[_Index] = []
    for placed, statement, estimate in (
        (False, "search_by_words", "estimate_words"),
        (True, "search_by_heads", "estimate_heads"),
    ):
        if query := _indexed(asked, placed):
            plan = json.loads((yield sql(estimate, query))[0][0])
            found.append(_Index(statement, query, int(plan[0]["Plan"]["Plan Rows"])))
    return min(found, key=lambda index: index.estimate, default=None)


def _tsquery(asked: SearchQuery, placed: bool) -> str | None:
    """The terms with a place, or those without, in the language of the index; None if there are none."""
    parts = [_phrase(term) for term in asked.terms if _is_placed(term) == placed]
    parts += [f"!{_phrase(term)}" for term in asked.excluded if _is_placed(term) == placed]
    return " & ".join(parts) or None


def _indexed(asked: SearchQuery, placed: bool) -> str | None:
    """The same without what an index does not know: places, and that words follow each other."""
    terms = [term for term in asked.terms if _is_placed(term) == placed]
    parts = [_all_words(term) if len(term.words) > 1 or placed else _phrase(term) for term in terms]
    if not parts:
        return None
    single = [term for term in asked.excluded if not placed and not _is_placed(term) and len(term.words) == 1]
    return " & ".join([*parts, *(f"!{_phrase(term)}" for term in single)])


def _is_placed(term: Term) -> bool:
    return term.place is not None


def _phrase(term: Term) -> str:
    return f"({' <-> '.join(f'({part})' for part in _words(term, _WEIGHTS[term.place]))})"


def _all_words(term: Term) -> str:
    return f"({' & '.join(f'({part})' for part in _words(term, ''))})"


def _words(term: Term, weight: str) -> Iterator[str]:
    """With locale C the server folds case in ASCII only, so other words are searched in both cases."""
    last = len(term.words) - 1
    for index, word in enumerate(term.words):
        suffix = f":*{weight}" if term.prefix and index == last else f":{weight}" if weight else ""
        spellings = {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}
        yield " | ".join(f"'{each}'{suffix}" for each in sorted(spellings))
