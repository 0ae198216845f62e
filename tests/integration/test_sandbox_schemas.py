"""The checker of the emulator's answers against Google's discovery document does find errors."""

import json
import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message

from postroom_sandbox.methods import METHODS, USER
from postroom_sandbox.refusal import invalid, scope_missing, unauthenticated
from support.sandbox import Checked, answer_problems, documented, problems


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ("Message", {"id": "18c2", "labels": []}),
        ("Message", {"historyId": 5}),
        ("Message", {"historyId": "-5"}),
        ("Message", {"raw": "a+b"}),
        ("Message", {"sizeEstimate": 2**31}),
        ("Message", {"sizeEstimate": True}),
        ("Message", {"payload": {"parts": [{"body": {"size": "3"}}]}}),
        ("Label", {"type": "robot"}),
        ("ListHistoryResponse", {"history": {}}),
        ("Draft", {"message": {"threadId": 7}}),
        ("WatchResponse", {"expiration": 1795000000000}),
    ],
)
def test_a_value_that_differs_from_its_schema_is_found(schema: str, wrong: dict[str, Any]) -> None:
    assert len(list(problems({"$ref": schema}, wrong, schema))) == 1


@pytest.mark.parametrize("name", METHODS)
def test_every_address_leads_to_its_method(name: str) -> None:
    method = METHODS[name]
    path = re.sub(r"\{\w+\}", "18c2", (USER + method.path).replace("{userId}", "me"))
    found = documented(method.verb, path)
    assert found is not None
    assert found["id"] == f"gmail.users.{name}"


@pytest.mark.parametrize(
    ("verb", "path", "status", "body"),
    [
        ("GET", "/gmail/v1/users/me/profile", 200, b'{"email": "x"}'),
        ("GET", "/gmail/v1/users/me/profile", 204, b""),
        ("DELETE", "/gmail/v1/users/me/labels/x", 200, b"{}"),
        ("GET", "/gmail/v1/users/me/nothing", 200, b"{}"),
        (
            "GET",
            "/gmail/v1/users/me/profile",
            400,
            b'{"error": {"code": 401, "message": "", "errors": [], "status": ""}}',
        ),
        ("GET", "/gmail/v1/users/me/profile", 400, b'{"error": {"code": 400, "message": "", "errors": []}}'),
    ],
)
def test_an_answer_that_differs_from_the_document_is_found(verb: str, path: str, status: int, body: bytes) -> None:
    assert len(list(answer_problems(verb, path, status, body))) == 1


@pytest.mark.parametrize("refusal", [invalid("x"), unauthenticated(), scope_missing(["a", "b"])])
def test_refusals_have_googles_form(refusal: Any) -> None:
    body = json.dumps(refusal.as_json()).encode()
    assert list(answer_problems("GET", "/gmail/v1/users/me/profile", refusal.code, body)) == []


async def test_the_critic_stands_before_the_door() -> None:
    async def wrong(request: Request) -> Response:
        return Response(b'{"historyId": 5}')

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        pass

    found: list[str] = []
    app = Checked(Starlette(routes=[Route("/gmail/v1/users/me/profile", wrong)]), found, set())
    path = "/gmail/v1/users/me/profile"
    await app({"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}, receive, send)
    assert found == [f"GET {path} -> 200.historyId should be string: 5"]
