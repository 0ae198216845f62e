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

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from postroom.core.errors import BadModelAnswer, ModelRefused, ModelUnavailable
from postroom.triage.decide.model_replies import CallFailed

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

# A provider may name any time; we wait at most a day.
LONGEST_WAIT = timedelta(days=1)
NOT_SENT = frozenset({"pool", "connect"})
LATER = frozenset({408, 409, 425, 429})
TOO_LARGE = 413
OF_THE_REQUEST = frozenset({400, TOO_LARGE, 422})
# How providers say that it is due to the mail. Not "too large": they also say that about model.max_output_tokens.
MAIL_PHRASES = (
    *("content_filter", "content filter", "content_policy", "content policy", "content management policy"),
    *("context_length", "context length", "context window", "prompt is too long", "above_max_length", "moderation"),
)
# Anthropic answers 400 when the monthly limit is reached.
CREDIT_PHRASES = ("usage limits", "credit balance")


class ReplyTooLong(Exception):
    """An answer is too long, or compressed, and is not read."""


class Redirected(Exception):
    """The answer is a redirect; carries its status."""


def failure_of(error: Exception, settings: "ModelSettings", has_answered: bool = False) -> CallFailed:
    """The meaning of the error, and whether the call may be charged. `has_answered` is whether the provider has
    answered anything with these settings."""
    for cause in _causes(error):
        if isinstance(cause, ReplyTooLong):
            return CallFailed(BadModelAnswer(f"the model's answer cannot be used: {cause}"), charged=True)
        if isinstance(cause, Redirected):
            return _model_refused(
                f"model.base_url redirects elsewhere ({cause}), which is not followed; set the right address"
            )
    match error:
        case TimeoutError() | ModelRequestTimeout() | ModelTimeoutError():
            too_slow = f"the model gave no complete answer within {settings.timeout_s:g} s (model.timeout_s)"
            return CallFailed(ModelUnavailable(too_slow), charged=True)
        case ModelConnectionError():
            place = settings.base_url or settings.provider
            unreachable = (
                f"the model at {place} cannot be reached ({_kind(error)}); check the network and model.base_url"
            )
            return CallFailed(ModelUnavailable(unreachable), charged=error.phase not in NOT_SENT)
        case ModelHTTPError():
            return _by_status(error, settings, has_answered)
        case UserError():
            return CallFailed(
                ModelRefused(f"the model {settings.name!r} cannot be asked; check model.name"), charged=False
            )
        case ModelAPIError() | UnexpectedModelBehavior():
            return CallFailed(BadModelAnswer("the model's answer is not in the form of its interface"), charged=True)
        case _:
            # The libraries raise various errors for JSON that they do not expect.
            return CallFailed(
                BadModelAnswer(f"the model's answer cannot be read ({type(error).__name__})"), charged=True
            )


def _by_status(error: ModelHTTPError, settings: "ModelSettings", has_answered: bool) -> CallFailed:
    status = error.status_code
    after = None if error.retry_after is None else min(timedelta(seconds=max(0, error.retry_after)), LONGEST_WAIT)
    if isinstance(error, ModelQuotaExceededError):
        return _no_credit(status)
    if isinstance(error, ModelContextWindowExceededError) or status == TOO_LARGE:
        return _mail_refused(f"the mail and the rules are too long for the model ({status}); see model.name")
    if status in LATER or status >= 500:
        return CallFailed(ModelUnavailable(f"the model's provider answers {status}", after), charged=False)
    if isinstance(error, ModelAuthenticationError):
        return _model_refused(f"the provider does not accept the key ({status}); set model.api_key")
    if isinstance(error, ModelNotFoundError):
        place = settings.base_url or "its provider"
        return _model_refused(
            f"there is no model {settings.name!r} at {place} ({status}); check model.name and model.base_url"
        )
    return _of_the_request(error, has_answered)


def _of_the_request(error: ModelHTTPError, has_answered: bool) -> CallFailed:
    """Classify a refused request by the provider's text, which is never kept."""
    status, text = error.status_code, str(error.body).casefold()
    if status in OF_THE_REQUEST:
        if any(words in text for words in MAIL_PHRASES):
            return _mail_refused(f"the provider refuses this mail for its content or its length ({status})")
        if any(words in text for words in CREDIT_PHRASES):
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
