"""Searching and reading stored mail. Mail that is gone from the mailbox is not found.

Each database has an index of the words of subject, sender, recipients and text, without their accents. A query consists
of words only (`core/mail/search.py`), and is translated (`search_in_sqlite.py`, `search_in_postgres.py`) into the
language of the index, in which words of letters and digits have no other meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.accounts import same_mailbox
from postroom.core.mail.search import FIELD, SearchQuery, excerpt
from postroom.core.queue.envelope import IngestionTier
from postroom.store.accounts.accounts import AccountView, list_accounts
from postroom.store.engine.codecs import as_time, as_uuid, json_text
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Dialect, Script, bounded_query, query, sql
from postroom.store.engine.reading import read_row
from postroom.store.mail.labels import AccountLabel, list_all_labels
from postroom.store.mail.mail_views import label_names, named_labels
from postroom.store.mail.search_filter import SearchFilter
from postroom.store.mail.search_in_postgres import search_in_postgres
from postroom.store.mail.search_in_sqlite import search_in_sqlite

MOST_FOUND = 50
SEARCH_LIMIT_S = 2.0
LONGEST_TEXT = 20_000
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
NEWEST = Cursor(LATEST, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class FoundMail:
    """A message that matches a query."""

    id: UUID
    account: str
    sender: str
    subject: str
    sent_at: datetime
    labels: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The newest first; `following` is where the next page begins, None on the last.

    While `is_indexing`, mail that is older than the index may be missing.
    """

    found: list[FoundMail]
    following: Cursor | None
    is_indexing: bool = False


@dataclass(frozen=True, slots=True)
class ReadMail:
    """A message with its text, truncated if long. `metadata` means it was stored without text."""

    id: UUID
    account: str
    sender: str
    subject: str
    sent_at: datetime
    labels: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    ingestion_tier: IngestionTier
    is_gone: bool
    text: str
    is_cut: bool


@bounded_query(SEARCH_LIMIT_S)
def search_mail(
    asked: SearchQuery, dialect: Dialect, most: int, before: Cursor = NEWEST, account_id: UUID | None = None
) -> Script[FoundPage]:
    """One page of matches, in one account's mail or in all. Raises TookTooLong if the search costs too much."""
    accounts = yield from list_accounts.script()
    ids = _accounts_meant(accounts, asked.account, account_id)
    labels = yield from list_all_labels.script()
    where = SearchFilter(
        ids,
        json_text([_keys(label, labels) for label in asked.labels]),
        json_text([key for label in asked.other_labels for key in _keys(label, labels)]),
        asked.has_attachment,
        asked.after or EARLIEST,
        asked.before or LATEST,
        before.at,
        before.id,
        most + 1,
    )
    rows = yield from (search_in_sqlite if dialect == "sqlite" else search_in_postgres)(asked, where)
    names = label_names(labels)
    page = [
        read_row(
            FoundMail,
            row,
            labels=named_labels(row, names),
            excerpt=excerpt(row["text"], asked.terms, row["snippet"]),
        )
        for row in islice(rows.by_name(), most)
    ]
    indexing = yield sql("is_indexing")
    following = Cursor(page[-1].sent_at, page[-1].id) if len(rows) > most else None
    return FoundPage(page, following, bool(indexing[0][0]))


@query
def read_mail(id: UUID, account_id: UUID | None = None) -> Script[ReadMail]:
    """Read a message. Raises NotFound, also for a message of another account."""
    for row in (yield sql("select_mail", id)).by_name():
        if account_id in (None, as_uuid(row["account_id"])):
            if row["pruned_at"] is not None:
                when = as_time(row["pruned_at"]).date()
                raise NotFound(f"the content of message {id} is no longer kept: its retention ended on {when}")
            names = label_names((yield from list_all_labels.script()))
            return read_row(ReadMail, row, labels=named_labels(row, names), is_cut=row["length"] > LONGEST_TEXT)
    raise no_such_message(id)


@query
def check_message(id: UUID, account_id: UUID | None = None) -> Script[None]:
    """Check that a message exists. Raises NotFound, also for a message of another account."""
    rows = yield sql("select_account_of", id)
    if not rows or account_id not in (None, as_uuid(rows[0][0])):
        raise no_such_message(id)


def no_such_message(id: UUID) -> NotFound:
    return NotFound(f"there is no message {id}")


def _accounts_meant(accounts: Sequence[AccountView], named: str | None, only: UUID | None) -> list[UUID]:
    seen = [each for each in accounts if only is None or each.id == only]
    if named is None:
        return [each.id for each in seen]
    meant = [each.id for each in seen if named == str(each.id) or same_mailbox(each.email, named)]
    if not meant:
        raise BadInput(FIELD, "account: is not an account here", "leave it out, or name the account by its address")
    return meant


def _keys(label: str, known: Sequence[AccountLabel]) -> list[str]:
    """How a message may store this label: by an id that means it in every account, or in one."""
    plain = label.casefold()
    return [plain, *(f"{each.account_id}/{each.provider_label_id}" for each in known if each.name.casefold() == plain)]
