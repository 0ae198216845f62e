"""Every call of Gmail's API that we make, as data: what is sent, how the answer is parsed, and what its errors mean.

A call can be sent alone or as one part of a batch; it is the same either way.
"""

import base64
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar, cast

import orjson

from postroom.core.actions.permits import Permit
from postroom.core.errors import BadInput
from postroom.mailboxes.gmail import methods
from postroom.mailboxes.gmail.errors import (
    BadAnswer,
    DraftNotFound,
    GmailError,
    HistoryExpired,
    LabelExists,
    MessageNotFound,
    NotFromGmail,
    ThreadNotFound,
)
from postroom.mailboxes.gmail.methods import Method
from postroom.mailboxes.gmail.refusals import refusal
from postroom.mailboxes.gmail.resources import (
    Draft,
    DraftPage,
    DraftRef,
    Fields,
    HistoryPage,
    Label,
    Message,
    MessagePage,
    MessageRef,
    Profile,
    SendAs,
    Thread,
    Watch,
    read_draft,
    read_draft_page,
    read_draft_ref,
    read_history_page,
    read_label,
    read_labels,
    read_message,
    read_message_page,
    read_message_ref,
    read_profile,
    read_send_as,
    read_thread,
    read_watch,
)
from postroom.mailboxes.gmail.wire import Answer, Request

Format = Literal["full", "metadata", "minimal", "raw"]
HistoryType = Literal["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"]
Parameters = Mapping[str, str | int | list[str]]
T = TypeVar("T")

# What Google takes at most: results on a page, bytes of a mail to be sent.
MOST_RESULTS = 500
LARGEST_SENT = 36_700_160
# A longer mail is uploaded beside the JSON instead of in it.
LARGEST_IN_JSON = 4 << 20

