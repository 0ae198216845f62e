"""A client of Gmail's REST API: one method per call, typed results, every failure one of `errors`.

It does not retry, wait or refresh: a failed job comes back by itself, and the token is asked for anew at every call.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import quote

import httpx2
import orjson

from postroom.core.errors import BadInput
from postroom.gmail.errors import BadAnswer, GmailError, HistoryExpired, LabelExists, MessageNotFound, Unreachable
from postroom.gmail.refusals import refusal
from postroom.gmail.resources import (
    Fields,
    HistoryPage,
    Label,
    Message,
    MessagePage,
    Profile,
    read_history_page,
    read_label,
    read_labels,
    read_message,
    read_message_page,
    read_message_ref,
    read_profile,
)

GOOGLE = "https://gmail.googleapis.com"

Format = Literal["full", "metadata", "minimal", "raw"]
HistoryType = Literal["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"]
Parameters = Mapping[str, str | int | list[str]]

READONLY = "https://www.googleapis.com/auth/gmail.readonly"
MODIFY = "https://www.googleapis.com/auth/gmail.modify"
LABELS = "https://www.googleapis.com/auth/gmail.labels"

_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Method:
    """A method of the API by the name that Google gives it, and the narrowest scope of ours that allows it."""

    name: str
    verb: Literal["GET", "POST"]
    scope: str


GET_PROFILE = Method("users.getProfile", "GET", READONLY)
LIST_MESSAGES = Method("messages.list", "GET", READONLY)
GET_MESSAGE = Method("messages.get", "GET", READONLY)
MODIFY_MESSAGE = Method("messages.modify", "POST", MODIFY)
LIST_LABELS = Method("labels.list", "GET", READONLY)
CREATE_LABEL = Method("labels.create", "POST", LABELS)
LIST_HISTORY = Method("history.list", "GET", READONLY)


class GmailClient:
    """Gmail's API for one mailbox."""

    def __init__(
        self, http: httpx2.AsyncClient, base_url: str, token: Callable[[], Awaitable[str]], user: str = "me"
    ) -> None:
        self._http = http
        self._root = f"{base_url.rstrip('/')}/gmail/v1/users/{quote(user, safe='@')}"
        self._token = token

    async def get_profile(self) -> Profile:
        return read_profile(await self._call(GET_PROFILE, "/profile"))

    async def list_messages(
        self,
        q: str = "",
        label_ids: Collection[str] = (),
        page_token: str | None = None,
        max_results: int = 100,
    ) -> MessagePage:
        """One page, newest first."""
        parameters = _given(q=q, labelIds=sorted(label_ids), pageToken=page_token, maxResults=max_results)
        return read_message_page(await self._call(LIST_MESSAGES, "/messages", parameters))

    async def get_message(self, message_id: str, format: Format = "full") -> Message:
        path = f"/messages/{_in_path(message_id)}"
        missing = MessageNotFound(message_id)
        return read_message(await self._call(GET_MESSAGE, path, {"format": format}, on={404: missing}))

    async def modify_message(
        self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> frozenset[str]:
        """Adds and removes labels by their ids. Returns the labels that the message has now."""
        path = f"/messages/{_in_path(message_id)}/modify"
        body = {"addLabelIds": sorted(add), "removeLabelIds": sorted(remove)}
        missing = MessageNotFound(message_id)
        return read_message_ref(await self._call(MODIFY_MESSAGE, path, body=body, on={404: missing})).label_ids

    async def list_labels(self) -> tuple[Label, ...]:
        return read_labels(await self._call(LIST_LABELS, "/labels"))

    async def create_label(self, name: str) -> Label:
        body = {"name": name, "labelListVisibility": "labelShow", "messageListVisibility": "show"}
        exists = LabelExists(CREATE_LABEL.name, 409, "aborted", "use the label that is there, or choose another name")
        return read_label(await self._call(CREATE_LABEL, "/labels", body=body, on={409: exists}))

    async def list_history(
        self,
        start_history_id: int,
        page_token: str | None = None,
        history_types: Collection[HistoryType] = (),
        label_id: str | None = None,
    ) -> HistoryPage:
        """The changes after `start_history_id`, oldest first. Raises HistoryExpired when Gmail has forgotten them."""
        parameters = _given(
            startHistoryId=str(start_history_id),
            pageToken=page_token,
            historyTypes=sorted(history_types),
            labelId=label_id,
        )
        expired = HistoryExpired(start_history_id)
        return read_history_page(await self._call(LIST_HISTORY, "/history", parameters, on={404: expired}))

    async def _call(
        self,
        method: Method,
        path: str,
        parameters: Parameters | None = None,
        body: Mapping[str, object] | None = None,
        on: Mapping[int, GmailError] | None = None,
    ) -> Fields:
        """The answer's fields. `on` says which error a status means for this call, where it is a special one."""
        response = await self._send(method, path, parameters, body)
        if response.is_success:
            return _fields(response.content)
        raise (on or {}).get(response.status_code) or refusal(method.name, method.scope, response)

    async def _send(
        self, method: Method, path: str, parameters: Parameters | None, body: Mapping[str, object] | None
    ) -> httpx2.Response:
        try:
            return await self._http.request(
                method.verb,
                self._root + path,
                params=parameters,
                json=body,
                headers={"Authorization": f"Bearer {await self._token()}"},
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Only the kind of failure is kept, and no cause: a protocol error can quote the Authorization header.
            failure = type(error).__name__
        raise Unreachable(method.name, failure)


def _given(**parameters: str | int | list[str] | None) -> dict[str, str | int | list[str]]:
    """The parameters that have a value."""
    return {name: value for name, value in parameters.items() if value not in (None, "", [])}


def _in_path(message_id: str) -> str:
    if not _MESSAGE_ID.fullmatch(message_id):
        raise BadInput("message_id", f"{message_id!r} is not an id of Gmail", "give the id as Gmail lists it")
    return message_id


def _fields(content: bytes) -> Fields:
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise BadAnswer("it is not a JSON object")
    return cast("Fields", answer)
