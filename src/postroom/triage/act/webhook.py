"""Approvals through the user's own webhook: sends signed notices, and receives signed answers.

    X-Postroom-Signature: t=1763193600,v1=<HMAC-SHA256 of "1763193600.<body>", in hex>

The same secret signs both directions. Notices contain `event`, which no answer may have: nobody can send our own
words back to us as an answer. An answer is valid for five minutes, and once, because the action then no longer waits.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx2
import orjson
import structlog
from pydantic import Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from postroom.core.errors import BadInput, Conflict, Fatal, IllegalMove, NotFound, PostroomError, Refused, Retryable
from postroom.core.strict import Strict, problem_in
from postroom.store.actions.approvals import Approval
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.system.http_server.body import read_body
from postroom.system.wall_clock import Clock
from postroom.triage.act.approval_notice import notice_of
from postroom.triage.act.approvals import APPROVER, Approvals, in_words

log = structlog.get_logger()

HEADER = "X-Postroom-Signature"
TOLERANCE = timedelta(minutes=5)
TIMEOUT_S = 10.0
LARGEST_BODY = 16 * 1024
LONGEST_WAIT = timedelta(hours=1)
_SIGNATURE = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})", re.ASCII)
# Statuses that a retry may change.
_PASSING = frozenset({408, 425, 429})


def signature(secret: str, body: bytes, now: datetime) -> str:
    """Return the header for this body, sent now."""
    at = int(now.timestamp())
    return f"t={at},v1={_digest(secret, at, body)}"


def check_signature(secret: str, header: str, body: bytes, now: datetime) -> None:
    """Raise Refused unless the body was signed with the secret, within five minutes of now."""
    found = _SIGNATURE.fullmatch(header)
    if found is None or not hmac.compare_digest(_digest(secret, int(found[1]), body), found[2]):
        raise Refused(f"{HEADER} is missing or wrong; sign `t.body` with approvals.webhook_secret")
    if abs(now.timestamp() - int(found[1])) > TOLERANCE.total_seconds():
        raise Refused(f"{HEADER} was made more than five minutes from now; check the clocks, and sign when you send")


def _digest(secret: str, at: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Notify the webhook of waiting actions, and later of their answers. Each notice has an id, to recognise
    repeats."""

    http: httpx2.AsyncClient
    url: str
    secret: str
    clock: Clock
    public_url: str | None = None
    name: str = "webhook"

    async def post(self, approval: Approval, *, again: bool) -> str:
        return await self._send("approval.asked", approval)

    async def close(self, approval: Approval, reference: str) -> None:
        await self._send("approval.answered", approval)

    async def post_digest(self, id: UUID, text: str) -> None:
        named, event = f"approval.digest:{id}", "approval.digest"
        await self._deliver(named, {"id": named, "event": event, "what": text, "open": page_of(self.public_url)})

    async def _send(self, event: str, approval: Approval) -> str:
        id = f"{event}:{approval.id}"
        await self._deliver(id, _document(id, event, approval, self.public_url))
        return id

    async def _deliver(self, id: str, notice: Mapping[str, Any]) -> None:
        hook = SignedWebhook(self.http, self.url, self.secret, self.clock, "approvals", "approvals.webhook_url")
        await hook.deliver(id, notice)


