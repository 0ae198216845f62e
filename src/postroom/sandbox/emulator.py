"""Gmail's REST API over a mailbox in memory, as an ASGI application.

It answers what the real one would, errors included, and holds itself to Google's discovery document. Under `/sandbox/`
is what Google does not have: mail can be delivered, faults ordered, everything set back.
"""

import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from itertools import islice
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom.sandbox.control import Control
from postroom.sandbox.faults import Faults
from postroom.sandbox.mailbox import Mailbox
from postroom.sandbox.refusal import Refusal, delegation_denied, invalid, missing, unauthenticated
from postroom.sandbox.requests import Parameters, json_body, page_token, place_in, text_in, texts_in

Json = dict[str, Any]
Endpoint = Callable[[Request], Awaitable[Json]]

HISTORY_TYPES = frozenset({"messageAdded", "messageDeleted", "labelAdded", "labelRemoved"})
LABEL_LOOK = ("labelListVisibility", "messageListVisibility", "color")


class Emulator:
    """The API of one mailbox, for whoever has `token`. `fill` puts in what is there at the beginning."""

    def __init__(self, mailbox: Mailbox, token: str, fill: Callable[[Mailbox], None] = lambda mailbox: None) -> None:
        self.mailbox = mailbox
        self.faults = Faults()
        self._token = token
        self._control = Control(mailbox, self.faults, fill)
        fill(mailbox)

    def app(self) -> Starlette:
        user = "/gmail/v1/users/{userId}"
        control = self._control
        google: list[tuple[str, str, Endpoint]] = [
            ("GET", "/profile", self._get_profile),
            ("GET", "/messages", self._list_messages),
            ("GET", "/messages/{id}", self._get_message),
            ("DELETE", "/messages/{id}", self._delete_message),
            ("POST", "/messages/{id}/modify", self._modify_message),
            ("GET", "/labels", self._list_labels),
            ("POST", "/labels", self._create_label),
            ("GET", "/labels/{id}", self._get_label),
            ("DELETE", "/labels/{id}", self._delete_label),
            ("GET", "/history", self._list_history),
        ]
        ours: list[tuple[str, str, Endpoint]] = [
            ("POST", "/sandbox/messages", control.deliver),
            ("GET", "/sandbox/faults", control.list_faults),
            ("POST", "/sandbox/faults", control.order_fault),
            ("POST", "/sandbox/reset", control.reset),
        ]
        routes = [Route(user + path, self._guarded(self._for_owner(end)), methods=[verb]) for verb, path, end in google]
        routes += [Route(path, self._guarded(endpoint), methods=[verb]) for verb, path, endpoint in ours]
        return Starlette(routes=routes, exception_handlers={HTTPException: _unknown_address})

    def _guarded(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint behind the token, with refusals in Google's form."""

        async def answer(request: Request) -> Response:
            try:
                self._check_token(request)
                return _json(await endpoint(request))
            except Refusal as refusal:
                return _json(refusal.as_json(), refusal.code, refusal.headers())

        return answer

    def _for_owner(self, endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Json:
            user = request.path_params["userId"]
            if user not in ("me", self.mailbox.owner):
                raise delegation_denied(user)
            self.faults.strike(request.url.path)
            return await endpoint(request)

        return answer

    def _check_token(self, request: Request) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), self._token.encode()):
            raise unauthenticated()

    async def _get_profile(self, request: Request) -> Json:
        Parameters(request).only()
        return {
            "emailAddress": self.mailbox.owner,
            "messagesTotal": len(self.mailbox),
            "threadsTotal": self.mailbox.threads,
            "historyId": str(self.mailbox.history_id),
        }

    async def _list_messages(self, request: Request) -> Json:
        asked = Parameters(request).only("q", "labelIds", "pageToken", "maxResults", "includeSpamTrash")
        token = asked.text("pageToken")
        shown, following, estimate = self.mailbox.page(
            asked.page_size(),
            asked.text("q"),
            asked.texts("labelIds"),
            asked.flag("includeSpamTrash"),
            place_in(token) if token else None,
        )
        answer: Json = {"resultSizeEstimate": estimate}
        if shown:
            answer["messages"] = [message.reference() for message in shown]
        if following:
            answer["nextPageToken"] = page_token(*following)
        return answer

    async def _get_message(self, request: Request) -> Json:
        asked = Parameters(request).only("format", "metadataHeaders")
        only = frozenset(name.lower() for name in asked.texts("metadataHeaders"))
        return self.mailbox.get(request.path_params["id"]).as_json(asked.text("format").lower() or "full", only)

    async def _delete_message(self, request: Request) -> Json:
        Parameters(request).only()
        self.mailbox.delete(request.path_params["id"])
        return {}

    async def _modify_message(self, request: Request) -> Json:
        Parameters(request).only()
        fields = await json_body(request, "addLabelIds", "removeLabelIds")
        add, remove = texts_in(fields, "addLabelIds"), texts_in(fields, "removeLabelIds")
        if not add and not remove:
            raise invalid("No label add or removes specified")
        message = self.mailbox.modify(request.path_params["id"], add, remove)
        return {**message.reference(), "labelIds": sorted(message.labels)}

    async def _list_labels(self, request: Request) -> Json:
        Parameters(request).only()
        return {"labels": [label.as_json() for label in self.mailbox.labels.all()]}

    async def _create_label(self, request: Request) -> Json:
        Parameters(request).only()
        fields = await json_body(request, "name", *LABEL_LOOK)
        look = {name: fields[name] for name in LABEL_LOOK if name in fields}
        created = self.mailbox.labels.create(text_in(fields, "name"), look)
        return {"id": created.id, "name": created.name, **created.look}

    async def _get_label(self, request: Request) -> Json:
        Parameters(request).only()
        return self.mailbox.count(self.mailbox.labels.get(request.path_params["id"]))

    async def _delete_label(self, request: Request) -> Json:
        Parameters(request).only()
        self.mailbox.delete_label(request.path_params["id"])
        return {}

    async def _list_history(self, request: Request) -> Json:
        asked = Parameters(request).only("startHistoryId", "historyTypes", "labelId", "pageToken", "maxResults")
        kinds, token = asked.texts("historyTypes"), asked.text("pageToken")
        if unknown := sorted(kinds - HISTORY_TYPES):
            raise invalid(f"Invalid value at 'history_types': {unknown[0]}")
        if not asked.text("startHistoryId"):
            raise invalid("Missing/invalid startHistoryId")
        start = place_in(token)[0] if token else asked.number("startHistoryId")
        size = asked.page_size()
        found = list(islice(self.mailbox.changes_since(start, kinds, asked.text("labelId") or None), size + 1))
        answer: Json = {"historyId": str(self.mailbox.history_id)}
        if found:
            answer["history"] = [change.as_json() for change in found[:size]]
        if len(found) > size:
            answer["nextPageToken"] = page_token(found[size - 1].id)
        return answer


def _json(content: Json, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Google answers a success that has nothing to say with 204 and no body."""
    if code == HTTPStatus.OK and not content:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return Response(orjson.dumps(content), code, headers, media_type="application/json; charset=UTF-8")


async def _unknown_address(request: Request, error: Exception) -> Response:
    refusal = missing()
    return _json(refusal.as_json(), refusal.code)
