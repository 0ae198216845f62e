"""Accounts, threads and messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.label_changes import FOLDER
from postroom.core.errors import NotFound
from postroom.core.jobs.job import NewJob
from postroom.core.lifecycle import AccountState
from postroom.core.mail.message import MailContent
from postroom.core.mail.own_mail import is_own_mail
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.mail.tiers import Known
from postroom.core.queue.envelope import IngestionTier, PolicyTier
from postroom.core.rules.facts import MessageFacts, recipients
from postroom.core.rules.learning import list_of
from postroom.core.rules.rule import DecisionSource
from postroom.store.backfill import backfill_spend
from postroom.store.engine.codecs import as_uuid, from_json, rows_text
from postroom.store.engine.database import Rows, Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_row
from postroom.store.intake import inbox
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.mail.unknown_labels import noticing_labels

ACTS_ON_ALL = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Account:
    """A mailbox that Postroom works on."""

    id: UUID
    provider: str
    endpoint_identity: str
    email: str
    state: AccountState


@transaction
def keep_account(
    id: UUID,
    provider: str,
    endpoint_identity: str,
    email: str,
    now: datetime,
    acts_from: datetime | None = ACTS_ON_ALL,
) -> Script[Account]:
    """The account of this endpoint, created if new: then it acts on mail since `acts_from`, by default on all."""
    yield sql("insert_account", id, provider, endpoint_identity, email, acts_from, now)
    return (yield from account_of.script(endpoint_identity))


@query
def account_of(endpoint_identity: str) -> Script[Account]:
    account = read_first(Account, (yield sql("select_account", endpoint_identity)))
    if account is None:
        raise NotFound(f"there is no account for {endpoint_identity}")
    return account


class NewMessage(NamedTuple):
    """A leased message about to be stored. `ids` are those of a new thread and a new message; `classify` makes the job
    of this id for the stored message.
    """

    leased: inbox.LeasedMessage
    account: Account
    ids: tuple[UUID, UUID]
    mail: MailContent
    job_id: UUID
    classify: Callable[[UUID], NewJob]
    categories: tuple[str, ...] = ()
    is_backfilled: bool = False
    is_on_demand: bool = False


@transaction
def store_messages(messages: Sequence[NewMessage], now: datetime) -> Script[None]:
    """Store leased messages with their threads, enqueue jobs to classify them in this order, and end them in the inbox:
    all or none. Raises LeaseLost if one of them is no longer held.

    A message already stored only ends in the inbox, unless only its metadata was stored and this one is full.
    """
    jobs: list[NewJob] = []
    found: list[tuple[UUID, str, int]] = []
    for each in messages:
        inserted = yield from _insert_message(each, now)
        if each.categories and inserted:
            yield sql("insert_message_categories", inserted[0], list(each.categories))
        if each.is_backfilled:
            yield from backfill_spend.storing(each.leased.id, inserted, now)
            if inserted:
                found += [(each.leased.id, name, each.mail.sent_at.astimezone(UTC).year) for name in each.categories]
        jobs += [each.classify(id) for id in inserted]
    if found:
        yield sql("add_backfill_found", rows_text(found))
    if jobs:
        yield from enqueue_many.script(jobs, now)
    yield from inbox.ending_all([each.leased for each in messages], "done", now)


def _insert_message(new: NewMessage, now: datetime) -> Script[list[UUID]]:
    """Insert the row and return its id; None if the message is stored already."""
    leased, account, (thread_id, message_id), mail = new[:4]
    threads = yield sql(
        "upsert_thread", thread_id, account.id, mail.provider_thread_id, mail.subject, mail.sent_at, now
    )
    ids = {"id": message_id, "account_id": account.id, "thread_id": as_uuid(threads[0][0]), "inbox_id": leased.id}
    inserted = yield fill("insert_message", mail, leased, new, **ids, list_id=list_of(mail.headers), now=now)
    if inserted:
        yield from noticing_labels(account.id, mail.labels, now)
    return [as_uuid(id) for (id, *_) in inserted]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message, as needed for decisions."""

    id: UUID
    account_id: UUID
    provider_message_id: str
    facts: MessageFacts
    ingestion_tier: IngestionTier
    """`metadata` has no text: only rules decide about it, and no model is asked."""
    account_email: str = ""
    provider_thread_id: str = ""
    is_gone: bool = False
    """Whether the message is known to be gone from the mailbox."""
    backfill_job_id: UUID | None = None
    on_demand: bool = False
    """Whether it is here because somebody searched for it; no model is asked."""
    may_act: bool = True
    """False for old mail that was brought in later, and for mail from before its owner switched acting on: decisions
    about it are only recorded.
    """
    policy_tier: PolicyTier = "default"
    stored_at: datetime | None = None
    folders: frozenset[str] = frozenset()
    """The labels of its mailbox that are folders, by id and by casefolded name: a message leaves the inbox for one."""
    was_snoozed: bool = False
    """Whether the model or an agent has snoozed it before without a person's approval, or is about to."""
    sender_doubt: SenderDoubt | None = None

    @property
    def own_addresses(self) -> frozenset[str]:
        return frozenset({self.account_email.lower()})

    @property
    def is_own(self) -> bool:
        """Whether the user sent it, and not to themselves. Its labels do not tell: they are those of today."""
        if self.sender_doubt is not None or self.facts.sender not in self.own_addresses:
            return False
        return is_own_mail(self.facts.headers, (), Known(self.own_addresses))


