"""`users.messages` and its attachments."""

import base64

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.header_dates import moment_in
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.message import FORMATS, Message
from postroom_sandbox.mime import Mail
from postroom_sandbox.outgoing import LARGEST_MESSAGE
from postroom_sandbox.refusal import invalid
from postroom_sandbox.requests import json_body, known_fields, raw_in, text_in, texts_in, uploaded

MOST_AT_ONCE = 1_000

# Google's clients send back whole messages; only these fields matter in requests.
MESSAGE_FIELDS = (
    "id", "threadId", "labelIds", "snippet", "historyId", "internalDate", "payload", "sizeEstimate", "raw",
    "classificationLabelValues",
)  # fmt: skip


async def list_messages(call: Call) -> Json:
    parameters = call.parameters("q", "labelIds", "pageToken", "maxResults", "includeSpamTrash")
    q, labels, hidden = parameters.text("q"), parameters.texts("labelIds"), parameters.flag("includeSpamTrash")
    call.check_search(q)
    listing = ("messages", call.mailbox.owner, q, sorted(labels), hidden)
    before = call.account.pages.read(listing, parameters.text("pageToken"))
    shown, following, estimate = call.mailbox.page(parameters.page_size(), q, labels, hidden, before)
    answer: Json = {"resultSizeEstimate": estimate}
    if shown:
        answer["messages"] = [message.reference() for message in shown]
    if following:
        answer["nextPageToken"] = call.account.pages.make(listing, following)
    return answer


def requested_format(call: Call) -> tuple[str, frozenset[str]]:
    parameters = call.parameters("format", "metadataHeaders")
    only = frozenset(name.lower() for name in parameters.texts("metadataHeaders"))
    format = parameters.text("format").lower() or "full"
    if format not in FORMATS:
        raise invalid(f"Invalid value at 'format': {format}")
    call.check_format(format)
    return format, only


async def get_message(call: Call) -> Json:
    format, only = requested_format(call)
    return call.mailbox.get(call.named()).as_json(format, only)


async def get_attachment(call: Call) -> Json:
    call.parameters()
    content = call.mailbox.get(call.named("messageId")).mail.attachment(call.named())
    if content is None:
        raise invalid("Invalid attachment token")
    return {"size": len(content), "data": base64.urlsafe_b64encode(content).decode()}


async def delete_message(call: Call) -> Json:
    call.parameters()
    call.mailbox.delete(call.named())
    return {}


async def modify_message(call: Call) -> Json:
    call.parameters()
    add, remove = await label_change(call)
    return call.mailbox.modify(call.named(), add, remove).labelled()


async def label_change(call: Call) -> tuple[list[str], list[str]]:
    fields = await json_body(call.request, "addLabelIds", "removeLabelIds")
    add, remove = texts_in(fields, "addLabelIds"), texts_in(fields, "removeLabelIds")
    if not add and not remove:
        raise invalid("No label add or removes specified")
    return add, remove


async def trash_message(call: Call) -> Json:
    call.parameters()
    return call.mailbox.modify(call.named(), add=["TRASH"]).labelled()


async def untrash_message(call: Call) -> Json:
    call.parameters()
    return call.mailbox.modify(call.named(), remove=["TRASH"]).labelled()


async def batch_modify(call: Call) -> Json:
    """Change several messages. An invalid request changes nothing; missing messages are silently skipped."""
    call.parameters()
    fields = await json_body(call.request, "ids", "addLabelIds", "removeLabelIds")
    add, remove = texts_in(fields, "addLabelIds"), texts_in(fields, "removeLabelIds")
    if not add and not remove:
        raise invalid("No label add or removes specified")
    call.mailbox.labels.check_change(frozenset(add), frozenset(remove))
    for message in _present(call.mailbox, texts_in(fields, "ids")):
        call.mailbox.modify(message.id, add, remove)
    return {}


async def batch_delete(call: Call) -> Json:
    call.parameters()
    fields = await json_body(call.request, "ids")
    for message in _present(call.mailbox, texts_in(fields, "ids")):
        call.mailbox.delete(message.id)
    return {}


def _present(mailbox: Mailbox, ids: list[str]) -> list[Message]:
    if not ids:
        raise invalid("No message ids specified")
    if len(ids) > MOST_AT_ONCE:
        raise invalid(f"Too many message ids: at most {MOST_AT_ONCE}")
    return [mailbox.get(id) for id in dict.fromkeys(ids) if id in mailbox]


async def message_in(call: Call) -> tuple[Json, bytes]:
    """Parse a message in a request: its fields, and its bytes from `raw` or from an upload."""
    fields, media = await uploaded(call.request)
    known_fields(fields, *MESSAGE_FIELDS)
    raw = media if media is not None else raw_in(fields)
    return fields, checked_raw(raw)


def checked_raw(raw: bytes | None) -> bytes:
    if raw is None:
        raise invalid("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
    if len(raw) > LARGEST_MESSAGE:
        raise invalid(f"Message too large: at most {LARGEST_MESSAGE} bytes")
    return raw


async def send_message(call: Call) -> Json:
    call.parameters()
    fields, raw = await message_in(call)
    return call.account.outgoing.send(raw, text_in(fields, "threadId") or None).labelled()


async def insert_message(call: Call) -> Json:
    parameters = call.parameters("internalDateSource", "deleted")
    parameters.flag("deleted")
    return await _put_in(call, parameters.choice("internalDateSource", "receivedTime", "dateHeader"))


async def import_message(call: Call) -> Json:
    parameters = call.parameters("internalDateSource", "deleted", "neverMarkSpam", "processForCalendar")
    for name in ("deleted", "neverMarkSpam", "processForCalendar"):
        parameters.flag(name)
    return await _put_in(call, parameters.choice("internalDateSource", "dateHeader", "receivedTime"))


async def _put_in(call: Call, dated_by: str) -> Json:
    fields, raw = await message_in(call)
    labels = frozenset(texts_in(fields, "labelIds"))
    thread = text_in(fields, "threadId") or None
    written = moment_in(Mail(raw).header("Date")) if dated_by == "dateHeader" else None
    return call.mailbox.deliver(raw, labels, written, thread).labelled()


ENDPOINTS: dict[str, Endpoint] = {
    "messages.list": list_messages,
    "messages.get": get_message,
    "messages.attachments.get": get_attachment,
    "messages.delete": delete_message,
    "messages.modify": modify_message,
    "messages.trash": trash_message,
    "messages.untrash": untrash_message,
    "messages.batchModify": batch_modify,
    "messages.batchDelete": batch_delete,
    "messages.send": send_message,
    "messages.insert": insert_message,
    "messages.import": import_message,
}
