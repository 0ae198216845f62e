"""JSON over plain ASGI: bodies of bounded size in, answers and problems out."""

from collections.abc import Awaitable, Iterable
from typing import Any

import orjson
import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from postroom.core.errors import BadInput
from postroom.core.strict import exact_json
from postroom.interfaces.http.door import HttpRequestRefused, RawHeaders, values_of
from postroom.operations.problems import Problem, is_expected, problem_of
from postroom.system.http_server.body import read_body

log = structlog.get_logger()

MIB = 1024 * 1024
STATUSES = {
    "bad_input": 400,
    "refused": 403,
    "not_found": 404,
    "account_unusable": 409,
    "conflict": 409,
    "lease_lost": 409,
    "not_admitted": 429,
    "internal": 500,
    "no_room": 503,
    "unavailable": 503,
}
JSON = (b"content-type", b"application/json")


async def send_answer(send: Send, answering: Awaitable[object], failed: str, status: int = 200) -> None:
    """Send the answer, or the problem instead of it. One that nobody expects is logged as the event `failed`."""
    try:
        answer = await answering
    except HttpRequestRefused as away:
        await send_json(send, away.status, {"error": away.form}, away.headers)
    except ClientDisconnect:
        return
    except Exception as error:
        if not is_expected(error):
            log.error(failed, error=type(error).__name__)
        await send_problem(send, problem_of(error))
    else:
        await send_json(send, status, answer)


async def json_body(headers: RawHeaders, receive: Receive, largest: int) -> Any:
    """Read and parse the whole body; refuse it as soon as it is known to be too large."""
    check_type(headers)
    return parsed(await whole_body(headers, receive, largest))


async def whole_body(headers: RawHeaders, receive: Receive, largest: int) -> bytearray:
    """Read the whole body; refuse it as soon as it is known to be too large."""
    check_length(headers, largest)
    body = await read_body(receive, largest)
    if body is None:
        raise _too_large(largest)
    return body


def check_type(headers: RawHeaders) -> None:
    kinds = values_of(headers, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise HttpRequestRefused(
            415, "bad_type", "content-type", "is not application/json", "send JSON, with this header saying so"
        )


def check_length(headers: RawHeaders, largest: int) -> None:
    declared = values_of(headers, b"content-length")
    if declared and declared[0].isdecimal() and (len(declared[0]) > 15 or int(declared[0]) > largest):
        raise _too_large(largest)


def _too_large(largest: int) -> HttpRequestRefused:
    problem, remedy = f"is over {largest // MIB} MiB", "send fewer at once, without large attachments"
    return HttpRequestRefused(413, "too_large", "body", problem, remedy)


def parsed(body: bytearray, remedy: str = "send one envelope, or an array of them, in UTF-8") -> Any:
    try:
        return exact_json(body)
    except orjson.JSONDecodeError as error:
        # The message names the position and the kind of mistake, and never quotes the body.
        raise BadInput("body", f"is not JSON: {error}", remedy) from None


async def send_problem(send: Send, problem: Problem) -> None:
    again = problem.retry_after_s
    headers = [] if again is None else [(b"retry-after", b"%d" % max(1, round(again)))]
    await send_json(send, STATUSES[problem.code], {"error": problem.form}, headers)


async def send_json(send: Send, status: int, content: object, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = orjson.dumps(content)
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
