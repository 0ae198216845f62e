"""Translates a refusal of Google's, an HTTP status and an error object, into one of our errors."""

import re
from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import cast

import orjson

from postroom.mailboxes.gmail.errors import (
    Forbidden,
    GmailError,
    GmailRefused,
    NotFromGmail,
    QuotaExhausted,
    RateLimited,
    ScopeMissing,
    ServerError,
    Unauthorized,
)
from postroom.mailboxes.gmail.methods import Method
from postroom.system.waiting_times import read_date, retry_after, wait_until

RATE_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"})
EXHAUSTED_REASONS = frozenset({"dailyLimitExceeded", "quotaExceeded"})
SCOPE_REASONS = frozenset({"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"})

# The other 403 reasons, each with its remedy.
FORBIDDEN_REMEDIES = {
    "accessNotConfigured": "enable the Gmail API for the Google Cloud project",
    "SERVICE_DISABLED": "enable the Gmail API for the Google Cloud project",
    "domainPolicy": "ask the administrator of the domain to allow apps to use Gmail",
    "forbidden": "check that the token belongs to the mailbox that is named",
}
FORBIDDEN = "look up this reason in Google's guide to resolving Gmail API errors; trying again does not help"

LONGEST_WAIT = timedelta(days=1)
EXHAUSTED_WAIT = timedelta(hours=1)
# Daily quotas are reset at midnight in California, which is never later than this.
NEW_DAY_UTC = timedelta(hours=8)

_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_RETRY_AFTER_IN_TEXT = re.compile(r"Retry after (\S{1,40})", re.IGNORECASE)


def refusal(method: Method, status: int, headers: Mapping[str, str], content: bytes) -> GmailError:
    """The error for an answer whose status is not a success. The caller knows better what a 404 means."""
    error = _error_object(content)
    reason = _reason(error)
    call = method.name
    if status < 400:
        return NotFromGmail(f"it redirects elsewhere ({status}), where the access token must not be sent")
    if status == 401:
        return Unauthorized(call)
    if status in (403, 429) and reason in EXHAUSTED_REASONS:
        return QuotaExhausted(call, reason, _retry_after(headers, error) or _until_new_quota(reason, headers))
    if status == 429 or (status == 403 and reason in RATE_REASONS):
        return RateLimited(call, reason or "too many requests", _retry_after(headers, error))
    if status == 403 and reason in SCOPE_REASONS:
        return ScopeMissing(call, reason, method.scope)
    if status == 403:
        return Forbidden(call, reason or "no reason given", FORBIDDEN_REMEDIES.get(reason, FORBIDDEN))
    if status == 408 or status >= 500:
        return ServerError(call, status, _retry_after(headers, error))
    return GmailRefused(
        call, status, reason or "no reason given", "check the API address and the values that were sent"
    )


def reason_in(content: bytes) -> str:
    """Google's one-word reason for a refusal by any of its services; empty if there is none."""
    return _reason(_error_object(content))


def _error_object(content: bytes) -> Mapping[str, object]:
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    error = cast("dict[str, object]", answer).get("error") if isinstance(answer, dict) else None
    return cast("dict[str, object]", error) if isinstance(error, dict) else {}


def _reason(error: Mapping[str, object]) -> str:
    """Google's one-word reason. Newer answers have it in `details`, older ones in `errors`; all have a `status`."""
    for key in ("errors", "details"):
        entries = error.get(key)
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            reason = cast("dict[str, object]", entry).get("reason") if isinstance(entry, dict) else None
            if isinstance(reason, str) and _REASON.fullmatch(reason):
                return reason
    status = error.get("status")
    return status if isinstance(status, str) and _REASON.fullmatch(status) else ""


def _retry_after(headers: Mapping[str, str], error: Mapping[str, object]) -> timedelta | None:
    """Google's waiting time: the Retry-After header, or the time that Gmail writes into the error's text."""
    text = error.get("message")
    found = _RETRY_AFTER_IN_TEXT.search(text) if isinstance(text, str) else None
    named = retry_after(headers, LONGEST_WAIT)
    return wait_until(found.group(1), headers, LONGEST_WAIT) if named is None and found else named


def _until_new_quota(reason: str, headers: Mapping[str, str]) -> timedelta:
    answered = read_date(headers.get("Date", ""))
    if reason != "dailyLimitExceeded" or answered is None:
        return EXHAUSTED_WAIT
    midnight = answered.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    new_day = midnight + NEW_DAY_UTC
    return new_day - answered if answered < new_day else new_day + timedelta(days=1) - answered
