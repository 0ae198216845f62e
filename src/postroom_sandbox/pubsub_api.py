"""The endpoints of Pub/Sub that a subscriber of a mailbox needs."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom_sandbox.consent import Consents
from postroom_sandbox.gmail_api import authorised, refused
from postroom_sandbox.methods import CLOUD, PUBSUB
from postroom_sandbox.pubsub import Pubsub
from postroom_sandbox.refusal import Refusal, invalid, scope_missing
from postroom_sandbox.requests import json_body, known_fields, text_in, texts_in

Json = dict[str, Any]

MOST_MESSAGES = 1_000


class PubsubApi:
    def __init__(self, pubsub: Pubsub, consents: Consents) -> None:
        self._pubsub = pubsub
        self._consents = consents

    def routes(self) -> list[Route]:
        project = "/v1/projects/{project}"
        subscription = project + "/subscriptions/{subscription}"
        offered: list[tuple[str, str, Callable[[Request], Awaitable[Json]]]] = [
            ("PUT", project + "/topics/{topic}", self._create_topic),
            ("POST", subscription + ":pull", self._pull),
            ("POST", subscription + ":acknowledge", self._acknowledge),
            ("POST", subscription + ":modifyAckDeadline", self._postpone),
            ("PUT", subscription, self._subscribe),
            ("GET", subscription, self._get),
            ("DELETE", subscription, self._unsubscribe),
        ]
        return [Route(path, self._guarded(endpoint), methods=[verb]) for verb, path, endpoint in offered]

    def _guarded(self, endpoint: Callable[[Request], Awaitable[Json]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                if not authorised(self._consents, request).scopes & {PUBSUB, CLOUD}:
                    raise scope_missing((CLOUD, PUBSUB))
                return _answer(await endpoint(request))
            except Refusal as refusal:
                return refused(refusal)

        return answer

    async def _create_topic(self, request: Request) -> Json:
        name = f"projects/{request.path_params['project']}/topics/{request.path_params['topic']}"
        self._pubsub.create_topic(name)
        return {"name": name}

    async def _subscribe(self, request: Request) -> Json:
        fields = await json_body(request, "name", "topic", "pushConfig", "ackDeadlineSeconds")
        push = known_fields(fields.get("pushConfig", {}), "pushEndpoint", "oidcToken", "attributes")
        token = known_fields(push.get("oidcToken", {}), "serviceAccountEmail", "audience")
        made = self._pubsub.subscribe(
            _name(request),
            text_in(fields, "topic"),
            text_in(push, "pushEndpoint"),
            text_in(token, "audience"),
            text_in(token, "serviceAccountEmail"),
        )
        made.ack_deadline = _seconds(fields, made.ack_deadline)
        return made.as_json()

    async def _get(self, request: Request) -> Json:
        return self._pubsub.subscription(_name(request)).as_json()

    async def _unsubscribe(self, request: Request) -> Json:
        self._pubsub.unsubscribe(_name(request))
        return {}

    async def _pull(self, request: Request) -> Json:
        fields = await json_body(request, "maxMessages", "returnImmediately")
        most: object = fields.get("maxMessages", 0)
        if not isinstance(most, int) or most < 1:
            raise invalid("You must specify a positive max_messages in the request.")
        at_once = bool(fields.get("returnImmediately"))
        taken = await self._pubsub.pull(_name(request), min(most, MOST_MESSAGES), at_once)
        return {"receivedMessages": taken} if taken else {}

    async def _acknowledge(self, request: Request) -> Json:
        fields = await json_body(request, "ackIds")
        self._pubsub.subscription(_name(request)).acknowledge(texts_in(fields, "ackIds"))
        return {}

    async def _postpone(self, request: Request) -> Json:
        fields = await json_body(request, "ackIds", "ackDeadlineSeconds")
        self._pubsub.postpone(_name(request), texts_in(fields, "ackIds"), _seconds(fields, timedelta(0)))
        return {}


def _answer(content: Json) -> Response:
    """A JSON response; Pub/Sub answers with an empty object, not with an empty body."""
    return Response(orjson.dumps(content), media_type="application/json; charset=UTF-8")


def _name(request: Request) -> str:
    parts = request.path_params
    return f"projects/{parts['project']}/subscriptions/{parts['subscription']}"


def _seconds(fields: Json, default: timedelta) -> timedelta:
    value = cast(object, fields.get("ackDeadlineSeconds"))
    if value is None:
        return default
    if not isinstance(value, int) or not 0 <= value <= 600:
        raise invalid("Invalid ack deadline")
    return timedelta(seconds=value)
