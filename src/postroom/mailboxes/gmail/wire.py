"""One request to Gmail and its whole answer: with the token, within limits of time and size, without redirects."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx2

from postroom.mailboxes.gmail.errors import AnswerTooLarge, GmailTokenUnavailable, NotFromGmail, Unreachable
from postroom.mailboxes.gmail.tokens import PlainTokens, TokenProvider
from postroom.system.checked_http import Check, checked_before_each_write

# From the first byte of the request to the last of the answer: the HTTP client's own timeouts apply to each read.
DEADLINE = timedelta(seconds=60)

_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Request:
    """A request as it is sent. `call` is the method's name, for errors."""

    call: str
    verb: str
    path: str
    largest: int
    parameters: Mapping[str, str | int | list[str]] = field(default_factory=dict[str, "str | int | list[str]"])
    content: bytes | None = field(default=None, repr=False)
    content_type: str = "application/json"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)


def is_401(answer: Answer) -> bool:
    return answer.status == 401


class Wire:
    """The connection to Gmail for one mailbox."""

    def __init__(
        self, http: httpx2.AsyncClient, base_url: str, tokens: TokenProvider, deadline: timedelta = DEADLINE
    ) -> None:
        self._http = http
        self._base_url = base_url.rstrip("/")
        self._tokens = tokens
        self._deadline = deadline
        self.server_time: datetime | None = None
        """Gmail's time when it last answered, from the `Date` header."""

    async def send(
        self, request: Request, refuses_token: Callable[[Answer], bool] = is_401, check: Check | None = None
    ) -> Answer:
        """The answer, whatever its status. A refused token is replaced, and the request sent once more.

        `check` is called right before each write; an exception of it ends the request.
        """
        token = await self._token()
        answer = await self._exchange(request, token, check)
        if not refuses_token(answer):
            return answer
        self._tokens.refused(token)
        if isinstance(self._tokens, PlainTokens):
            return answer
        return await self._exchange(request, await self._token(), check)

    async def _token(self) -> str:
        token = await self._tokens.token()
        if not _TOKEN.fullmatch(token):
            raise GmailTokenUnavailable("it contains characters that no token has")
        return token

    async def _exchange(self, request: Request, token: str, check: Check | None) -> Answer:
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                return await self._answer(request, token, check)
        except TimeoutError:
            failure = f"it was not complete after {self._deadline.total_seconds():.0f} s"
        except httpx2.DecodingError:
            failure = ""
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            # Only the type of the failure is kept, and no cause: a protocol error can quote the Authorization header.
            failure = type(error).__name__
        if not failure:
            raise NotFromGmail("its compression is damaged")
        raise Unreachable(request.call, failure)

    async def _answer(self, request: Request, token: str, check: Check | None) -> Answer:
        headers = {"Authorization": f"Bearer {token}"}
        if request.content is not None:
            headers["Content-Type"] = request.content_type
        message = self._http.build_request(
            request.verb,
            self._base_url + request.path,
            params=request.parameters or None,
            content=request.content,
            headers=headers,
        )
        if check is not None:
            check()
        with checked_before_each_write(check):
            response = await self._http.send(message, stream=True, auth=None, follow_redirects=False)
        async with contextlib.aclosing(response):
            content = bytearray()
            # Decompressed piece by piece, so that a decompression bomb is stopped in time.
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > request.largest:
                    raise AnswerTooLarge(request.call, request.largest)
        self.server_time = _date_in(response.headers) or self.server_time
        return Answer(response.status_code, response.headers, bytes(content))


def _date_in(headers: Mapping[str, str]) -> datetime | None:
    try:
        return parsedate_to_datetime(headers["date"]).astimezone(UTC)
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
