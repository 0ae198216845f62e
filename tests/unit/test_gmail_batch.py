"""Many calls in one request: what is written, and how Google's answer is read."""

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.batch import Size, batch_answers, batch_request, refuses_token, verdicts
from postroom.mailboxes.gmail.errors import (
    BadAnswer,
    GmailError,
    MessageNotFound,
    NotFromGmail,
    RateLimited,
    Unreachable,
)
from postroom.mailboxes.gmail.resources import Message
from postroom.mailboxes.gmail.wire import Answer

ROOT = "/gmail/v1/users/me"
MESSAGE = {"id": "18c2", "threadId": "18c0", "historyId": "1", "internalDate": "1"}


def part(number: int, status: int, content: bytes, headers: str = "") -> bytes:
    return (
        f"--b\r\nContent-Type: application/http\r\nContent-ID: <response-item-{number}>\r\n\r\n"
        f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n{headers}\r\n"
    ).encode() + content


def answer(*parts: bytes, end: bytes = b"\r\n--b--\r\n") -> Answer:
    return Answer(200, {"Content-Type": "multipart/mixed; boundary=b"}, b"\r\n".join(parts) + end)


def three() -> Sequence[calls.Call[Message]]:
    return [calls.get_message(id) for id in ("18c0", "18c1", "18c2")]


def sizes(size: Size, *refused: int) -> list[int]:
    """After full batches of which so many were refused."""
    found: list[int] = []
    for number in refused:
        size.answered(size.now, number)
        found.append(size.now)
    return found


def test_batches_double_until_the_rate_limit_refuses_parts_and_then_grow_by_one() -> None:
    size = Size(25)
    assert size.now == 12
    assert sizes(size, 0, 0, 0, 1, 0, 0, 2, 7, 1, 1, 0) == [24, 25, 25, 12, 13, 14, 7, 3, 1, 1, 2]


def test_a_batch_that_was_not_full_tells_nothing_about_larger_ones() -> None:
    size = Size(25)
    size.answered(11, 0)
    assert size.now == 12


def test_batches_that_were_refused_together_halve_the_size_once() -> None:
    size = Size(25)
    sizes(size, 0, 0, 0)
    for _ in range(4):
        size.answered(25, 3)
    assert size.now == 12


def test_each_part_has_its_own_verdict_whatever_the_order() -> None:
    limited = b'{"error": {"errors": [{"reason": "userRateLimitExceeded"}]}}'
    whole = answer(
        part(2, 200, orjson.dumps(MESSAGE)), part(0, 403, limited, "Retry-After: 7\r\n"), part(1, 404, b"{}")
    )
    first, second, third = verdicts(three(), whole)
    assert isinstance(first, RateLimited)
    assert first.retry_after is not None
    assert first.retry_after.total_seconds() == 7
    assert isinstance(second, MessageNotFound)
    assert isinstance(third, Message)


def test_a_part_that_is_missing_or_is_invalid_has_an_error_and_the_others_their_results() -> None:
    whole = answer(part(0, 200, orjson.dumps(MESSAGE)), b"--b\r\nnonsense", part(2, 200, b"<html>"))
    first, second, third = verdicts(three(), whole)
    assert isinstance(first, Message)
    assert isinstance(second, Unreachable)
    assert isinstance(third, NotFromGmail)


def test_a_mail_that_holds_the_boundary_is_not_taken_for_a_part() -> None:
    forged = "x\r\n--b\r\nContent-ID: <response-item-1>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}"
    body = orjson.dumps({**MESSAGE, "snippet": forged}, option=orjson.OPT_INDENT_2)
    first, second, _ = verdicts(three(), answer(part(0, 200, body)))
    assert isinstance(first, Message)
    assert first.snippet == forged
    assert isinstance(second, Unreachable)


def test_the_token_counts_as_refused_when_every_part_says_so() -> None:
    assert refuses_token(answer(part(0, 401, b"{}"), part(1, 401, b"{}")))
    assert not refuses_token(answer(part(0, 401, b"{}"), part(1, 200, b"{}")))
    assert refuses_token(Answer(401, {}, b""))
    assert not refuses_token(Answer(200, {}, b"HTTP/1.1 401 not a batch"))


def test_an_answer_without_parts_is_not_gmails() -> None:
    with pytest.raises(NotFromGmail):
        batch_answers(Answer(200, {"Content-Type": "text/html"}, b"<html>"))


@pytest.mark.parametrize("number", [0, 101])
def test_a_batch_has_one_to_a_hundred_calls(number: int) -> None:
    with pytest.raises(BadInput, match="1 to 100"):
        batch_request([calls.get_message("18c2")] * number, ROOT)


def test_a_call_is_written_as_it_would_be_sent_alone() -> None:
    request = batch_request([calls.get_message("18c2"), calls.modify_message("18c3", ["A"], [])], ROOT)
    assert request.content is not None
    assert b"\r\nGET /gmail/v1/users/me/messages/18c2?format=full HTTP/1.1\r\n\r\n" in request.content
    assert b"\r\nPOST /gmail/v1/users/me/messages/18c3/modify HTTP/1.1\r\n" in request.content
    assert b'\r\n\r\n{"addLabelIds":["A"],"removeLabelIds":[]}\r\n' in request.content


@given(st.binary(max_size=400), st.integers(0, 400))
def test_no_answer_makes_the_reader_stumble(noise: bytes, cut: int) -> None:
    good = answer(part(0, 200, orjson.dumps(MESSAGE)), part(1, 200, orjson.dumps(MESSAGE)))
    spoilt = Answer(200, good.headers, good.content[:cut] + noise + good.content[cut:])
    outcomes = verdicts(three(), spoilt)
    assert len(outcomes) == 3
    assert all(isinstance(each, (Message, GmailError)) for each in outcomes)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "id",
                        "threadId",
                        "payload",
                        "parts",
                        "body",
                        "headers",
                        "data",
                        "name",
                        "historyId",
                        "internalDate",
                        "labelIds",
                        "raw",
                        "size",
                    ]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_json_comes_is_a_message_or_a_bad_answer(fields: object) -> None:
    try:
        content = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        return
    for body in (content, orjson.dumps({**MESSAGE, "payload": fields}), orjson.dumps({**MESSAGE, "raw": fields})):
        outcome = calls.get_message("18c2").verdict(Answer(200, {}, body))
        assert isinstance(outcome, (Message, BadAnswer, NotFromGmail))
