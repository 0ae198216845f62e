"""A running emulator whose every answer is checked against Google's discovery document."""

import base64
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import Any

import googleapiclient.discovery_cache
import httpx2
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom_sandbox.batch import parts_of
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.requests import multipart_pieces
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.patience import PATIENCE_S

OWNER = "mara@lindqvist.example"
OTHER = "ida@lindqvist.example"
TOKEN = "token-of-the-sandbox"
SEED = 31
DOCUMENT: dict[str, Any] = json.loads(
    (Path(googleapiclient.discovery_cache.__file__).parent / "documents" / "gmail.v1.json").read_text()
)


def methods_in(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from methods_in(inner)


DOCUMENTED = {method["id"].removeprefix("gmail.users."): method for method in methods_in(DOCUMENT)}


def problems(schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    """Where a value differs from a schema of the discovery document: unknown keys, wrong types, wrong formats."""
    schema = DOCUMENT["schemas"][schema["$ref"]] if "$ref" in schema else schema
    match schema["type"], value:
        case "object", dict():
            for key, inner in value.items():
                if key in schema["properties"]:
                    yield from problems(schema["properties"][key], inner, f"{where}.{key}")
                else:
                    yield f"{where}.{key} is unknown"
        case "array", list():
            for number, inner in enumerate(value):
                yield from problems(schema["items"], inner, f"{where}[{number}]")
        case "string", str():
            pattern = {"uint64": r"\d{1,20}", "int64": r"-?\d{1,19}", "byte": r"[A-Za-z0-9_-]*={0,2}"}
            if not re.fullmatch(pattern.get(schema.get("format", ""), r"(?s).*"), value):
                yield f"{where} is no {schema['format']}: {value!r}"
            if value not in schema.get("enum", [value]):
                yield f"{where} is not one of {schema['enum']}: {value!r}"
        case "integer", int() if not isinstance(value, bool):
            low, high = {"int32": (-(2**31), 2**31), "uint32": (0, 2**32)}[schema["format"]]
            if not low <= value < high:
                yield f"{where} is out of range: {value}"
        case "boolean", bool():
            pass
        case kind, _:
            yield f"{where} should be {kind}: {value!r}"


def check(schema: str, answer: Any) -> None:
    assert list(problems({"$ref": schema}, answer, schema)) == []


def documented(verb: str, path: str) -> dict[str, Any] | None:
    """The method that an address means: of several, the one with the fewest blanks."""
    path = path.removeprefix("/upload")
    fitting = [
        method
        for method in DOCUMENTED.values()
        if method["httpMethod"] == verb and re.fullmatch("/" + re.sub(r"\{\w+\}", "[^/]+", method["path"]), path)
    ]
    return min(fitting, key=lambda method: method["path"].count("{"), default=None)


def answer_problems(verb: str, path: str, status: int, body: bytes) -> Iterator[str]:
    where = f"{verb} {path} -> {status}"
    if status >= 400:
        yield from (f"{where}: {problem}" for problem in error_problems(status, json.loads(body)))
        return
    method = documented(verb, path)
    if method is None:
        yield f"{where}: no such method"
    elif "response" not in method or not body:
        # The document gives some methods no response at all; `trash` and the like answer nothing else either.
        if body or "response" in method:
            yield f"{where}: {'a body' if body else 'no body'} where the document says otherwise"
    else:
        yield from problems(method["response"], json.loads(body), where)


def error_problems(status: int, answer: Any) -> Iterator[str]:
    error = answer["error"]
    if (
        not {"code", "message", "errors", "status"}
        <= error.keys()
        <= {"code", "message", "errors", "status", "details"}
    ):
        yield f"fields {sorted(error)}"
    if error["code"] != status:
        yield f"code {error['code']}"
    for each in error["errors"]:
        if each.keys() != {"domain", "reason", "message"}:
            yield f"fields of an error {sorted(each)}"


class Checked:
    """An application, and what was wrong with its answers."""

    def __init__(self, app: ASGIApp, wrong: list[str], seen: set[str]) -> None:
        self._app = app
        self._wrong = wrong
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if not path.startswith(("/gmail/", "/upload/", "/batch")):
            await self._app(scope, receive, send)
            return
        asked, status, headers, body = b"", 0, {}, b""

        async def listen() -> Message:
            nonlocal asked
            message = await receive()
            asked += message.get("body", b"")
            return message

        async def speak(message: Message) -> None:
            nonlocal status, headers, body
            if message["type"] == "http.response.start":
                status, headers = message["status"], dict(message["headers"])
            body += message.get("body", b"")
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._check(scope, asked, status, headers, body)
            await send(message)

        await self._app(scope, listen, speak)

    def _check(self, scope: Scope, asked: bytes, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        if headers.get(b"content-encoding") == b"gzip":
            return
        if scope["path"].startswith("/batch") and status == 200:
            given = {name.lower(): value for name, value in scope["headers"]}
            self._check_batch(given[b"content-type"].decode(), asked, headers[b"content-type"].decode(), body)
        else:
            self._one(scope["method"], scope["path"], status, body)

    def _check_batch(self, asked_type: str, asked: bytes, content_type: str, body: bytes) -> None:
        answers = multipart_pieces(content_type, body)
        for part, answer in zip(parts_of(asked_type, asked), answers, strict=True):
            _, head, content = answer.split(b"\r\n\r\n", 2)
            self._one(part.verb, part.target.partition("?")[0], int(head.split(b" ")[1]), content)

    def _one(self, verb: str, path: str, status: int, body: bytes) -> None:
        method = documented(verb, path)
        if method is not None and status < 400:
            self._seen.add(method["id"].removeprefix("gmail.users."))
        self._wrong.extend(answer_problems(verb, path, status, body))


class CheckedEmulator(Emulator):
    """The emulator with a critic before its door."""

    def app(self) -> ASGIApp:
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        return Checked(super().app(), self.wrong, self.seen)


@dataclass
class Sandbox:
    """A running emulator with everything that a test may want of it."""

    emulator: CheckedEmulator
    url: str
    http: httpx2.AsyncClient
    clock: ManualClock
    token: str = TOKEN
    sleeps: list[float] = field(default_factory=list[float])

    @property
    def mailbox(self) -> Mailbox:
        return self.emulator.mailbox

    async def ask(self, verb: str, path: str, token: str | None = None, **request: Any) -> httpx2.Response:
        """One call of a method; the path is what follows the user."""
        return await self.raw(verb, f"/gmail/v1/users/me{path}", token, **request)

    async def raw(self, verb: str, path: str, token: str | None = None, **request: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", **request.pop("headers", {})}
        return await self.http.request(verb, self.url + path, headers=headers, **request)

    async def json(self, verb: str, path: str, **request: Any) -> dict[str, Any]:
        answer = await self.ask(verb, path, **request)
        assert answer.status_code in (200, 204), answer.text
        return answer.json() if answer.content else {}


@asynccontextmanager
async def running_sandbox(
    clock: ManualClock,
    fill: Callable[[Mailbox], None] = lambda _mailbox: None,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    **options: Any,
) -> AsyncGenerator[Sandbox]:
    print(f"seed {SEED}")
    sleeps: list[float] = []

    async def pause(seconds: float) -> None:
        sleeps.append(seconds)

    lag = options.pop("search_lag", None)
    mailbox = Mailbox(OWNER, Random(SEED), clock=clock, **({"search_lag": lag} if lag else {}))
    emulator = CheckedEmulator(mailbox, TOKEN, fill, sleep=sleep or pause, **options)
    async with running_emulator(emulator) as url, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        yield Sandbox(emulator, url, http, clock, sleeps=sleeps)
    assert emulator.wrong == []


def raw_mail(subject: str = "Hello", text: str = "Good morning", sender: str = OTHER, **headers: str) -> bytes:
    message = EmailMessage()
    message["From"] = sender
    message["To"] = headers.pop("To", OWNER)
    message["Subject"] = subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes()


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


def header_of(message: dict[str, Any], name: str) -> str:
    found = [each["value"] for each in message["payload"]["headers"] if each["name"].lower() == name.lower()]
    return found[0] if found else ""