class LastDecision(NamedTuple):
    """The current decision: its generation, and who made it."""

    generation: int
    source: DecisionSource


@query
def load_message(id: UUID) -> Script[StoredMessage]:
    for row in (yield sql("select_message", id)).by_name():
        return _message(row, (yield sql("select_labels", as_uuid(row["account_id"]))))
    raise NotFound(f"there is no message {id}")


@query
def find_message_id(account_id: UUID, gmail_id: str) -> Script[UUID | None]:
    """The message of the account with this Gmail id; None if it is not stored."""
    rows = yield sql("select_message_id", account_id, gmail_id)
    return as_uuid(rows[0][0]) if rows else None


@query
def last_provider_id(account_id: UUID) -> Script[str | None]:
    """The last, in the order of letters, of the provider's ids of the account's messages; None if there are none."""
    return (yield sql("select_last_provider_id", account_id))[0][0]


def sender_and_labels(id: UUID) -> Script[tuple[str, frozenset[str]]]:
    """Part of a transaction: the sender and labels of a stored message, for protection; labels by id and by name."""
    rows = yield sql("select_sender_and_labels", id)
    if not rows:
        raise NotFound(f"there is no message {id}")
    account_id, sender, labels = rows[0]
    return sender, _with_names(frozenset(from_json(labels)), (yield sql("select_labels", as_uuid(account_id))))


def _with_names(held: frozenset[str], known: Rows) -> frozenset[str]:
    return held | {name.casefold() for id, name, *_ in known if id in held}


@query
def last_decision(message_id: UUID) -> Script[LastDecision | None]:
    rows = yield sql("select_last_decision", message_id)
    return read_first(LastDecision, rows)


def _message(row: Mapping[str, Any], labels_known: Rows) -> StoredMessage:
    held = read_row(MessageFacts, row)
    labels = _with_names(held.labels, labels_known)
    facts = with_derived(replace(held, labels=labels), row["account_email"], recipients(held.headers))
    return read_row(StoredMessage, row, facts=facts, folders=_folders(labels_known))


def _folders(labels: Rows) -> frozenset[str]:
    found = [(id, name) for id, name, *_ in labels if id.startswith(FOLDER)]
    return frozenset(each for id, name in found for each in (id, name.casefold()))


def with_derived(facts: MessageFacts, account_email: str, to: tuple[str, ...]) -> MessageFacts:
    """The facts of a stored message with those that follow from other columns.

    Of mail from before the names of attachments were stored, they are known only if it has none.
    """
    attachments = () if facts.attachments is None and not facts.has_attachment else facts.attachments
    return replace(facts, to=to, own_addresses=frozenset({account_email.lower()}), attachments=attachments)
