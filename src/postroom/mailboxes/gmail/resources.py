"""The resources in Gmail's answers as frozen types, parsed from its JSON.

Fields that can contain mail are left out of `repr`, so that a log line about a message never reveals its content.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, cast

from postroom.core import base64url
from postroom.core.mail.headers import Headers
from postroom.core.mail.mailbox import MailboxLabel
from postroom.core.mail.mime import ParsedMessage
from postroom.mailboxes.gmail import reading
from postroom.mailboxes.gmail.errors import BadAnswer

Fields = Mapping[str, object]

# Hostile mail nests multiparts by the hundred. Anything deeper than real mail is left out.
DEEPEST_PART = 64
# A 64-bit number as text.
LONGEST_NUMBER = 20


@dataclass(frozen=True)
class Profile:
    email_address: str
    messages_total: int
    threads_total: int
    history_id: int


@dataclass(frozen=True)
class Label:
    """A label. Only labels.get returns the counts."""

    id: str
    name: str
    type: Literal["system", "user"]
    label_list_visibility: str | None = None
    message_list_visibility: str | None = None
    messages_total: int | None = None
    messages_unread: int | None = None

    def as_mailbox_label(self) -> MailboxLabel:
        return MailboxLabel(self.id, self.name, self.type == "system")


@dataclass(frozen=True)
class MessageRef:
    """A message as lists and history name it. `label_ids` is empty if Gmail does not list them."""

    id: str
    thread_id: str
    label_ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Header:
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Body:
    """A part's content, decoded. Gmail has already turned text into UTF-8, whatever charset the part's header names."""

    size: int
    data: bytes | None = field(default=None, repr=False)
    attachment_id: str | None = None


@dataclass(frozen=True)
class GmailPart:
    part_id: str
    mime_type: str
    filename: str = field(repr=False)
    headers: tuple[Header, ...]
    body: Body
    parts: tuple["GmailPart", ...]


@dataclass(frozen=True)
class Message:
    """A message in any format: `payload` is set for full and metadata, `raw` for raw. `snippet` is plain text."""

    id: str
    thread_id: str
    label_ids: frozenset[str]
    history_id: int
    internal_date: datetime
    size_estimate: int
    snippet: str = field(repr=False)
    payload: GmailPart | None = field(default=None, repr=False)
    raw: bytes | None = field(default=None, repr=False)

    @property
    def headers(self) -> tuple[Header, ...]:
        return self.payload.headers if self.payload else ()

    def header(self, name: str) -> str | None:
        """The first header of this name; case is ignored."""
        wanted = name.lower()
        return next((header.value for header in self.headers if header.name.lower() == wanted), None)

    def parsed(self) -> ParsedMessage:
        return reading.parsed_from(self)

    def readable_headers(self) -> Headers:
        return reading.readable_headers(self)


@dataclass(frozen=True)
class MessagePage:
    messages: tuple[MessageRef, ...]
    next_page_token: str | None
    result_size_estimate: int

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True)
class Thread:
    """A conversation, its messages in Gmail's order, oldest first."""

    id: str
    history_id: int
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class DraftRef:
    """A draft as drafts.create and drafts.list name it."""

    id: str
    message: MessageRef


@dataclass(frozen=True)
class Draft:
    id: str
    message: Message


@dataclass(frozen=True)
class DraftPage:
    drafts: tuple[DraftRef, ...]
    next_page_token: str | None

    def __len__(self) -> int:
        return len(self.drafts)


@dataclass(frozen=True)
class Watch:
    """How long Gmail reports changes, and from which history id on."""

    history_id: int
    expires_at: datetime


@dataclass(frozen=True)
class SendAs:
    """An address that the user may send from. Apart from the mailbox's own, only verified ones belong to the user."""

    address: str
    is_verified: bool
    name: str = ""


@dataclass(frozen=True)
class LabelChange:
    message: MessageRef
    label_ids: frozenset[str]


@dataclass(frozen=True)
class HistoryRecord:
    id: int
    messages_added: tuple[MessageRef, ...] = ()
    messages_deleted: tuple[MessageRef, ...] = ()
    labels_added: tuple[LabelChange, ...] = ()
    labels_removed: tuple[LabelChange, ...] = ()


@dataclass(frozen=True)
class HistoryPage:
    records: tuple[HistoryRecord, ...]
    history_id: int
    next_page_token: str | None

    def __len__(self) -> int:
        return len(self.records)


def read_profile(fields: Fields) -> Profile:
    return Profile(
        email_address=_text(fields, "emailAddress"),
        messages_total=_number(fields, "messagesTotal", 0),
        threads_total=_number(fields, "threadsTotal", 0),
        history_id=_number(fields, "historyId"),
    )


def read_label(fields: Fields) -> Label:
    # Google leaves `type` out of the answer to labels.create: a created label is the user's.
    kind = "system" if _text(fields, "type", "user") == "system" else "user"
    return Label(
        id=_text(fields, "id"),
        name=_text(fields, "name"),
        type=kind,
        label_list_visibility=_text(fields, "labelListVisibility", "") or None,
        message_list_visibility=_text(fields, "messageListVisibility", "") or None,
        messages_total=_number(fields, "messagesTotal") if "messagesTotal" in fields else None,
        messages_unread=_number(fields, "messagesUnread") if "messagesUnread" in fields else None,
    )


def read_labels(fields: Fields) -> tuple[Label, ...]:
    return tuple(read_label(label) for label in _objects(fields, "labels"))


def read_message_ref(fields: Fields) -> MessageRef:
    return MessageRef(_text(fields, "id"), _text(fields, "threadId"), _texts(fields, "labelIds"))


