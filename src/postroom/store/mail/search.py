"""Searching stored mail. Mail that is gone from the mailbox is not found.

Each database has an index of the words of subject, sender, recipients and text, without their accents. A query consists
of words only (`core/mail/search.py`), and is translated (`search_in_sqlite.py`, `search_in_postgres.py`) into the
language of the index, in which words of letters and digits have no other meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import same_mailbox
from postroom.core.mail.search import FIELD, SearchQuery, excerpt
from postroom.store.accounts.accounts import AccountView, list_accounts
from postroom.store.engine.codecs import as_uuid, json_text
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Dialect, Script, bounded_query, query, sql
from postroom.store.mail.labels import AccountLabel, list_all_labels
from postroom.store.mail.mail_views import MailRow, mail_rows, no_such_message
from postroom.store.mail.search_filter import SearchFilter
from postroom.store.mail.search_in_postgres import search_in_postgres
from postroom.store.mail.search_in_sqlite import search_in_sqlite

MOST_FOUND = 50
SEARCH_LIMIT_S = 2.0
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
NEWEST = Cursor(LATEST, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The newest first; `following` is where the next page begins, None on the last.

    Each has the excerpt that the search found. While `is_indexing`, mail that is older than the index may be missing.
    """

    found: list[MailRow]
    following: Cursor | None
    is_indexing: bool = False


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
    excerpts = {
        as_uuid(row["id"]): excerpt(row["text"], asked.terms, row["snippet"]) for row in islice(rows.by_name(), most)
    }
    mail = yield from mail_rows(list(excerpts))
    page = [replace(each, excerpt=excerpts[each.id]) for each in mail]
    indexing = yield sql("is_indexing")
    following = Cursor(page[-1].sent_at, page[-1].id) if len(rows) > most else None
    return FoundPage(page, following, bool(indexing[0][0]))


@query
def check_message(id: UUID, account_id: UUID | None = None) -> Script[None]:
    """Check that a message exists. Raises NotFound, also for a message of another account."""
    rows = yield sql("select_account_of", id)
    if not rows or account_id not in (None, as_uuid(rows[0][0])):
        raise no_such_message(id)


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
