"""Asks a provider: one forced tool call, over one HTTP client that trusts nothing it receives.

It follows no redirects (the key and the mail go only to the address in the settings), accepts no compressed answer, and
gives up on an answer that is too long or takes too long. A request is repeated only where the model refuses one of its
parameters: then without it, and from then on always so. Nothing else is retried here: jobs are.
"""

import asyncio
import ssl
from functools import cache
from typing import TYPE_CHECKING

import httpx2
import orjson

from postroom.core.mail.message import storable
from postroom.core.rules.model_decision import decision_schema
from postroom.triage.decide.model_errors import Redirected, Refusal, ReplyTooLong, failure_of
from postroom.triage.decide.model_interfaces import Question, interface_of
from postroom.triage.decide.model_replies import Reply

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

LONGEST_REPLY = 1024 * 1024
CONNECT_S = 10.0


class ProviderClient:
    """A client for the configured model."""

    def __init__(self, settings: "ModelSettings") -> None:
        self._settings = settings
        self._interface = interface_of(settings)
        self._choice = self._interface.first_choice()
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s)),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **self._interface.headers},
            follow_redirects=False,
            verify=_certificates(),
        )
        self._has_answered = False

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, system: str, user: str, labels: tuple[str, ...]) -> Reply:
        """Ask the model. Raises CallFailed."""
        question = Question(storable(system), storable(user), decision_schema(labels))
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                answer = await self._answer(question)
            reply = self._interface.read(orjson.loads(answer))
        except Exception as error:
            # Drop the cause, which may quote the mail, the answer or the key.
            raise failure_of(error, self._settings, self._has_answered) from None
        self._has_answered = True
        return reply

    async def _answer(self, question: Question) -> bytes:
        """The body of the answer. What the model refuses is left out, and remembered once it has answered without."""
        choice = dict(self._choice)
        while True:
            try:
                answer = await self._post(orjson.dumps(self._interface.body(question, choice)))
            except Refusal as refusal:
                said = refusal.about_the_request()
                refused = self._interface.refused_parameter(said, choice) if said else None
                if refused is None:
                    raise
                choice[refused] += 1
            else:
                self._choice = {name: max(at, self._choice[name]) for name, at in choice.items()}
                return answer

    async def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        async with self._http.stream("POST", self._interface.url, content=body, headers=headers) as response:
            _check_head(response)
            content = bytearray()
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > LONGEST_REPLY:
                    raise ReplyTooLong(f"it is longer than {LONGEST_REPLY:,} bytes")
        if not response.is_success:
            raise Refusal(response.status_code, response.headers, bytes(content))
        return bytes(content)


@cache
def _certificates() -> ssl.SSLContext:
    """The TLS context, cached since loading the certificates takes a tenth of a second."""
    return httpx2.create_ssl_context()


def _check_head(response: httpx2.Response) -> None:
    """Refuse an answer by its status and headers, before its body is read."""
    if 300 <= response.status_code < 400:
        raise Redirected(response.status_code)
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise ReplyTooLong("it is compressed, which was not asked for")
    length = response.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > LONGEST_REPLY:
        raise ReplyTooLong(f"it is longer than {LONGEST_REPLY:,} bytes")
