"""Errors as callers see them: a code to act on, the field, what is wrong, and what to do.

Internals are not exposed: errors that the caller cannot fix are described in general terms; the details are logged.
"""

from dataclasses import dataclass
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from postroom.core.errors import (
    AccessRefused,
    AccountUnusable,
    BadInput,
    Conflict,
    DatabaseReplaced,
    IllegalMove,
    IntakeRefused,
    LeaseLost,
    MailboxLater,
    NotAdmitted,
    NotFound,
    PostroomError,
    Refused,
    SafetyRefused,
    SenderDisabled,
    StoreError,
    TooFast,
    VaultError,
)
from postroom.core.harmless import harmless

Code = Literal[
    "bad_input",
    "conflict",
    "refused",
    "not_found",
    "lease_lost",
    "no_room",
    "account_unusable",
    "not_admitted",
    "unavailable",
    "internal",
]
RETRY_AFTER_S = 5
ACCOUNT_RETRY_AFTER_S = 60
NOT_ADMITTED_RETRY_AFTER_S = 60
LONGEST_SHOWN = 4000


class ProblemForm(TypedDict):
    """A problem as it is sent."""

    code: Code
    field: str
    problem: str
    remedy: str
    retry_after_s: NotRequired[float]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call failed. `retry_after_s` is given when the same call may succeed later."""

    code: Code
    field: str
    problem: str
    remedy: str
    retry_after_s: float | None = None

    @property
    def text(self) -> str:
        return f"{_clean(self.field)}: {_clean(self.problem)}; {_clean(self.remedy)}"

    @property
    def form(self) -> ProblemForm:
        field, problem, remedy = _clean(self.field), _clean(self.problem), _clean(self.remedy)
        form = ProblemForm(code=self.code, field=field, problem=problem, remedy=remedy)
        if self.retry_after_s is not None:
            form["retry_after_s"] = self.retry_after_s
        return form


def _clean(text: str) -> str:
    """Text from outside, cut to a bounded length and to what JSON can represent."""
    cut = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return harmless(cut.encode("utf-8", "replace").decode("utf-8"))


INTERNAL = Problem(
    "internal", "server", "something went wrong internally", "try again; if it persists, check the server's log"
)
UNAVAILABLE = Problem(
    "unavailable", "server", "the database cannot do this now", f"try again in {RETRY_AFTER_S} s", RETRY_AFTER_S
)
REPLACED = Problem(
    "unavailable",
    "server",
    "the database file was replaced or removed while Postroom was running",
    "the operator has to put the file back and start Postroom again; then try again",
    RETRY_AFTER_S,
)


def problem_of(error: Exception) -> Problem:
    """The problem to report for this error."""
    match error:
        case AccessRefused():
            return Problem("refused", error.field, error.problem, error.remedy)
        case BadInput():
            code = "conflict" if isinstance(error, Conflict) else "bad_input"
            return Problem(code, error.field, error.problem, error.remedy)
        case SafetyRefused():
            return Problem("refused", "action", str(error), "do not repeat it, or ask the user; nothing was recorded")
        case Refused():
            return Problem("refused", "token", str(error), "use a token that may do this")
        case IllegalMove():
            return Problem("conflict", "status", str(error), "look up its state again")
        case NotFound():
            return Problem("not_found", "id", str(error), "look it up again")
        case LeaseLost():
            remedy = (
                "if your own first call succeeded, all is well; else drop it and ask for work again (queue.next, "
                "backfill.poll)"
            )
            problem = "it is not held under this lease: it has ended, the lease ran out, or it is someone else's"
            return Problem("lease_lost", "lease_token", problem, remedy)
        case TooFast():
            seconds = error.retry_after.total_seconds()
            return Problem("no_room", "rate_limit_per_hour", str(error), f"try again in {seconds:g} s", seconds)
        case IntakeRefused():
            seconds = error.retry_after.total_seconds()
            return Problem("no_room", "server", "nothing new is accepted now", f"try again in {seconds:g} s", seconds)
        case SenderDisabled():
            return Problem("refused", "sender", str(error), "ask the operator")
        case NotAdmitted():
            return Problem("not_admitted", "sender", str(error), "try again later", NOT_ADMITTED_RETRY_AFTER_S)
        case AccountUnusable():
            return Problem("account_unusable", error.field, error.problem, error.remedy, ACCOUNT_RETRY_AFTER_S)
        case MailboxLater():
            return Problem("unavailable", "server", str(error), f"try again in {RETRY_AFTER_S} s", RETRY_AFTER_S)
        case DatabaseReplaced():
            return REPLACED
        case StoreError():
            return UNAVAILABLE
        case _:
            return INTERNAL


def is_expected(error: Exception) -> bool:
    """Whether the error was raised on purpose, for the caller; all others are logged."""
    return isinstance(error, PostroomError) and not isinstance(error, (StoreError, VaultError))
