"""Maps the failure of a call to an error: retry later, fix a setting, or give up on the answer.

    no connection, too slow, 408, 409, 425, 429, 5xx       ModelUnavailable, after the provider's own waiting time
    401, 403, 404, a redirect, no credit                   ModelRefused, which names the setting to fix
    400, 413, 422                                          BadModelAnswer if it is due to the mail, else ModelRefused
    an answer that is too long, compressed, or no JSON     BadModelAnswer

A request may be refused because of a setting, or because of the mail in it, which is too long or blocked by a content
filter. It is the mail if the provider says so, or if it has answered with the same settings before: blaming a setting
would park the job forever.

Only statuses and types of errors are kept from the provider and the HTTP library: their texts may quote keys and mail.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import httpx2
import orjson

from postroom.core.errors import BadModelAnswer, ModelRefused, ModelUnavailable
from postroom.system.waiting_times import retry_after
from postroom.triage.decide.model_interfaces import NotInForm
from postroom.triage.decide.model_replies import CallFailed

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

# A provider may name any time; we wait at most a day.
LONGEST_WAIT = timedelta(days=1)
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
LATER = frozenset({408, 409, 425, 429})
TOO_LARGE = 413
OF_THE_REQUEST = frozenset({400, TOO_LARGE, 422})
# How providers say that it is due to the mail. Not "too large": they also say that about model.max_output_tokens.
CONTENT_PHRASES = (
    *("content_filter", "content filter", "content_policy", "content policy", "content management policy"),
    "moderation",
)
LENGTH_PHRASES = (
    *("context_length", "context length", "context window", "context size", "prompt is too long", "above_max_length"),
    "reduce the length of the messages",
)
# OpenAI's interface answers 429 when there is no credit left, Anthropic's 400.
NO_CREDIT = frozenset(
    {
        "insufficient_quota", "billing_hard_limit_reached", "credit_balance_exhausted", "billing_error",
        "organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
    }
)  # fmt: skip
CREDIT_PHRASES = ("usage limits", "credit balance")


class ReplyTooLong(Exception):
    """An answer is too long, or compressed, and is not read."""


class Redirected(Exception):
    """The answer is a redirect; carries its status."""


class Refusal(Exception):
    """An answer with the status of an error. The provider's text serves to tell refusals apart, and is never kept."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.after = retry_after(headers, LONGEST_WAIT)
        self.text = body.decode("utf-8", "replace").casefold()
        error = _error_in(body)
        self.parameter, self.message = _text(error.get("param")), _text(error.get("message"))
        self.kinds = frozenset({_text(error.get("code")), _text(error.get("type"))})

    def about_the_request(self) -> str:
        """The fault in the request, the parameter first; empty if it is something else."""
        if self.status not in OF_THE_REQUEST or self.says(*CONTENT_PHRASES, *LENGTH_PHRASES):
            return ""
        return f"{self.parameter} {self.message or self.text}"

    def says(self, *phrases: str) -> bool:
        return any(each in self.text for each in phrases)


def failure_of(error: Exception, settings: "ModelSettings", has_answered: bool = False) -> CallFailed:
    """The meaning of the error, and whether the call may be charged. `has_answered` is whether the provider has
    answered anything with these settings."""
    match error:
        case Refusal():
            return _refused(error, settings, has_answered)
        case Redirected():
            return _model_refused(
                f"model.base_url redirects elsewhere ({error}), which is not followed; set the right address"
            )
        case ReplyTooLong():
            return CallFailed(BadModelAnswer(f"the model's answer cannot be used: {error}"), charged=True)
        case NotInForm():
            return CallFailed(BadModelAnswer("the model's answer is not in the form of its interface"), charged=True)
        case TimeoutError() | httpx2.ReadTimeout() | httpx2.WriteTimeout():
            too_slow = f"the model gave no complete answer within {settings.timeout_s:g} s (model.timeout_s)"
            return CallFailed(ModelUnavailable(too_slow), charged=True)
        case httpx2.TransportError():
            place = settings.base_url or settings.provider
            unreachable = (
                f"the model at {place} cannot be reached ({_kind(error)}); check the network and model.base_url"
            )
            return CallFailed(ModelUnavailable(unreachable), charged=not isinstance(error, NOT_SENT))
        case httpx2.InvalidURL():
            return _model_refused("model.base_url is not an address that can be asked; set the right one")
        case _:
            return CallFailed(
                BadModelAnswer(f"the model's answer cannot be read ({type(error).__name__})"), charged=True
            )


def _refused(refusal: Refusal, settings: "ModelSettings", has_answered: bool) -> CallFailed:
    status, kinds = refusal.status, refusal.kinds
    place = settings.base_url or "its provider"
    if status == 402 or kinds & NO_CREDIT:
        return _no_credit(status)
    # Some servers of one's own answer 500 to a prompt that is too long.
    if status == TOO_LARGE or ((status in OF_THE_REQUEST or status >= 500) and refusal.says(*LENGTH_PHRASES)):
        return _mail_refused(f"the mail and the rules are too long for the model ({status}); see model.name")
    if status in LATER or status >= 500:
        return CallFailed(ModelUnavailable(f"the model's provider answers {status}", refusal.after), charged=False)
    if status in (401, 403) or "invalid_api_key" in kinds:
        return _model_refused(f"the provider does not accept the key ({status}); set model.api_key")
    if status == 404 or "model_not_found" in kinds:
        return _model_refused(
            f"there is no model {settings.name!r} at {place} ({status}); check model.name and model.base_url"
        )
    if status in OF_THE_REQUEST:
        if refusal.says(*CONTENT_PHRASES):
            return _mail_refused(f"the provider refuses this mail for its content ({status})")
        if refusal.says(*CREDIT_PHRASES):
            return _no_credit(status)
        if has_answered:
            return _mail_refused(f"the provider refuses this mail, though it has answered about others ({status})")
    return _model_refused(
        f"the provider refuses the request ({status}); check model.name, model.provider and model.base_url"
    )


def _no_credit(status: int) -> CallFailed:
    return _model_refused(f"the provider says that the account has no credit left ({status}); top it up there")


def _mail_refused(message: str) -> CallFailed:
    return CallFailed(BadModelAnswer(message), charged=False)


def _model_refused(message: str) -> CallFailed:
    return CallFailed(ModelRefused(message), charged=False)


def _error_in(body: bytes) -> dict[str, Any]:
    """The fields of the error; servers put them in `error`, or leave that out."""
    try:
        answer = _fields(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}
    return _fields(answer.get("error")) or answer


def _fields(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.casefold() if isinstance(value, str) else ""


def _kind(error: BaseException) -> str:
    """The type of the innermost cause, such as ConnectError."""
    return type(list(_causes(error))[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes."""
    each: BaseException | None = error
    for _ in range(20):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__