_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call. `on` maps statuses to special errors of this call."""

    method: Method
    path: str
    read: Callable[[Fields], T]
    parameters: Parameters = field(default_factory=dict[str, "str | int | list[str]"])
    content: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"
    on: Mapping[int, GmailError] = field(default_factory=dict[int, GmailError])
    is_upload: bool = False
    permit: Permit | None = None
    """The permit it is made under, if it changes something."""

    def under(self, permit: Permit | None) -> "Call[T]":
        """The same call, under this permit."""
        return replace(self, permit=permit)

    def request(self, root: str) -> Request:
        """The request for this call alone. `root` goes before its path."""
        path = f"/upload{root}{self.path}" if self.is_upload else root + self.path
        method = self.method
        return Request(method.name, method.verb, path, method.largest, self.parameters, self.content, self.content_type)

    def verdict(self, answer: Answer) -> T | GmailError:
        """The outcome: the result, or the error."""
        if not 200 <= answer.status < 300:
            special = self.on.get(answer.status)
            return special or refusal(self.method, answer.status, answer.headers, answer.content)
        try:
            return self.read({} if self.read is nothing else _fields(answer.content))
        except (BadAnswer, NotFromGmail) as error:
            return error


def get_profile() -> Call[Profile]:
    return Call(methods.GET_PROFILE, "/profile", read_profile)


def watch(topic: str, label_ids: Collection[str] = (), exclude: bool = False) -> Call[Watch]:
    body: dict[str, object] = {"topicName": topic}
    if label_ids:
        body |= {"labelIds": sorted(label_ids), "labelFilterBehavior": "exclude" if exclude else "include"}
    return Call(methods.WATCH, "/watch", read_watch, content=_json(body))


def list_messages(
    q: str, label_ids: Collection[str], page_token: str | None, max_results: int, include_spam_trash: bool
) -> Call[MessagePage]:
    parameters = _without_empty(
        q=q,
        labelIds=sorted(label_ids),
        pageToken=page_token,
        maxResults=_results(max_results),
        includeSpamTrash="true" if include_spam_trash else None,
    )
    return Call(methods.LIST_MESSAGES, "/messages", read_message_page, parameters)


def get_message(message_id: str, format: Format = "full", metadata_headers: Collection[str] = ()) -> Call[Message]:
    path = f"/messages/{_in_path('message_id', message_id)}"
    parameters = _without_empty(format=format, metadataHeaders=sorted(metadata_headers))
    return Call(methods.GET_MESSAGE, path, read_message, parameters, on={404: MessageNotFound(message_id)})


def modify_message(message_id: str, add: Collection[str], remove: Collection[str]) -> Call[MessageRef]:
    body = _json({"addLabelIds": sorted(add), "removeLabelIds": sorted(remove)})
    return _change(methods.MODIFY_MESSAGE, message_id, "/modify", body)


def trash_message(message_id: str) -> Call[MessageRef]:
    return _change(methods.TRASH_MESSAGE, message_id, "/trash")


def untrash_message(message_id: str) -> Call[MessageRef]:
    return _change(methods.UNTRASH_MESSAGE, message_id, "/untrash")


def delete_message(message_id: str) -> Call[None]:
    path = f"/messages/{_in_path('message_id', message_id)}"
    return Call(methods.DELETE_MESSAGE, path, nothing, on={404: MessageNotFound(message_id)})


def create_draft(raw: bytes, thread_id: str | None = None) -> Call[DraftRef]:
    content, content_type, is_upload = _mail(raw, {"threadId": thread_id} if thread_id else {})
    parameters = _without_empty(uploadType="multipart" if is_upload else None)
    return Call(methods.CREATE_DRAFT, "/drafts", read_draft_ref, parameters, content, content_type, is_upload=is_upload)


def get_draft(draft_id: str, format: Format = "full") -> Call[Draft]:
    path = f"/drafts/{_in_path('draft_id', draft_id)}"
    return Call(methods.GET_DRAFT, path, read_draft, {"format": format}, on={404: DraftNotFound(draft_id)})


def list_drafts(q: str, page_token: str | None, max_results: int) -> Call[DraftPage]:
    parameters = _without_empty(q=q, pageToken=page_token, maxResults=_results(max_results))
    return Call(methods.LIST_DRAFTS, "/drafts", read_draft_page, parameters)


def send_draft(draft_id: str) -> Call[MessageRef]:
    body = _json({"id": _in_path("draft_id", draft_id)})
    missing = DraftNotFound(draft_id)
    return Call(methods.SEND_DRAFT, "/drafts/send", read_message_ref, content=body, on={404: missing})


def delete_draft(draft_id: str) -> Call[None]:
    path = f"/drafts/{_in_path('draft_id', draft_id)}"
    return Call(methods.DELETE_DRAFT, path, nothing, on={404: DraftNotFound(draft_id)})


def get_thread(thread_id: str, format: Format = "full", metadata_headers: Collection[str] = ()) -> Call[Thread]:
    path = f"/threads/{_in_path('thread_id', thread_id)}"
    parameters = _without_empty(format=format, metadataHeaders=sorted(metadata_headers))
    return Call(methods.GET_THREAD, path, read_thread, parameters, on={404: ThreadNotFound(thread_id)})


def list_history(
    start_history_id: int,
    page_token: str | None,
    history_types: Collection[HistoryType],
    label_id: str | None,
    max_results: int | None,
) -> Call[HistoryPage]:
    parameters = _without_empty(
        startHistoryId=str(start_history_id),
        pageToken=page_token,
        historyTypes=sorted(history_types),
        labelId=label_id,
        maxResults=None if max_results is None else _results(max_results),
    )
    expired = HistoryExpired(start_history_id)
    return Call(methods.LIST_HISTORY, "/history", read_history_page, parameters, on={404: expired})


def list_labels() -> Call[tuple[Label, ...]]:
    return Call(methods.LIST_LABELS, "/labels", read_labels)


def create_label(name: str, label_list_visibility: str, message_list_visibility: str) -> Call[Label]:
    body = {
        "name": name,
        "labelListVisibility": label_list_visibility,
        "messageListVisibility": message_list_visibility,
    }
    exists = LabelExists(methods.CREATE_LABEL.name, 409, "aborted", "use the existing label, or another name")
    return Call(methods.CREATE_LABEL, "/labels", read_label, content=_json(body), on={409: exists})


def list_send_as() -> Call[tuple[SendAs, ...]]:
    return Call(methods.LIST_SEND_AS, "/settings/sendAs", read_send_as)


def _change(method: Method, message_id: str, verb: str, content: bytes | None = None) -> Call[MessageRef]:
    path = f"/messages/{_in_path('message_id', message_id)}{verb}"
    return Call(method, path, read_message_ref, content=content, on={404: MessageNotFound(message_id)})


def _mail(raw: bytes, fields: dict[str, object]) -> tuple[bytes, str, bool]:
    """A mail to be sent: the body, its type, and whether it is an upload."""
    if len(raw) > LARGEST_SENT:
        raise BadInput("raw", f"the mail has {len(raw)} bytes", f"Gmail sends at most {LARGEST_SENT}")
    if len(raw) <= LARGEST_IN_JSON:
        fields = {**fields, "raw": base64.urlsafe_b64encode(raw).decode()}
        return _json({"message": fields}), "application/json", False
    boundary = secrets.token_hex(16)
    content = b"".join(
        (
            f"--{boundary}\r\nContent-Type: application/json\r\n\r\n".encode(),
            _json({"message": fields}),
            f"\r\n--{boundary}\r\nContent-Type: message/rfc822\r\n\r\n".encode(),
            raw,
            f"\r\n--{boundary}--\r\n".encode(),
        )
    )
    return content, f'multipart/related; boundary="{boundary}"', True


def _json(body: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        pass
    raise BadInput("text", "contains half a character", "give text that is valid Unicode")


def nothing(fields: Fields) -> None:
    """For calls that Gmail answers with an empty body."""


def _without_empty(**parameters: str | int | list[str] | None) -> dict[str, str | int | list[str]]:
    """The parameters that have a value."""
    return {name: value for name, value in parameters.items() if value not in (None, "", [])}


def _results(number: int) -> int:
    if not 1 <= number <= MOST_RESULTS:
        raise BadInput("max_results", f"{number} is not possible", f"use 1 to {MOST_RESULTS}")
    return number


def _in_path(field: str, id: str) -> str:
    if not _ID.fullmatch(id):
        raise BadInput(field, f"{id!r} is not an id of Gmail", "give the id as Gmail lists it")
    return id


def _fields(content: bytes) -> Fields:
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise NotFromGmail("it is not a JSON object")
    return cast("Fields", answer)
