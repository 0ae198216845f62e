"""The error that callers see: enough to act on, nothing internal, and always serialisable."""

from datetime import timedelta

import orjson
import pytest

from postroom.core.errors import (
    AccessRefused,
    BadInput,
    Conflict,
    DatabaseUnavailable,
    IllegalMove,
    IntakeRefused,
    LeaseLost,
    NotFound,
    Refused,
)
from postroom.interfaces.http.json_http import STATUSES
from postroom.operations.problems import is_expected, problem_of

CANARY = "canary"


@pytest.mark.parametrize(
    ("error", "code", "status", "retry_after_s"),
    [
        (BadInput("sender", "is missing", "add it"), "bad_input", 400, None),
        (Conflict("key", "is taken", "use another"), "conflict", 409, None),
        (AccessRefused("token", "may not", "use another", "role"), "refused", 403, None),
        (Refused("not you"), "refused", 403, None),
        (NotFound("no such thing"), "not_found", 404, None),
        (LeaseLost("gone"), "lease_lost", 409, None),
        (IntakeRefused(f"the disk of /{CANARY} is full", timedelta(seconds=90)), "no_room", 503, 90),
        (DatabaseUnavailable(f"no answer from {CANARY}"), "unavailable", 503, 5),
        (RuntimeError(CANARY), "internal", 500, None),
        (IllegalMove("backfill job is active and cannot become pending"), "conflict", 409, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_reported_by_its_code_and_remedy(
    error: Exception, code: str, status: int, retry_after_s: float | None
):
    form = problem_of(error).form
    assert (form["code"], STATUSES[form["code"]], form.get("retry_after_s")) == (code, status, retry_after_s)
    assert form["field"]
    assert form["problem"]
    assert form["remedy"]
    assert CANARY not in problem_of(error).text


def test_what_nobody_outside_can_fix_belongs_into_the_log():
    assert is_expected(BadInput("a", "b", "c"))
    assert is_expected(IntakeRefused("full", timedelta(seconds=1)))
    assert not is_expected(DatabaseUnavailable("away"))
    assert not is_expected(RuntimeError("broken"))


def test_what_is_repeated_from_outside_is_cut_and_can_be_sent():
    problem = problem_of(BadInput("x" * 10**6, "half a character: \ud800", "leave it out"))
    assert len(problem.form["field"]) < 5000
    assert orjson.dumps(problem.form)
    assert problem.text.encode()
