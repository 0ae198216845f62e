"""Google's batch endpoint: up to a hundred calls in one multipart body, each with its own answer.

The outer headers apply to each part that does not override them, so a part may have its own token.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from postroom_sandbox.gmail_api import BESIDE, refused
from postroom_sandbox.quota import Quota
from postroom_sandbox.refusal import Refusal, invalid
from postroom_sandbox.requests import body_of, divided, multipart_pieces

MOST_PARTS = 100

_REQUEST_LINE = re.compile(r"([A-Z]+) (\S+)(?: HTTP/1\.[01])?")

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Part:
    """One call within a batch."""

    content_id: str
    verb: str
    target: str
    headers: Headers
    body: bytes


class Batch:
    """The endpoint. The application answers each part as if it had been sent alone."""

    def __init__(self, app: ASGIApp, quota: Quota) -> None:
        self._app = app
        self._quota = quota

    async def answer(self, request: Request) -> Response:
        try:
            parts = parts_of(request.headers.get("Content-Type", ""), await body_of(request))
        except Refusal as refusal:
            return refused(refusal)
        self._quota.counters.batches += 1
        outer = [(name, value) for name, value in request.headers.raw if not name.lower().startswith(b"content-")]
        answers = [await self._one(part, outer, number) for number, part in enumerate(parts)]
        boundary = f"batch_{secrets.token_urlsafe(24)}"
        body = b"".join(
            f"--{boundary}\r\nContent-Type: application/http\r\n".encode()
            + f"Content-ID: {_answer_id(part.content_id)}\r\n\r\n".encode()
            + answer
            + b"\r\n"
            for part, answer in zip(parts, answers, strict=True)
        )
        body += f"--{boundary}--\r\n".encode()
        return Response(body, media_type=f"multipart/mixed; boundary={boundary}")

    async def _one(self, part: Part, outer: Headers, number: int) -> bytes:
        own = {name.lower() for name, _ in part.headers}
        headers = [(name.lower(), value) for name, value in outer if name.lower() not in own] + part.headers
        target = urlsplit(part.target)
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": part.verb,
            "scheme": "http",
            "path": unquote(target.path),
            "raw_path": target.path.encode(),
            "query_string": target.query.encode(),
            "root_path": "",
            "headers": headers,
            BESIDE: number,
        }
        answer = _ResponseRecorder()
        await self._app(scope, _FixedBody(part.body), answer)
        return answer.as_http()


class _FixedBody:
    """An ASGI `receive` for a body that is already known."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body, "more_body": False}


class _ResponseRecorder:
    """An ASGI `send` that collects the answer as it would be sent over the wire."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
        else:
            self._body += message.get("body", b"")

    def as_http(self) -> bytes:
        lines = [f"HTTP/1.1 {self._status} {HTTPStatus(self._status).phrase}".encode()]
        lines += [name.title() + b": " + value for name, value in self._headers]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self._body


def parts_of(content_type: str, body: bytes) -> list[Part]:
    if not content_type.lower().startswith("multipart/mixed"):
        raise invalid(f"Failed to parse batch request, error: {content_type} is not multipart/mixed.")
    pieces = multipart_pieces(content_type, body)
    if len(pieces) > MOST_PARTS:
        raise invalid(f"Inner request count exceeds the limit. Received: {len(pieces)}, Limit: {MOST_PARTS}")
    return [_part(piece) for piece in pieces]


def _part(piece: bytes) -> Part:
    about, inner = divided(piece)
    head, body = divided(inner)
    line, _, rest = head.partition(b"\n")
    request = _REQUEST_LINE.fullmatch(line.strip().decode("ascii", "replace"))
    if request is None:
        raise invalid("Failed to parse batch request, error: a part has no request line.")
    about_lines = dict(_header_lines(about))
    content_id = about_lines.get(b"content-id", b"").decode("latin-1")
    return Part(content_id, request[1], request[2], _header_lines(rest), body)


def _header_lines(head: bytes) -> Headers:
    lines = (line.partition(b":") for line in head.replace(b"\r", b"").split(b"\n"))
    return [(name.strip().lower(), value.strip()) for name, colon, value in lines if colon]


def _answer_id(content_id: str) -> str:
    """The Content-ID of the answer: `<response-item1>` for `<item1>`."""
    return f"<response-{content_id[1:]}" if content_id.startswith("<") else f"response-{content_id}"
