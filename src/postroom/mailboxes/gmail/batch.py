"""Google's multipart batch: builds one request from many calls, and parses its answer.

A mail cannot forge a part: content of mail is inside JSON, where line ends are escaped.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import httpx2

from postroom.core.errors import BadInput
from postroom.mailboxes.gmail.calls import Call
from postroom.mailboxes.gmail.errors import GmailError, NotFromGmail, Unreachable
from postroom.mailboxes.gmail.methods import LARGEST_MAIL, Method
from postroom.mailboxes.gmail.refusals import refusal
from postroom.mailboxes.gmail.scopes import READONLY
from postroom.mailboxes.gmail.wire import Answer, Request

PATH = "/batch/gmail/v1"
NAME = "batch"
# Google accepts a hundred, and warns that more than fifty run into rate limits.
MOST_PARTS = 100
START = 12
METHOD = Method(NAME, "POST", READONLY)

_BOUNDARY = re.compile(r'boundary="?([^\s";,]{1,200})', re.IGNORECASE)
_NUMBER = re.compile(rb"^content-id:[^\r\n]*response-item-(\d{1,3})\b", re.IGNORECASE | re.MULTILINE)
_STATUS = re.compile(rb"HTTP/\d\.\d (\d{3})\b")
_PART_401 = re.compile(rb"^HTTP/\d\.\d 401\b", re.MULTILINE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


class Size:
    """How many calls to put into one batch, whose parts Gmail runs concurrently.

    It starts small and doubles until the rate limit first refuses some. From then on it is halved when some are
    refused, and grows by one when none are.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._was_refused = False
        self.now = min(START, most)

    def answered(self, calls: int, refused: int) -> None:
        if refused:
            self._was_refused = True
            # By its own size: of several batches in flight together, only the first halves it.
            self.now = min(self.now, max(1, calls // 2))
        elif calls >= self.now:
            self.now = min(self._most, self.now + (1 if self._was_refused else self.now))


def batch_request(calls: Sequence[Call[Any]], root: str) -> Request:
    """The request for all of these calls. `root` goes before the path of each."""
    if not 1 <= len(calls) <= MOST_PARTS:
        raise BadInput("calls", f"{len(calls)} were given", f"a batch has 1 to {MOST_PARTS}")
    boundary = f"batch_{secrets.token_hex(16)}"
    parts = [_part(number, call, root, boundary) for number, call in enumerate(calls)]
    content = b"".join([*parts, f"--{boundary}--\r\n".encode()])
    return Request(
        NAME, "POST", PATH, LARGEST_MAIL, content=content, content_type=f"multipart/mixed; boundary={boundary}"
    )


def _part(number: int, call: Call[Any], root: str, boundary: str) -> bytes:
    if call.is_upload:
        raise BadInput("calls", f"{call.method.name} with a large mail cannot be part of a batch", "send it alone")
    query = f"?{urlencode(call.parameters, doseq=True)}" if call.parameters else ""
    head = (
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <item-{number}>\r\n\r\n"
        f"{call.method.verb} {root}{call.path}{query} HTTP/1.1\r\n"
    )
    if call.content is None:
        return f"{head}\r\n\r\n".encode()
    size = f"Content-Type: {call.content_type}\r\nContent-Length: {len(call.content)}\r\n\r\n"
    return b"".join((head.encode(), size.encode(), call.content, b"\r\n"))


def outcomes(calls: Sequence[Call[Any]], answer: Answer) -> list[Any]:
    """The outcome of each call, in order. An error of the whole request is raised."""
    if answer.status != 200:
        raise refusal(METHOD, answer.status, answer.headers, answer.content)
    return verdicts(calls, answer)


def verdicts(calls: Sequence[Call[Any]], answer: Answer) -> list[Any]:
    """The outcome of each call, in order: its result, or its error."""
    answers = batch_answers(answer)
    return [_verdict(call, answers.get(number)) for number, call in enumerate(calls)]


def _verdict(call: Call[Any], answer: Answer | None) -> object | GmailError:
    if answer is None:
        return Unreachable(call.method.name, "the batch's answer leaves this part out")
    return call.verdict(answer)


def refuses_token(answer: Answer) -> bool:
    """Whether the token was refused, for the batch itself or for each of its parts."""
    if answer.status != 200 or not _PART_401.search(answer.content):
        return answer.status == 401
    try:
        answers = batch_answers(answer)
    except NotFromGmail:
        return False
    return bool(answers) and all(each.status == 401 for each in answers.values())


def batch_answers(answer: Answer) -> Mapping[int, Answer]:
    """The answers by the numbers of their calls: Google may give them in any order."""
    boundary = _BOUNDARY.search(answer.headers.get("Content-Type", ""))
    if boundary is None:
        raise NotFromGmail("it is not the answer to a batch")
    # The first piece is before the first boundary, the last one after the end.
    pieces = (b"\r\n" + answer.content).split(f"\n--{boundary.group(1)}".encode())[1:-1]
    found = (_read_part(piece) for piece in pieces)
    return {number: part for number, part in found if part is not None}


def _read_part(piece: bytes) -> tuple[int, Answer | None]:
    """The number of a part and its answer; no answer if the part is malformed."""
    outer, *rest = _BLANK_LINE.split(piece, maxsplit=1)
    number = _NUMBER.search(outer)
    inner = rest[0].lstrip() if rest else b""
    status = _STATUS.match(inner)
    if number is None or status is None:
        return -1, None
    head, *body = _BLANK_LINE.split(inner, maxsplit=1)
    return int(number.group(1)), Answer(int(status.group(1)), _headers(head), body[0] if body else b"")


def _headers(head: bytes) -> httpx2.Headers:
    lines = [line.partition(b":") for line in head.splitlines()[1:]]
    return httpx2.Headers([(name.strip(), value.strip()) for name, colon, value in lines if colon])
