"""Stored mail: list it, search it, read one message, and explain what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parseaddr
from uuid import UUID

from postroom.core.actions import phrases
from postroom.core.mail.categories import chosen_categories
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.search import read_query
from postroom.core.short_ids import short_id
from postroom.operations.accounts.accounts import find_account
from postroom.operations.actions.action_states import state_of
from postroom.operations.mail.mail_ids import find_message
from postroom.store.engine.database import Database
from postroom.store.mail import mail_views, search
from postroom.store.mail.mail_views import AttachedFile, ListedMail
from postroom.store.mail.search import FoundMail

__all__ = ["FoundMails", "MailText", "MailView", "find_message", "list_mail", "read_mail", "search_mail"]

SHOWN_HEADERS = ("from", "to", "cc", "date", "subject")


@dataclass(frozen=True, slots=True)
class MailView:
    """A message in a list. `what` says in words what was done with it; `by` is the rule, the model or who asked."""

    short_id: str
    id: UUID
    account: str
    sent_at: datetime
    sender: str
    sender_name: str
    subject: str
    tier: str
    labels: tuple[str, ...]
    what: str
    by: str | None
    action_id: UUID | None


@dataclass(frozen=True, slots=True)
class FoundView:
    """A message that a search found, with the place in its text."""

    short_id: str
    id: UUID
    account: str
    sent_at: datetime
    sender: str
    subject: str
    labels: tuple[str, ...]
    excerpt: str


@dataclass(frozen=True, slots=True)
class FoundMails:
    """The newest matches; `more` if there are others. While `is_indexing`, older mail may be missing."""

    mail: Sequence[FoundView]
    more: bool
    is_indexing: bool


@dataclass(frozen=True, slots=True)
class MailText:
    """A message to read. `is_cut` if the text is longer."""

    short_id: str
    id: UUID
    account: str
    headers: Headers
    labels: tuple[str, ...]
    tier: str
    sent_at: datetime
    provider_message_id: str
    attachments: Sequence[AttachedFile]
    is_gone: bool
    text: str
    is_cut: bool


async def list_mail(
    database: Database,
    limit: int,
    since: datetime,
    *,
    account: str | None = None,
    tier: str | None = None,
    category: str | None = None,
    only_kept: bool = False,
) -> list[MailView]:
    """List the newest mail with what was done. Raises NotFound and BadInput."""
    if category is not None:
        chosen_categories([category], "--category")
    account_id = None if account is None else (await find_account(database, account)).id
    found = await database.run(mail_views.list_mail(limit, since, account_id, tier, only_kept, category))
    return [_listed(each) for each in found]


async def search_mail(database: Database, query: str, limit: int) -> FoundMails:
    """Search stored mail. Raise BadInput for a query that cannot be searched for."""
    page = await database.run(search.search_mail(read_query(query), database.dialect, limit))
    return FoundMails([_found(each) for each in page.found], page.following is not None, page.is_indexing)


async def read_mail(database: Database, name: str) -> MailText:
    """Read the message with this id of any kind."""
    id = await find_message(database, name)
    read = await database.run(search.read_mail(id))
    arrival = await database.run(mail_views.arrival_of(id))
    attached = await database.run(mail_views.attachments_of(id)) if arrival.has_attachment else []
    return MailText(
        short_id(id),
        id,
        read.account,
        tuple((name, value) for name, value in read.headers if name.lower() in SHOWN_HEADERS),
        read.labels,
        arrival.policy_tier,
        read.sent_at,
        arrival.provider_message_id,
        attached,
        read.is_gone,
        read.text,
        read.is_cut,
    )


def name_of(headers: Headers) -> str:
    """The name of the sender, as the message gives it; empty when there is none. Anybody may write any name."""
    return next((name for value in values(headers, "from") if (name := parseaddr(value)[0])), "")


def _listed(each: ListedMail) -> MailView:
    return MailView(
        short_id(each.id),
        each.id,
        each.account,
        each.sent_at,
        each.sender,
        name_of(each.headers),
        each.subject,
        each.policy_tier,
        each.labels,
        _what(each),
        _by(each),
        each.action_id,
    )


def _what(each: ListedMail) -> str:
    """The actions on a message in few words."""
    if each.action_type is None:
        return "not decided yet" if each.source is None else "kept"
    if each.action_state in (None, "completed") and each.undone is None:
        return phrases.done(each.action_type, each.parameters or {})
    state, _ = state_of(each.action_state or "completed", each.undone)
    return f"{phrases.asked(each.action_type, each.parameters or {})}: {state}"


def _by(each: ListedMail) -> str | None:
    match each.actor:
        case "user":
            return "you"
        case "agent":
            return "an agent"
        case _:
            return "the model" if each.source == "llm" else each.rule_name


def _found(each: FoundMail) -> FoundView:
    return FoundView(
        short_id(each.id),
        each.id,
        each.account,
        each.sent_at,
        each.sender,
        each.subject,
        each.labels,
        each.excerpt,
    )
