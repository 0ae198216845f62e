"""Reads a refusal of Google's API: which error of ours an HTTP status and Google's error object mean."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import cast

import httpx2
import orjson

from postroom.gmail.errors import (
    Forbidden,
    GmailError,
    MissingScope,
    RateLimited,
    Refused,
    ServerError,
    Unauthorized,
)

QUOTA_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "quotaExceeded"})

# The 403 reasons that are not about a scope, with what helps against each.
FORBIDDEN_REMEDIES = {
    "accessNotConfigured": "enable the Gmail API for the Google Cloud project",
    "SERVICE_DISABLED": "enable the Gmail API for the Google Cloud project",
    "domainPolicy": "ask the administrator of the domain to allow apps to use Gmail",
    "forbidden": "check that the token belongs to the mailbox that is named",
}

LONGEST_WAIT = timedelta(days=1)

_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_RETRY_AFTER_IN_TEXT = re.compile(r"Retry after (\S{1,40})", re.IGNORECASE)


def refusal(call: str, scope: str, response: httpx2.Response) -> GmailError:
    """The error for an answer whose status is not a success. What a 404 means, the caller knows better."""
    status = response.status_code
    error = _error_object(response.content)
    reason = _reason(error)
    if status == 401:
        return Unauthorized(call)
    if status == 429 or (status == 403 and reason in QUOTA_REASONS):
        return RateLimited(call, reason or "too many requests", _retry_after(response.headers, error))
    if status == 403 and reason in FORBIDDEN_REMEDIES:
        return Forbidden(call, reason, FORBIDDEN_REMEDIES[reason])
    if status == 403:
        return MissingScope(call, reason or "no reason given", scope)
    if status == 408 or status >= 500:
        return ServerError(call, status, _retry_after(response.headers, error))
    return Refused(call, status, reason or "no reason given", "check the API address and the values that were sent")


def _error_object(content: bytes) -> Mapping[str, object]:
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    error = cast("dict[str, object]", answer).get("error") if isinstance(answer, dict) else None
    return cast("dict[str, object]", error) if isinstance(error, dict) else {}


def _reason(error: Mapping[str, object]) -> str:
    """Google's one-word reason. Newer answers carry it in `details`, older ones in `errors`, all have a `status`."""
    for key in ("errors", "details"):
        entries = error.get(key)
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            reason = cast("dict[str, object]", entry).get("reason") if isinstance(entry, dict) else None
            if isinstance(reason, str) and _REASON.fullmatch(reason):
                return reason
    status = error.get("status")
    return status if isinstance(status, str) and _REASON.fullmatch(status) else ""


def _retry_after(headers: Mapping[str, str], error: Mapping[str, object]) -> timedelta | None:
    """Google's waiting time: the Retry-After header, or the moment that Gmail writes into the error's text.

    A moment is compared with the answer's own Date, so that a wrong clock on our side does not matter.
    """
    header = headers.get("Retry-After", "").strip()
    if header.isascii() and header.isdigit():
        return min(timedelta(seconds=min(int(header), 10**9)), LONGEST_WAIT)
    text = error.get("message")
    found = _RETRY_AFTER_IN_TEXT.search(text) if isinstance(text, str) else None
    until = _moment(header) or (_moment(found.group(1)) if found else None)
    answered = _moment(headers.get("Date", ""))
    if until is None or answered is None or until <= answered:
        return None
    return min(until - answered, LONGEST_WAIT)


def _moment(text: str) -> datetime | None:
    """An HTTP date or an ISO time; None for anything else, and for a time without a zone."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text)
        except (ValueError, IndexError, OverflowError, TypeError):
            continue
        if moment.tzinfo is not None:
            return moment
    return None