@dataclass(frozen=True, slots=True)
class SignedWebhook:
    """An address that receives signed notices. `about` and `setting` are for its errors."""

    http: httpx2.AsyncClient
    url: str
    secret: str = field(repr=False)
    clock: Clock
    about: str
    setting: str

    async def deliver(self, id: str, notice: Mapping[str, Any]) -> None:
        """Send a notice, whose id tells repeats. Raises Retryable or Fatal if it was not accepted."""
        body = orjson.dumps(notice)
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": id,
            HEADER: signature(self.secret, body, self.clock()),
        }
        try:
            # Only the status of its response matters, so the body is not read.
            async with self.http.stream(
                "POST", self.url, content=body, headers=headers, timeout=TIMEOUT_S, follow_redirects=False
            ) as answer:
                self._check_status(answer.status_code, answer.headers.get("Retry-After", ""))
        except httpx2.HTTPError as error:
            raise Retryable(f"the webhook of {self.about} cannot be reached ({type(error).__name__})") from None

    def _check_status(self, status: int, retry_after: str) -> None:
        if 200 <= status < 300:
            return
        answered = f"the webhook of {self.about} answered {status}"
        if status >= 500 or status in _PASSING:
            wait = timedelta(seconds=int(retry_after)) if re.fullmatch(r"[0-9]{1,6}", retry_after) else None
            raise Retryable(answered, None if wait is None else min(wait, LONGEST_WAIT))
        raise Fatal(f"{answered}; check {self.setting}, redirects are not followed")


def _document(id: str, event: str, approval: Approval, public_url: str | None) -> dict[str, Any]:
    """Build a notice: enough to decide by, and the hash that an answer has to repeat."""
    notice = notice_of(approval)
    return {
        "id": id,
        "event": event,
        "action_id": str(approval.id),
        "action_hash": approval.action_hash,
        "state": approval.state,
        "answer": notice.answer,
        "account": approval.account,
        "action": approval.action_type,
        "parameters": dict(approval.parameters),
        "what": notice.what,
        "to": notice.to_whom,
        "sender": notice.sender,
        "subject": notice.subject,
        "decided_by": notice.decided_by,
        "confidence": approval.confidence,
        "why": notice.why,
        "expires_at": approval.expires_at,
        "open": page_of(public_url),
    }


def page_of(public_url: str | None) -> str | None:
    """Return the address of the live page, if it can be reached from elsewhere."""
    return None if public_url is None else f"{public_url}/"


class WebhookAnswer(Strict):
    """The body of an answer."""

    action_id: UUID = Field(description="the id of the action")
    action_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="the action's hash, as in the notice"
    )
    verdict: Literal["approve", "reject"] = Field(description="approve or reject")
    by: Annotated[str, Field(pattern=r"^[!-~][ -~]{0,99}$")] = Field(description="who answers, in ASCII")


class AnswerHook:
    """`POST /hooks/approvals`."""

    def __init__(self, approvals: Approvals, secret: str) -> None:
        self._approvals = approvals
        self._secret = secret

    async def take(self, request: Request) -> Response:
        """Return 200 with the outcome, 401 if not signed, 4xx if it does not count, 503 to try again later."""
        try:
            body = await _body(request)
            check_signature(self._secret, request.headers.get(HEADER, ""), body, self._approvals.clock())
            answer = _read(body)
            signed = Signature(new_id(), f"webhook:{answer.by}", APPROVER)
            became = await self._approvals.answer(answer.verdict, answer.action_id, answer.action_hash, signed)
        except PostroomError as error:
            return _error_response(error)
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse({"state": became.state, "reason": became.reason, "said": in_words(became)})


def _error_response(error: PostroomError) -> Response:
    match error:
        case Refused():
            status = 401
        case NotFound():
            status = 404
        case IllegalMove() | Conflict():
            status = 409
        case BadInput(field="body"):
            status = 413 if "large" in error.problem else 400
        case BadInput():
            status = 400
        case _:
            log.warning("approval.answer_not_taken", error=type(error).__name__)
            return JSONResponse({"error": "try again later"}, 503, {"Retry-After": "10"})
    return JSONResponse({"error": str(error)}, status)


def _read(body: bytes) -> WebhookAnswer:
    try:
        return WebhookAnswer.model_validate_json(body)
    except ValidationError as error:
        raise problem_in(error, WebhookAnswer, "an answer", "see docs/how-to/approvals.md") from None


async def _body(request: Request) -> bytes:
    body = await read_body(request.receive, LARGEST_BODY)
    if body is None:
        raise BadInput("body", "is too large for an answer", f"send at most {LARGEST_BODY} bytes")
    return bytes(body)
