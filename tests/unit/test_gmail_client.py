"""How the Gmail client reads Google's answers."""

import base64
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from postroom.core.errors import BadInput, PostroomError
from postroom.mailboxes.gmail.errors import (
    BadAnswer,
    Forbidden,
    GmailError,
    GmailRefused,
    HistoryExpired,
    LabelExists,
    MessageNotFound,
    NotFromGmail,
    QuotaExhausted,
    RateLimited,
    ScopeMissing,
    ServerError,
    Unauthorized,
    Unreachable,
)
from support.gates import owners_client
from support.whole_gmail import WholeGmailClient

TOKEN = "ya29.very-secret-token"
MAIL = "The doctor says it is only a cold"
MESSAGE = {
    "id": "18c2f3a1b2c3d4e5",
    "threadId": "18c2f3a1b2c3d4e0",
    "labelIds": ["INBOX", "UNREAD"],
    "snippet": "Tom &amp; Ida&#39;s",
    "historyId": "4711",
    "internalDate": "1763200000123",
    "sizeEstimate": 42,
}

Answer = Callable[[httpx2.Request], httpx2.Response]


def client(answer: Answer) -> WholeGmailClient:
    async def token() -> str:
        return TOKEN

    return owners_client(httpx2.AsyncClient(transport=httpx2.MockTransport(answer)), "https://gmail.example/", token)


def answering(status: int, reason: str = "", headers: dict[str, str] | None = None, message: str = MAIL) -> Answer:
    error = {"code": status, "message": message, "errors": [{"domain": "global", "reason": reason, "message": message}]}
    return lambda request: httpx2.Response(status, json={"error": error}, headers=headers)


def saying(**fields: Any) -> Answer:
    return lambda request: httpx2.Response(200, json=fields)


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (401, "authError", Unauthorized),
        (429, "rateLimitExceeded", RateLimited),
        (429, "", RateLimited),
        (403, "rateLimitExceeded", RateLimited),
        (403, "userRateLimitExceeded", RateLimited),
        (403, "dailyLimitExceeded", QuotaExhausted),
        (403, "quotaExceeded", QuotaExhausted),
        (429, "quotaExceeded", QuotaExhausted),
        (403, "insufficientPermissions", ScopeMissing),
        (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT", ScopeMissing),
        (403, "", Forbidden),
        (403, "somethingNew", Forbidden),
        (403, "accessNotConfigured", Forbidden),
        (403, "domainPolicy", Forbidden),
        (404, "notFound", MessageNotFound),
        (400, "invalidArgument", GmailRefused),
        (408, "", ServerError),
        (500, "backendError", ServerError),
        (503, "backendError", ServerError),
        (302, "", NotFromGmail),
        (304, "", NotFromGmail),
    ],
)
async def test_every_status_has_its_error(status: int, reason: str, expected: type[GmailError]) -> None:
    with pytest.raises(GmailError) as caught:
        await client(answering(status, reason)).get_message("18c2f3a1b2c3d4e5")
    assert type(caught.value) is expected
    assert isinstance(caught.value, PostroomError)


async def test_a_404_of_the_history_means_that_it_has_expired() -> None:
    with pytest.raises(HistoryExpired) as caught:
        await client(answering(404, "notFound")).list_history(12)
    assert caught.value.start_history_id == 12


async def test_a_404_of_anything_else_is_not_taken_for_a_missing_message() -> None:
    with pytest.raises(GmailRefused):
        await client(answering(404, "notFound")).list_labels()


async def test_a_409_of_a_new_label_means_that_it_exists() -> None:
    with pytest.raises(LabelExists):
        await client(answering(409, "aborted")).create_label("Work")


async def test_a_missing_scope_is_named() -> None:
    with pytest.raises(ScopeMissing, match=r"https://www\.googleapis\.com/auth/gmail\.modify") as caught:
        await client(answering(403, "insufficientPermissions")).modify_message("18c2", add=["STARRED"])
    assert caught.value.scope == "https://www.googleapis.com/auth/gmail.modify"


async def test_a_switched_off_api_does_not_send_the_user_to_grant_a_scope() -> None:
    with pytest.raises(Forbidden, match="enable the Gmail API"):
        await client(answering(403, "accessNotConfigured")).get_profile()


