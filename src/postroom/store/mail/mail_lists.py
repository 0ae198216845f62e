"""Lists of mail and events for people, newest first and page by page: all of it, or by tier, decider, account,
state or category.

A page costs the same however much is stored. What no index serves is looked for in a stretch of the newest messages;
when that has too few, the page says how far back it looked, and the next page goes on from there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor
from postroom.core.lifecycle import InboxState
from postroom.core.mail.mail_head import MailHead
from postroom.core.mail.message import MailContent, read_mail
from postroom.core.mail.search import SearchQuery
from postroom.core.queue.envelope import MAIL, parse_envelope
from postroom.core.rules.rule import DecisionSource
from postroom.store.engine.codecs import as_time, as_uuid, from_json
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Dialect, Rows, Script, bounded_query, query, sql
from postroom.store.engine.reading import read_row
from postroom.store.mail.mail_views import LONGEST_TEXT, LastState, MailRow, mail_rows
from postroom.store.mail.search import EARLIEST, NEWEST, SEARCH_LIMIT_S, search_mail

STRETCH = 4_000
"""How many messages are looked through for one page."""
BATCH = 200
MOST_BATCHES = 5
MOST_COUNTED = 1_000
LONGEST_START = 300
_FIRST_ID = UUID(int=0)

StateFilter = Literal[LastState, "hidden"]
ByFilter = Literal["rule", "model", "you", "agent"]
_SOURCES: Mapping[ByFilter, DecisionSource] = {"rule": "deterministic", "model": "llm"}
_ACTORS: Mapping[ByFilter, Actor] = {"you": "user", "agent": "agent"}
_STATE_PAGES = {
    "asking": "select_asking_page",
    "failed": "select_failed_page",
    "undone": "select_undone_page",
    "hidden": "select_hidden_page",
}


@dataclass(frozen=True, slots=True)
class MailFilter:
    """The mail that is wanted; None stands for any."""

    tier: str | None = None
    state: StateFilter | None = None
    by: ByFilter | None = None
    account_id: UUID | None = None
    since: datetime = EARLIEST
    category: str | None = None

    @property
    def account(self) -> str | None:
        return None if self.account_id is None else str(self.account_id)

    @property
    def is_narrow(self) -> bool:
        """Whether only some messages fit, besides those of a time."""
        return any(each is not None for each in (self.tier, self.state, self.by, self.account_id, self.category))


@dataclass(frozen=True, slots=True)
class ListedEvent(MailHead):
    """An event of a queue, without a subject, or mail that is not stored yet; `text` is the beginning of its text."""

    id: UUID
    queue: str
    tier: str
    channel: str
    endpoint_identity: str
    kind: str | None
    members: int | None
    at: datetime
    state: InboxState
    reason: str | None
    ended_at: datetime | None
    attempts: int
    linked_to: UUID | None
    text: str

    @property
    def is_mail(self) -> bool:
        return self.queue == MAIL


class ListedPage(NamedTuple):
    """A page of a list. `following` is where the next begins; `looked_back_to` is set if not all was looked through."""

    items: Sequence[MailRow | ListedEvent]
    following: Cursor | None
    looked_back_to: datetime | None = None
    is_indexing: bool = False


class StateCounts(NamedTuple):
    """How many actions wait for a yes, and how many failed or were undone lately; counted up to MOST_COUNTED."""

    asking: int
    failed: int
    undone: int


class _Found(NamedTuple):
    id: UUID
    at: datetime
    place: Cursor


@query
def list_arrived(
    most: int, before: Cursor = NEWEST, since: datetime = EARLIEST, with_events: bool = True
) -> Script[ListedPage]:
    """All mail that arrived, stored or not, and with it the events of every queue."""
    mail = _read_found((yield sql("select_mail_page", None, None, None, None, False, None, since, *before, most + 1)))
    floor = mail[-1].at if len(mail) > most else since
    events = (yield from _event_page(None, before, floor, most)) if with_events else []
    events += _read_found((yield sql("select_unstored_page", STRETCH, floor, *before, most + 1)))
    chosen = sorted((*mail, *events), key=lambda each: each.place, reverse=True)
    page = chosen[:most]
    by_id: dict[UUID, MailRow | ListedEvent] = {}
    by_id |= {each.id: each for each in (yield from mail_rows([each.id for each in page]))}
    by_id |= {each.id: each for each in (yield from _events([each.id for each in page if each.id not in by_id]))}
    items = [by_id[each.id] for each in page if each.id in by_id]
    return ListedPage(items, page[-1].place if len(chosen) > most else None)


@query
def list_events(
    most: int, tier: str | None = None, before: Cursor = NEWEST, since: datetime = EARLIEST
) -> Script[ListedPage]:
    """Events of every queue but that of mail."""
    floor = since
    if tier is not None:
        for (queue,) in (yield sql("select_event_queues")):
            for (at,) in (yield sql("select_event_window", queue, before.at, STRETCH)):
                floor = max(floor, as_time(at))
    found = sorted((yield from _event_page(tier, before, floor, most)), key=lambda each: each.place, reverse=True)
    by_id = {each.id: each for each in (yield from _events([each.id for each in found[:most]]))}
    items = [by_id[each.id] for each in found[:most] if each.id in by_id]
    return _page(items, found, most, floor if floor > since else None)


@query
def list_mail(wanted: MailFilter, most: int, before: Cursor = NEWEST) -> Script[ListedPage]:
    """Mail that fits the filter."""
    if (statement := _STATE_PAGES.get(wanted.state or "")) is not None:
        return (yield from _in_state(statement, wanted, most, before))
    floor = None
    if wanted.is_narrow:
        for (at,) in (yield sql("select_mail_window", *before, STRETCH)):
            floor = as_time(at)
    source, actor = (_SOURCES.get(wanted.by), _ACTORS.get(wanted.by)) if wanted.by else (None, None)
    since = max(wanted.since, floor or EARLIEST)
    filters = (wanted.tier, wanted.account, source, actor, wanted.state == "done", wanted.category)
    found = _read_found((yield sql("select_mail_page", *filters, since, *before, most + 1)))
    items = yield from mail_rows([each.id for each in found[:most]])
    return _page(items, found, most, floor if floor is not None and floor > wanted.since else None)


@query
def list_by_date(wanted: MailFilter, most: int, only_kept: bool = False) -> Script[ListedPage]:
    """Mail of a tier, account or category that is still in the mailbox, by its own date; with `only_kept`, mail on
    which nothing was ever done.
    """
    filters = (wanted.tier, wanted.account, wanted.category, only_kept, wanted.since)
    found = yield sql("select_sent_page", *filters, most + 1)
    items = yield from mail_rows([as_uuid(id) for (id,) in found[:most]])
    return ListedPage(items, Cursor(items[-1].sent_at, items[-1].id) if len(found) > most else None)


@bounded_query(SEARCH_LIMIT_S)
def list_matching(
    asked: SearchQuery, dialect: Dialect, wanted: MailFilter, most: int, before: Cursor = NEWEST
) -> Script[ListedPage]:
    """Mail that a search finds and the filter lets through, by its own date. Raises TookTooLong."""
    page = yield from search_mail.script(asked, dialect, most, before, wanted.account_id)
    return ListedPage(list(filter(_fits(wanted), page.found)), page.following, is_indexing=page.is_indexing)


@query
def count_states(since: datetime) -> Script[StateCounts]:
    """Count what people look for first; `since` bounds all but what waits."""
    asking = yield sql("count_asking", MOST_COUNTED)
    failed = yield sql("count_failed", since, MOST_COUNTED)
    undone = yield sql("count_undone", since, MOST_COUNTED)
    return StateCounts(asking[0][0], failed[0][0], undone[0][0])


@query
def count_hidden(since: datetime) -> Script[int]:
    """How many messages automation has hidden since then that were not brought back."""
    rows = yield sql("count_hidden_since", since, MOST_COUNTED)
    return rows[0][0]


@query
def find_event(id: UUID) -> Script[ListedEvent | None]:
    """An event, or mail that is not stored, with the beginning of its text."""
    return next(iter((yield from _events([id], LONGEST_TEXT))), None)


def _in_state(statement: str, wanted: MailFilter, most: int, before: Cursor) -> Script[ListedPage]:
    """Walk through the actions in one state, newest first, until the page is full."""
    fits, items, place = _fits(replace(wanted, state=None, since=EARLIEST)), list[MailRow](), before
    batch = BATCH if replace(wanted, state=None).is_narrow else most + 1
    for _ in range(MOST_BATCHES):
        rows = yield sql(statement, wanted.since, *place, batch)
        by_id = {each.id: each for each in (yield from mail_rows([as_uuid(id) for id, _, _ in rows]))}
        for message_id, at, action_id in rows:
            if len(items) == most:
                return ListedPage(items, place)
            place, message = Cursor(as_time(at), as_uuid(action_id)), by_id[as_uuid(message_id)]
            if fits(message):
                items.append(message)
        if len(rows) < batch:
            return ListedPage(items, None)
    return ListedPage(items, place, looked_back_to=place.at)


def _fits(wanted: MailFilter) -> Callable[[MailRow], bool]:
    """Whether a message fits, by what its row says."""
    source, actor = (_SOURCES.get(wanted.by), _ACTORS.get(wanted.by)) if wanted.by else (None, None)

    def fits(each: MailRow) -> bool:
        return (
            wanted.tier in (None, each.tier)
            and wanted.state in (None, each.state)
            and wanted.account_id in (None, each.account_id)
            and (wanted.category is None or wanted.category in each.categories)
            and source in (None, each.source)
            and actor in (None, each.actor)
            and each.stored_at >= wanted.since
        )

    return fits


def _event_page(tier: str | None, before: Cursor, floor: datetime, most: int) -> Script[list[_Found]]:
    found: list[_Found] = []
    for (queue,) in (yield sql("select_event_queues")):
        found += _read_found((yield sql("select_event_page", queue, tier, floor, *before, most + 1)))
    return found


def _read_found(rows: Rows) -> list[_Found]:
    return [_Found(id, at, Cursor(at, id)) for id, at in ((as_uuid(id), as_time(at)) for id, at in rows)]


def _page(
    items: Sequence[MailRow | ListedEvent], found: Sequence[_Found], most: int, floor: datetime | None
) -> ListedPage:
    """The page; after a stretch with too few, the next one begins where the stretch ended."""
    if len(found) > most:
        return ListedPage(items, found[most - 1].place)
    return ListedPage(items, None if floor is None else Cursor(floor, _FIRST_ID), floor)


def _events(ids: Sequence[UUID], length: int = LONGEST_START) -> Script[list[ListedEvent]]:
    if not ids:
        return []
    rows = yield sql("select_listed_events", list(ids), length)
    return [_event(row, length) for row in rows.by_name()]


def _event(row: Mapping[str, Any], length: int) -> ListedEvent:
    if row["envelope_json"] is None:
        return read_row(ListedEvent, row, subject="")
    mail = _read(row["envelope_json"])
    return read_row(
        ListedEvent,
        {**row, "sender": mail.sender if mail else row["sender"]},
        subject=mail.subject if mail else "(unreadable)",
        text=mail.body_text[:length] if mail else "",
    )


def _read(envelope: str) -> MailContent | None:
    """The mail in an envelope; None if it cannot be read: it is listed all the same."""
    try:
        return read_mail(parse_envelope(from_json(envelope)))
    except Exception:
        return None
