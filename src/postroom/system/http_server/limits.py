"""Limits on connections and requests, and the answers to those that exceed them."""

import resource
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroom.settings.web import WebSettings

KIB = 1024
MIB = 1024 * 1024
# File descriptors for the rest of the process: the database, mailboxes, logs.
OTHER_FILES = 256
FEWEST_CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Durations in seconds, sizes in bytes. The defaults are those of the settings in `web`."""

    first_byte_s: float = 10.0
    headers_s: float = 10.0
    body_s: float = 60.0
    keep_alive_s: float = 15.0
    answer_s: float = 60.0
    max_header_bytes: int = 32 * KIB
    max_headers: int = 100
    max_body_bytes: int = 16 * MIB
    max_connections: int = 512
    max_per_address: int = 256
    max_pipelined: int = 16

    @property
    def check_every_s(self) -> float:
        """The interval between checks of the deadlines, short enough for the shortest of them."""
        shortest = min(self.first_byte_s, self.headers_s, self.body_s, self.answer_s)
        return min(1.0, max(0.01, shortest / 4))


def limits_of(web: "WebSettings") -> ConnectionLimits:
    """The limits in the settings."""
    return ConnectionLimits(
        first_byte_s=web.first_byte_s,
        headers_s=web.headers_s,
        body_s=web.body_s,
        keep_alive_s=web.keep_alive_s,
        answer_s=web.answer_s,
        max_header_bytes=web.max_header_kib * KIB,
        max_headers=web.max_headers,
        max_connections=web.max_connections,
        max_per_address=web.max_connections_per_address,
    )


def within_open_files(limits: ConnectionLimits) -> ConnectionLimits:
    """The limits, with the number of connections reduced to what the open file limit of the process allows."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits
    room = max(FEWEST_CONNECTIONS, files - OTHER_FILES)
    most = min(limits.max_connections, room)
    return replace(limits, max_connections=most, max_per_address=min(limits.max_per_address, most))


class Refusal(Enum):
    """Why a connection or request is refused: the reason as counted, the status, and the text for the client."""

    BAD_REQUEST = ("bad_request", 400, "This is not an HTTP request.")
    HEADERS_TOO_LATE = ("headers_too_late", 408, "The headers of the request did not arrive in time.")
    BODY_TOO_LATE = ("body_too_late", 408, "The body of the request did not arrive in time.")
    BODY_TOO_LARGE = ("body_too_large", 413, "The body of the request is too large.")
    URL_TOO_LONG = ("url_too_long", 414, "The address in the request is too long.")
    ADDRESS_CROWDED = ("address_crowded", 429, "There are too many connections from this address.")
    HEADERS_TOO_LARGE = ("headers_too_large", 431, "The headers of the request are too large, or too many.")
    CROWDED = ("crowded", 503, "There are too many connections.")
    # These get no answer: there was no request, or an answer is being sent.
    SILENT = ("silent", 0, "")
    SLOW_READER = ("slow_reader", 0, "")
    PIPELINED = ("pipelined", 0, "")

    def __init__(self, reason: str, status: int, words: str) -> None:
        self.reason = reason
        self.status = status
        self.words = words

    @property
    def answer(self) -> bytes:
        """The whole HTTP answer; empty when none is sent."""
        if not self.status:
            return b""
        again = "retry-after: 5\r\n" if self.status in (429, 503) else ""
        return (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(self.words) + 1}\r\n"
            f"cache-control: no-store\r\n{again}connection: close\r\n\r\n{self.words}\n"
        ).encode("ascii")