@pytest.mark.parametrize(
    ("headers", "message", "expected"),
    [
        ({"Retry-After": "17"}, "", timedelta(seconds=17)),
        (
            {"Retry-After": "Sun, 15 Nov 2026 10:01:00 GMT", "Date": "Sun, 15 Nov 2026 10:00:00 GMT"},
            "",
            timedelta(minutes=1),
        ),
        (
            {"Date": "Sun, 15 Nov 2026 10:00:00 GMT"},
            "User-rate limit exceeded.  Retry after 2026-11-15T10:15:00.000Z",
            timedelta(minutes=15),
        ),
        ({"Date": "Sun, 15 Nov 2026 10:00:00 GMT"}, "Retry after 2026-11-15T09:00:00.000Z", None),
        ({"Retry-After": "99999999999999999999"}, "", timedelta(days=1)),
        ({"Retry-After": "soon"}, "Retry after lunch", None),
        ({}, "", None),
    ],
)
async def test_the_waiting_time_is_the_one_that_google_names(
    headers: dict[str, str], message: str, expected: timedelta | None
) -> None:
    with pytest.raises(RateLimited) as caught:
        await client(answering(429, "rateLimitExceeded", headers, message)).get_profile()
    assert caught.value.retry_after == expected


@pytest.mark.parametrize(
    ("reason", "date", "expected"),
    [
        ("dailyLimitExceeded", "Sun, 15 Nov 2026 10:00:00 GMT", timedelta(hours=22)),
        ("dailyLimitExceeded", "Sun, 15 Nov 2026 03:00:00 GMT", timedelta(hours=5)),
        ("dailyLimitExceeded", "", timedelta(hours=1)),
        ("dailyLimitExceeded", "Fri, 31 Dec 9999 23:59:59 GMT", timedelta(hours=1)),
        ("quotaExceeded", "Sun, 15 Nov 2026 10:00:00 GMT", timedelta(hours=1)),
    ],
)
async def test_a_quota_that_is_used_up_is_waited_for_until_there_is_a_new_one(
    reason: str, date: str, expected: timedelta
) -> None:
    """A day's quota begins anew at midnight in California, by the clock of the answer."""
    with pytest.raises(QuotaExhausted) as caught:
        await client(answering(403, reason, {"Date": date} if date else {}, "")).get_profile()
    assert caught.value.retry_after == expected


async def test_a_failed_connection_is_unreachable() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(Unreachable, match="ConnectError"):
        await client(answer).get_profile()


async def test_a_failure_that_quotes_the_token_does_not_pass_it_on() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.LocalProtocolError(f"Illegal header value b'Bearer {TOKEN}'", request=request)

    with pytest.raises(Unreachable) as caught:
        await client(answer).get_profile()
    assert TOKEN not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 409, 429, 500])
async def test_no_error_repeats_what_google_wrote_about_the_mail(status: int) -> None:
    with pytest.raises(GmailError) as caught:
        await client(answering(status, MAIL)).get_message("18c2f3a1b2c3d4e5")
    assert MAIL not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "content", [b"", b"<html>Sign in to the hotel's network</html>", b"[1]", b'"text"', b'{"id": "18c2"', b"\xff\xfe"]
)
async def test_an_answer_that_is_not_a_json_object_is_not_gmails(content: bytes) -> None:
    with pytest.raises(NotFromGmail) as caught:
        await client(lambda request: httpx2.Response(200, content=content)).get_profile()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": None},
        {"id": 5},
        {"historyId": "many"},
        {"historyId": True},
        {"internalDate": "9" * 30},
        {"payload": []},
        {"payload": {"parts": ["x"]}},
        {"payload": {"body": {"size": 3, "data": "!"}}},
        {"labelIds": "INBOX"},
    ],
)
async def test_a_message_with_a_wrong_field_is_a_bad_answer(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match=next(iter(wrong)) if "payload" not in wrong else "its field"):
        await client(saying(**{**MESSAGE, **wrong})).get_message("18c2")


