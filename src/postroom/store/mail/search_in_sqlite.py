"""Searches in SQLite, by its full-text index FTS5."""

from postroom.core.mail.search import SearchQuery, Term
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Rows, Script, Statement, sql
from postroom.store.mail.search_filter import SearchFilter

# How many of the newest messages are searched first.
WINDOW = 4_000


def search_in_sqlite(asked: SearchQuery, where: SearchFilter) -> Script[Rows]:
    """The rows of one page, of the newest matches."""
    if asked.terms:
        recent = yield from _recent(asked, where)
        if len(recent) == where.most:
            return recent
    return (yield _everywhere(asked, where))


def _recent(asked: SearchQuery, where: SearchFilter) -> Script[Rows]:
    """The matches among the newest messages: of a common word there are enough, and the others need not be sorted.

    Documents are numbered as they come, so their lowest number is where the index is read from.
    """
    edges = (where.after, where.before, where.cursor_at, where.cursor_id)
    window = yield sql("select_search_window", *edges, WINDOW)
    if not window:
        return Rows()
    start, first_number = window[0]
    return (yield sql("search_recent_words", _fts5(asked), first_number, *where._replace(after=as_time(start))))


def _everywhere(asked: SearchQuery, where: SearchFilter) -> Statement:
    if asked.terms:
        return sql("search_words", _fts5(asked), *where)
    if asked.excluded:
        return sql("search_without", " OR ".join(map(_fts5_term, asked.excluded)), *where)
    return sql("search_filters", *where)


def _fts5(asked: SearchQuery) -> str:
    words = " AND ".join(map(_fts5_term, asked.terms))
    return f"({words}) NOT ({' OR '.join(map(_fts5_term, asked.excluded))})" if asked.excluded else words


def _fts5_term(term: Term) -> str:
    """Words without a place are not looked for among the recipients: the user is one of nearly every message."""
    phrase = f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'
    return f"{{{term.place or 'subject sender body'}}} : {phrase}"
