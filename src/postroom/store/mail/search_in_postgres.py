"""Searches in PostgreSQL, by an index of words, of words by their place, or of labels, or by walking back.

There are two ways to the newest matches. Walking back from the newest message reads the words of each, until the page
is full: fast for common words. The index knows which messages have all words; they are sorted, and read from the newest
on only for what the index does not know (that words follow each other, and their place). That is fast unless very many
messages have them all. The same goes for labels. How many there are is what the planner estimates.

The walk comes first, and ends where it has cost as much as the index would. So a search takes at most twice the time of
the better way, also where the estimate says nothing about the number of matches, as for phrases and labels.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from postroom.core.mail.search import SearchQuery, Term
from postroom.store.engine.database import Rows, Script, sql
from postroom.store.mail.search_filter import SearchFilter

# Reading the words of one message takes as long as finding and sorting this many by the index.
FOUND_PER_READ = 8
# Shorter walks are not worth their statement.
SHORTEST_WALK = 50
_WEIGHTS = {"sender": "A", "recipients": "B", "subject": "C", None: ""}


class _Index(NamedTuple):
    """An index that finds messages for a query, and about how many."""

    statement: str
    query: str | list[str]
    estimate: int


def search_in_postgres(asked: SearchQuery, where: SearchFilter) -> Script[Rows]:
    """The rows of one page, of the newest matches."""
    words, in_head = _tsquery(asked, placed=False), _tsquery(asked, placed=True)
    index = yield from _better_index(asked, where)
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


def _better_index(asked: SearchQuery, where: SearchFilter) -> Script[_Index | None]:
    """The index that finds the fewest messages; None if neither a word nor a label is asked for."""
    asks: list[tuple[str, str | list[str] | None]] = [
        ("words", _index_query(asked, placed=False)),
        ("heads", _index_query(asked, placed=True)),
        *(("labels", _label_keys(keys)) for keys in json.loads(where.labels)),
    ]
    found: list[_Index] = []
    for kind, query in asks:
        if query:
            plan = json.loads((yield sql(f"estimate_{kind}", query))[0][0])
            found.append(_Index(f"search_by_{kind}", query, int(plan[0]["Plan"]["Plan Rows"])))
    return min(found, key=lambda index: index.estimate, default=None)


def _label_keys(keys: list[str]) -> list[str]:
    """The keys of the index under which a message is that has the label: its name, or its id after an account's."""
    return [*keys, *(key.partition("/")[2].lower() for key in keys if "/" in key)]


def _tsquery(asked: SearchQuery, placed: bool) -> str | None:
    """The terms with a place, or those without, in the language of the index; None if there are none."""
    parts = [_phrase(term) for term in asked.terms if _is_placed(term) == placed]
    parts += [f"!{_phrase(term)}" for term in asked.excluded if _is_placed(term) == placed]
    return " & ".join(parts) or None


def _index_query(asked: SearchQuery, placed: bool) -> str | None:
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
    return f"({' <-> '.join(_words(term, _WEIGHTS[term.place]))})"


def _all_words(term: Term) -> str:
    return f"({' & '.join(_words(term, ''))})"


def _words(term: Term, weight: str) -> Iterator[str]:
    last = len(term.words) - 1
    for index, word in enumerate(term.words):
        suffix = f":*{weight}" if term.prefix and index == last else f":{weight}" if weight else ""
        yield f"'{word}'{suffix}"
