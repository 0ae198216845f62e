"""Mail in files as if an account had just received it: the same path to a decision that live mail takes.

The connector's own code chooses tiers and makes an envelope, and the switchboard's reads it; nothing is stored.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.mail.accounts import endpoint_of
from postroom.core.mail.addresses import addresses
from postroom.core.mail.auto_reply import AUTOMATIC_HEADERS, is_automatic
from postroom.core.mail.dates import written_at
from postroom.core.mail.files import MailFile
from postroom.core.mail.headers import Headers, head_of, read_head, values
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionDecision, IngestionPolicy
from postroom.core.mail.message import read_mail
from postroom.core.mail.mime import ParsedMessage, parse_message
from postroom.core.mail.providers import PROVIDERS
from postroom.core.mail.stored_categories import stored_categories
from postroom.core.mail.tiers import Assignment, Known, message_ids, sender_address
from postroom.core.queue.envelope import parse_envelope
from postroom.core.rules.facts import MessageFacts, recipients
from postroom.core.rules.file_facts import wrote_before
from postroom.mailboxes.following.envelopes import prepare
from postroom.mailboxes.following.source import ReadMessage
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import StoredMessage, with_derived

ANY_ACCOUNT = UUID(int=0)
NEW_MAIL = frozenset({"INBOX", "UNREAD"})
_OF_HISTORY = frozenset({b"from", b"date", b"to", b"cc", b"bcc", b"delivered-to", b"message-id"}) | {
    name.lower().encode() for name in AUTOMATIC_HEADERS
}
_NEVER = datetime.max.replace(tzinfo=UTC)

Progress = Callable[[int], None]


class IncomingMessage(NamedTuple):
    """A message with the labels it arrived with, and when; without that, its own date counts. `is_in_inbox` tells
    whether it is still there.
    """

    mail: MailFile
    labels: frozenset[str] = NEW_MAIL
    at: datetime | None = None
    is_in_inbox: bool = True


class _Sent(NamedTuple):
    """A message that the user may have sent: by whom, its ids, and to whom."""

    sender: str
    ids: tuple[str, ...]
    recipients: frozenset[str]


class SentMail(NamedTuple):
    """The ids of the messages that the user sent, and the people whom the user wrote to."""

    ids: frozenset[str]
    correspondents: frozenset[str]


class MailHistory:
    """Knowledge from the heads of all messages together. Without the user's addresses, everybody's sent mail is kept:
    anybody may turn out to be the user.
    """

    def __init__(self, users: frozenset[str] = frozenset()) -> None:
        self.first_sent: dict[str, datetime] = {}
        self.senders: Counter[str] = Counter()
        self.recipients: Counter[str] = Counter()
        """How many messages name each address in To, Cc or Delivered-To."""
        self._users = users
        self._sent: list[_Sent] = []

    def add(self, raw: bytes) -> None:
        headers, _ = read_head(head_of(raw), _OF_HISTORY)
        sender, sent_at = sender_address(headers), written_at(headers)
        if sender and sent_at is not None and sent_at < self.first_sent.get(sender, _NEVER):
            self.first_sent[sender] = sent_at
        self.senders[sender] += 1
        named = _addresses_in(headers, "to", "cc")
        self.recipients.update(named | _addresses_in(headers, "delivered-to"))
        if (not self._users or sender in self._users) and not is_automatic(headers):
            ids = tuple(id for value in values(headers, "message-id") for id in message_ids(value))
            self._sent.append(_Sent(sender, ids, named | _addresses_in(headers, "bcc")))

    def sent_by(self, mine: frozenset[str]) -> SentMail:
        sent = [each for each in self._sent if each.sender in mine]
        people = frozenset(address for each in sent for address in each.recipients)
        return SentMail(frozenset(id for each in sent for id in each.ids), people - mine)


def read_history(
    mail: Iterable[IncomingMessage], users: frozenset[str] = frozenset(), progress: Progress = lambda _number: None
) -> MailHistory:
    """Read the heads of all messages, in a pass before the one that decides."""
    history = MailHistory(users)
    for number, each in enumerate(mail, 1):
        history.add(each.mail.raw)
        progress(number)
    return history


def _addresses_in(headers: Headers, *names: str) -> frozenset[str]:
    return frozenset(each for name in names for value in values(headers, name) for each in addresses(value))


@dataclass(frozen=True, slots=True)
class Recipient:
    """The mailbox that the mail is for: its account, its owner's addresses, and what is known about other people.

    Contacts are None if nobody named any and no mail of the user is there: then it is not known who is one.
    """

    email: str
    known: Known
    contacts: frozenset[str] | None = None
    first_sent: dict[str, datetime] = field(default_factory=dict[str, datetime])
    account_id: UUID = ANY_ACCOUNT
    filters: IngestionPolicy = DEFAULT_POLICY


class Arrival(NamedTuple):
    """One message as it arrives: its tiers, and the message as it would be stored; None if a filter skips it."""

    parsed: ParsedMessage
    assignment: Assignment
    ingestion: IngestionDecision
    message: StoredMessage | None
    at: datetime
    labels: frozenset[str] = NEW_MAIL


def arrive(incoming: IncomingMessage, recipient: Recipient, now: datetime) -> Arrival:
    """The message as it arrives in the mailbox."""
    raw, labels = incoming.mail.raw, incoming.labels
    parsed = parse_message(raw)
    sent_at = incoming.at or written_at(parsed.headers)
    source = ReadMessage("preview", labels, sent_at or now, len(raw), raw, None)
    endpoint = endpoint_of(next(iter(PROVIDERS)), recipient.email)  # a file does not tell
    ready = prepare(source, endpoint, recipient.known, sent_at or now, recipient.filters, parsed)
    stored = None
    if ready.envelope is not None:
        envelope = parse_envelope(ready.envelope)
        content = read_mail(envelope)
        categories = stored_categories(content, recipient.email, ready.assignment.tier)
        facts = MessageFacts(
            content.sender,
            content.subject,
            content.headers,
            labels | {each.casefold() for each in labels},
            content.body_text,
            content.has_attachment,
            sent_at=sent_at,
            size=content.size,
            attachments=content.attachments,
            categories=frozenset(categories),
            sender_in_contacts=None
            if recipient.contacts is None
            else content.sender_doubt is None and content.sender in recipient.contacts,
            sender_seen_before=wrote_before(content.sender, sent_at, recipient.first_sent),
            reply_to_mine=content.reply_to_mine,
        )
        facts = with_derived(facts, recipient.email, recipients(content.headers))
        stored = StoredMessage(
            new_id(),
            recipient.account_id,
            "preview",
            facts,
            envelope.control.ingestion_tier,
            recipient.email,
            sender_doubt=content.sender_doubt,
        )
    return Arrival(parsed, ready.assignment, ready.decision, stored, sent_at or now, labels)