@pytest.mark.parametrize("message_id", ["", "..", "18c2/modify", "18c2?x=1", "a b"])
async def test_an_id_that_would_change_the_address_is_not_sent(message_id: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError("a request was sent")

    with pytest.raises(BadInput, match="message_id"):
        await client(answer).get_message(message_id)


async def test_a_message_is_read_with_all_its_parts() -> None:
    text = "Grüße".encode()
    part: dict[str, Any] = {"partId": "0", "mimeType": "text/plain", "headers": [{"name": "X-Part", "value": "1"}]}
    part["body"] = {"size": len(text), "data": base64.urlsafe_b64encode(text).decode().rstrip("=")}
    file = {"partId": "1", "filename": "plan.pdf", "body": {"attachmentId": "ANGj", "size": 9}}
    payload: dict[str, Any] = {"partId": "", "mimeType": "multipart/mixed", "parts": [part, file]}
    payload["headers"] = [{"name": "SUBJECT", "value": "Hello"}, {"name": "Received", "value": "a"}]
    message = await client(saying(**MESSAGE, payload=payload)).get_message("18c2f3a1b2c3d4e5")
    assert message.payload is not None
    assert message.label_ids == {"INBOX", "UNREAD"}
    assert message.history_id == 4711
    assert message.internal_date == datetime(2025, 11, 15, 9, 46, 40, 123000, UTC)
    assert message.snippet == "Tom & Ida's"
    assert message.header("subject") == "Hello"
    assert message.header("X-Absent") is None
    assert [item.name for item in message.headers] == ["SUBJECT", "Received"]
    assert message.payload.parts[0].body.data == text
    assert message.payload.parts[1].body.attachment_id == "ANGj"


async def test_a_message_that_is_printed_shows_no_mail() -> None:
    body = {"size": 4, "data": base64.urlsafe_b64encode(MAIL.encode()).decode()}
    payload = {"mimeType": "text/plain", "headers": [{"name": "Subject", "value": MAIL}], "body": body}
    message = await client(saying(**{**MESSAGE, "snippet": MAIL}, payload=payload)).get_message("18c2")
    assert MAIL not in repr(message)
    assert MAIL not in repr(message.headers)


async def test_parts_nested_beyond_reason_are_cut_off() -> None:
    payload: dict[str, Any] = {"mimeType": "multipart/mixed"}
    for _ in range(200):
        payload = {"mimeType": "multipart/mixed", "parts": [payload]}
    message = await client(saying(**MESSAGE, payload=payload)).get_message("18c2")
    depth, part = 0, message.payload
    while part and part.parts:
        depth, part = depth + 1, part.parts[0]
    assert depth == 64


async def test_a_raw_message_is_decoded() -> None:
    raw = base64.urlsafe_b64encode(b"Subject: x\r\n\r\n\xff").decode()
    message = await client(saying(**MESSAGE, raw=raw)).get_message("18c2", format="raw")
    assert message.raw == b"Subject: x\r\n\r\n\xff"
    assert message.payload is None


async def test_history_tells_added_deleted_and_relabelled_messages_apart() -> None:
    ref = {"id": "18c2", "threadId": "18c0", "labelIds": ["INBOX"]}
    records = [
        {"id": "5", "messagesAdded": [{"message": ref}]},
        {"id": "6", "labelsAdded": [{"message": ref, "labelIds": ["STARRED"]}]},
        {"id": "7", "labelsRemoved": [{"message": ref, "labelIds": ["INBOX"]}]},
        {"id": "8", "messagesDeleted": [{"message": ref}]},
    ]
    page = await client(saying(history=records, historyId="9", nextPageToken="t")).list_history(4)
    added, starred, archived, deleted = page.records
    assert added.messages_added[0].label_ids == {"INBOX"}
    assert starred.labels_added[0].label_ids == {"STARRED"}
    assert archived.labels_removed[0].message.id == "18c2"
    assert deleted.messages_deleted[0].thread_id == "18c0"
    assert (page.history_id, page.next_page_token) == (9, "t")


async def test_what_is_asked_for_is_sent_as_google_spells_it() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"historyId": "1"})

    gmail = client(answer)
    await gmail.list_messages("from:ida", ["UNREAD", "INBOX"], "page2", 7)
    await gmail.list_history(4, history_types=["messageAdded", "labelAdded"], label_id="INBOX")
    asked = [str(request.url).removeprefix("https://gmail.example/gmail/v1/users/me") for request in seen]
    assert asked == [
        "/messages?q=from%3Aida&labelIds=INBOX&labelIds=UNREAD&pageToken=page2&maxResults=7",
        "/history?startHistoryId=4&historyTypes=labelAdded&historyTypes=messageAdded&labelId=INBOX",
    ]
    assert seen[0].headers["Authorization"] == f"Bearer {TOKEN}"


async def test_the_token_is_asked_for_again_at_every_call() -> None:
    tokens = iter(["first", "second"])
    seen: list[str] = []

    async def token() -> str:
        return next(tokens)

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["Authorization"])
        return httpx2.Response(200, json={"labels": [{"id": "INBOX", "name": "INBOX", "type": "system"}]})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    gmail = owners_client(http, "https://gmail.example", token)
    await gmail.list_labels()
    await gmail.list_labels()
    assert seen == ["Bearer first", "Bearer second"]
