"""The facts about mail in files, as if an account had just received it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from postroom.core.mail.auto_reply import is_automatic
from postroom.core.mail.categories import categories_of
from postroom.core.mail.dates import written_at
from postroom.core.mail.headers import head_of, read_head, values
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import ParsedMessage
from postroom.core.mail.tiers import Known, answers_user, message_ids, sender_address
from postroom.core.rules.facts import MessageFacts, recipients

NEW_MAIL = frozenset({"INBOX", "UNREAD", "inbox", "unread"})


@dataclass(frozen=True, slots=True)
class FileHistory:
    """Knowledge from all files together: about the user, and when each sender first wrote.

    Without the user's addresses, their own mail is not recognized; contacts are None if none were given.
    """

    known: Known
    first_sent: Mapping[str, datetime]
    contacts: frozenset[str] | None = None


def read_history(mail: Iterable[bytes], user_addresses: frozenset[str], contacts: frozenset[str] | None) -> FileHistory:
    """Read the heads of all messages, in a pass before the one that decides."""
    sent_ids: set[str] = set()
    first: dict[str, datetime] = {}
    for raw in mail:
        headers, _ = read_head(head_of(raw))
        sender, sent_at = sender_address(headers), written_at(headers)
        if sender and sent_at is not None and sent_at < first.get(sender, datetime.max.replace(tzinfo=UTC)):
            first[sender] = sent_at
        if sender in user_addresses and not is_automatic(headers):
            sent_ids.update(id for value in values(headers, "message-id") for id in message_ids(value))
    return FileHistory(Known(user_addresses, contacts or frozenset(), sent_ids), first, contacts)


def facts_from_file(parsed: ParsedMessage, size: int, history: FileHistory | None = None) -> MessageFacts:
    """The facts about one message. Without the history, those that need it are not known."""
    subjects = values(parsed.headers, "subject")
    sender, sent_at = sender_address(parsed.headers), written_at(parsed.headers)
    known = history.known if history is not None else Known(frozenset())
    contacts = history.contacts if history is not None else None
    return MessageFacts(
        sender,
        subjects[0] if subjects else "",
        parsed.headers,
        NEW_MAIL,
        parsed.text,
        bool(parsed.attachments),
        recipients(parsed.headers),
        sent_at,
        size=size,
        attachments=tuple((each.filename, each.mime_type) for each in parsed.attachments),
        own_addresses=frozenset(known.user_addresses) or None,
        categories=frozenset(categories_of(IngestionFacts.of(parsed), known)),
        sender_in_contacts=None if contacts is None else sender in contacts,
        sender_seen_before=None if history is None else wrote_before(sender, sent_at, history.first_sent),
        reply_to_mine=answers_user(parsed.headers, known) if known.user_addresses else None,
    )


def wrote_before(sender: str, sent_at: datetime | None, first_sent: Mapping[str, datetime]) -> bool:
    """Whether a mail of the sender, whose first one was sent then, came before this one."""
    first = first_sent.get(sender)
    return first is not None and sent_at is not None and first < sent_at
