"""What a failed call means: try again later, mend a setting, or the answer is of no use.

    no connection, too slow, 408, 409, 425, 429, 5xx       ModelUnavailable, after the provider's own waiting time
    401, 403, 404, 400, a redirection, no credit           ModelRefused, which names the setting to mend
    an answer that is too long, compressed, or no JSON     BadModelAnswer

Of what the provider or the HTTP library says, only statuses and kinds of error are kept: their texts quote keys and
mail.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from postroom.core.errors import BadModelAnswer, ModelRefused, ModelUnavailable
from postroom.decide.model_replies import CallFailed

if TYPE_CHECKING:
    from postroom.sections import ModelSettings

# The provider may name any time; a day is the longest that is believed.
LONGEST_WAIT = timedelta(days=1)
NOT_SENT = frozenset({"pool", "connect"})
LATER = frozenset({408, 409, 425, 429})


class ReplyTooLong(Exception):
    """An answer that is not read to its end."""


class Redirected(Exception):
    """An answer that leads elsewhere, with its status."""


def failure_of(error: Exception, settings: "ModelSettings") -> CallFailed:
    """What the error means, and whether the call may have to be paid for."""
    for cause in _causes(error):
        if isinstance(cause, ReplyTooLong):
            return CallFailed(BadModelAnswer(f"the model's answer is of no use: {cause}"), charged=True)
        if isinstance(cause, Redirected):
            return _refused(
                f"model.base_url redirects elsewhere ({cause}), which is not followed; set the right address"
            )
    match error:
        case TimeoutError() | ModelRequestTimeout() | ModelTimeoutError():
            slow = f"the model gave no whole answer within {settings.timeout_s:g} s (model.timeout_s)"
            return CallFailed(ModelUnavailable(slow), charged=True)
        case ModelConnectionError():
            place = settings.base_url or settings.provider
            unreachable = (
                f"the model at {place} cannot be reached ({_kind(error)}); check the network and model.base_url"
            )
            return CallFailed(ModelUnavailable(unreachable), charged=error.phase not in NOT_SENT)
        case ModelHTTPError():
            return _by_status(error, settings)
        case UserError():
            return CallFailed(
                ModelRefused(f"the model {settings.name!r} cannot be asked; check model.name"), charged=False
            )
        case ModelAPIError() | UnexpectedModelBehavior():
            return CallFailed(BadModelAnswer("the model's answer is not in the form of its interface"), charged=True)
        case _:
            # What the libraries make of an answer that is JSON, but nothing they expect.
            return CallFailed(
                BadModelAnswer(f"the model's answer cannot be read ({type(error).__name__})"), charged=True
            )


def _by_status(error: ModelHTTPError, settings: "ModelSettings") -> CallFailed:
    status = error.status_code
    after = None if error.retry_after is None else min(timedelta(seconds=max(0, error.retry_after)), LONGEST_WAIT)
    if isinstance(error, ModelQuotaExceededError):
        return _refused(f"the provider says that the account has no credit left ({status}); top it up there")
    if isinstance(error, ModelContextWindowExceededError):
        return _refused(f"the mail and the rules are too long for the model ({status}); choose another model.name")
    match status:
        case _ if status in LATER or status >= 500:
            return CallFailed(ModelUnavailable(f"the model's provider answers {status}", after), charged=False)
        case 401 | 403:
            return _refused(f"the provider does not accept the key ({status}); set model.api_key")
        case 404:
            place = settings.base_url or "its provider"
            return _refused(
                f"there is no model {settings.name!r} at {place} (404); check model.name and model.base_url"
            )
        case _:
            return _refused(
                f"the provider refuses the request ({status}); check model.name, model.provider and model.base_url"
            )


def _refused(message: str) -> CallFailed:
    return CallFailed(ModelRefused(message), charged=False)


def _kind(error: BaseException) -> str:
    """The innermost cause by its kind, such as ConnectError."""
    return type(list(_causes(error))[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from."""
    each: BaseException | None = error
    for _ in range(20):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__