def read_message_page(fields: Fields) -> MessagePage:
    return MessagePage(
        messages=tuple(read_message_ref(message) for message in _objects(fields, "messages")),
        next_page_token=_text(fields, "nextPageToken", "") or None,
        result_size_estimate=_number(fields, "resultSizeEstimate", 0),
    )


def read_message(fields: Fields) -> Message:
    payload = _object(fields, "payload")
    raw = fields.get("raw")
    return Message(
        id=_text(fields, "id"),
        thread_id=_text(fields, "threadId"),
        label_ids=_texts(fields, "labelIds"),
        history_id=_number(fields, "historyId"),
        internal_date=_moment(fields, "internalDate"),
        size_estimate=_number(fields, "sizeEstimate", 0),
        snippet=html.unescape(_text(fields, "snippet", "")),
        payload=None if payload is None else _part(payload, depth=0),
        raw=None if raw is None else _bytes(fields, "raw"),
    )


def read_thread(fields: Fields) -> Thread:
    return Thread(
        id=_text(fields, "id"),
        history_id=_number(fields, "historyId", 0),
        messages=tuple(read_message(message) for message in _objects(fields, "messages")),
    )


def read_draft_ref(fields: Fields) -> DraftRef:
    return DraftRef(_text(fields, "id"), read_message_ref(_object(fields, "message") or {}))


def read_draft(fields: Fields) -> Draft:
    return Draft(_text(fields, "id"), read_message(_object(fields, "message") or {}))


def read_draft_page(fields: Fields) -> DraftPage:
    return DraftPage(
        drafts=tuple(read_draft_ref(draft) for draft in _objects(fields, "drafts")),
        next_page_token=_text(fields, "nextPageToken", "") or None,
    )


def read_watch(fields: Fields) -> Watch:
    return Watch(_number(fields, "historyId"), _moment(fields, "expiration"))


def read_send_as(fields: Fields) -> tuple[SendAs, ...]:
    return tuple(
        SendAs(
            address=_text(each, "sendAsEmail"),
            is_verified=each.get("isPrimary") is True or each.get("verificationStatus") == "accepted",
            name=_text(each, "displayName", ""),
        )
        for each in _objects(fields, "sendAs")
    )


def read_history_page(fields: Fields) -> HistoryPage:
    return HistoryPage(
        records=tuple(_history_record(record) for record in _objects(fields, "history")),
        history_id=_number(fields, "historyId"),
        next_page_token=_text(fields, "nextPageToken", "") or None,
    )


def _history_record(fields: Fields) -> HistoryRecord:
    return HistoryRecord(
        id=_number(fields, "id"),
        messages_added=_messages_of(fields, "messagesAdded"),
        messages_deleted=_messages_of(fields, "messagesDeleted"),
        labels_added=_label_changes(fields, "labelsAdded"),
        labels_removed=_label_changes(fields, "labelsRemoved"),
    )


def _messages_of(fields: Fields, key: str) -> tuple[MessageRef, ...]:
    return tuple(read_message_ref(_object(change, "message") or {}) for change in _objects(fields, key))


def _label_changes(fields: Fields, key: str) -> tuple[LabelChange, ...]:
    return tuple(
        LabelChange(read_message_ref(_object(change, "message") or {}), _texts(change, "labelIds"))
        for change in _objects(fields, key)
    )


def _part(fields: Fields, depth: int) -> GmailPart:
    body = _object(fields, "body") or {}
    children = _objects(fields, "parts") if depth < DEEPEST_PART else []
    return GmailPart(
        part_id=_text(fields, "partId", ""),
        mime_type=_text(fields, "mimeType", ""),
        filename=_text(fields, "filename", ""),
        headers=tuple(Header(_text(item, "name"), _text(item, "value", "")) for item in _objects(fields, "headers")),
        body=Body(
            size=_number(body, "size", 0),
            data=None if body.get("data") is None else _bytes(body, "data"),
            attachment_id=_text(body, "attachmentId", "") or None,
        ),
        parts=tuple([_part(child, depth + 1) for child in children]),
    )


def _text(fields: Fields, key: str, default: str | None = None) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise BadAnswer(f"its field {key} is {'missing' if value is None else 'not a text'}")
    return value


def _texts(fields: Fields, key: str) -> frozenset[str]:
    return frozenset(value for value in _list(fields, key) if isinstance(value, str))


def _number(fields: Fields, key: str, default: int | None = None) -> int:
    """Google writes 64-bit numbers as strings, for readers that only have floating point."""
    value = fields.get(key, default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= LONGEST_NUMBER:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadAnswer(f"its field {key} is {'missing' if value is None else 'not a number'}")
    return value


def _moment(fields: Fields, key: str) -> datetime:
    milliseconds = _number(fields, key)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        raise BadAnswer(f"its field {key} is out of range") from None


def _bytes(fields: Fields, key: str) -> bytes:
    text = _text(fields, key)
    try:
        return base64url.decode(text)
    except ValueError:
        pass
    # Raised out here, so that the failed text is not kept with the error.
    raise BadAnswer(f"its field {key} is not base64")


def _object(fields: Fields, key: str) -> Fields | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, dict):
        raise BadAnswer(f"its field {key} is not an object")
    return cast("Fields | None", value)


def _objects(fields: Fields, key: str) -> list[Fields]:
    values = _list(fields, key)
    if not all(isinstance(value, dict) for value in values):
        raise BadAnswer(f"its field {key} is not a list of objects")
    return cast("list[Fields]", values)


def _list(fields: Fields, key: str) -> list[object]:
    value = fields.get(key, [])
    if not isinstance(value, list):
        raise BadAnswer(f"its field {key} is not a list")
    return cast("list[object]", value)
