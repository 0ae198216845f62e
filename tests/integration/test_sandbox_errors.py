"""The emulator's errors are Google's: code, status, reason and text.

The texts are those that Google documents or that people have reported; where neither is known, a test elsewhere checks
the code and the reason alone.
"""

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.refusal import Refusal
from support.clocks import ManualClock
from support.sandbox import OWNER, Sandbox, encoded, raw_mail, running_sandbox

NOT_FOUND = (404, "NOT_FOUND", "notFound", "Requested entity was not found.")


def bad(message: str) -> tuple[int, str, str, str]:
    return 400, "INVALID_ARGUMENT", "invalidArgument", message


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock) as running:
        running.mailbox.labels.create("Receipts", {})
        yield running


MISSING = "00000000000018c2"
NO_RECIPIENT = encoded(b"Subject: hello\r\n\r\nhello")


@pytest.mark.parametrize(
    ("verb", "path", "body", "expected"),
    [
        ("GET", f"/messages/{MISSING}", None, NOT_FOUND),
        ("GET", "/messages/no-id", None, bad("Invalid id value")),
        ("GET", f"/threads/{MISSING}", None, NOT_FOUND),
        ("GET", "/threads/no-id", None, bad("Invalid id value")),
        ("GET", "/drafts/r-1", None, NOT_FOUND),
        ("GET", "/labels/Label_9", None, NOT_FOUND),
        ("GET", "/settings/filters/ANe1Bm", None, NOT_FOUND),
        ("GET", "/settings/sendAs/nobody@example.com", None, NOT_FOUND),
        ("GET", "/messages?labelIds=Label_9", None, bad("Invalid label: Label_9")),
        ("GET", "/messages?pageToken=x", None, bad("Invalid pageToken")),
        ("GET", "/history", None, bad("Missing/invalid parameter: startHistoryId")),
        ("POST", "/labels", {"name": "receipts"}, (409, "ABORTED", "aborted", "Label name exists or conflicts")),
        ("POST", "/labels", {"name": "Muted"}, bad("Invalid label name")),
        ("POST", "/labels", {"name": "Trash"}, bad("Invalid label name")),
        ("POST", "/labels", {"name": "x" * 226}, bad("Invalid label name")),
        ("DELETE", "/labels/INBOX", None, bad("Invalid delete request")),
        ("PATCH", "/labels/INBOX", {"name": "In"}, bad("Invalid update request")),
        ("POST", "/messages/send", {"raw": NO_RECIPIENT}, bad("Recipient address required")),
        ("POST", "/messages/batchModify", {"ids": [MISSING]}, bad("No label add or removes specified")),
        (
            "POST",
            "/messages/batchModify",
            {"ids": [MISSING], "addLabelIds": ["Nope"]},
            bad("Invalid label: Nope"),
        ),
        (
            "POST",
            "/messages/batchModify",
            {"ids": [MISSING], "addLabelIds": ["INBOX", "TRASH"]},
            bad("Can only add one of: INBOX, SPAM, TRASH"),
        ),
    ],
)
async def test_a_refusal_reads_as_googles(
    sandbox: Sandbox, verb: str, path: str, body: dict[str, Any] | None, expected: tuple[int, str, str, str]
) -> None:
    answer = await sandbox.ask(verb, path, json=body)
    code, status, reason, message = expected
    assert answer.status_code == code
    assert answer.json() == {
        "error": {
            "code": code,
            "message": message,
            "errors": [{"message": message, "domain": "global", "reason": reason}],
            "status": status,
        }
    }


@pytest.mark.parametrize("step", [-1, 0, 1])
async def test_a_history_id_that_is_too_old_is_not_found(sandbox: Sandbox, step: int) -> None:
    """Google keeps about a week of history, and answers 404 to whoever starts from before it."""
    sandbox.mailbox.deliver(raw_mail())
    expired = sandbox.mailbox.history_id
    sandbox.mailbox.deliver(raw_mail())
    sandbox.mailbox.expire_history(expired)
    answer = await sandbox.ask("GET", f"/history?startHistoryId={expired + step}")
    if step < 0:
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == "Requested entity was not found."
    else:
        assert len(answer.json()["history"]) == 1


def test_an_old_history_id_expires_by_itself_when_much_has_happened(clock: ManualClock) -> None:
    mailbox = Mailbox(OWNER, Random(3), clock=clock, remembered=3)
    start = mailbox.history_id
    for _ in range(3):
        mailbox.deliver(raw_mail())
    assert len(list(mailbox.changes_since(start))) == 3
    mailbox.deliver(raw_mail())
    with pytest.raises(Refusal) as refused:
        list(mailbox.changes_since(start))
    assert refused.value.code == 404


async def test_a_history_id_from_the_future_is_not_found(sandbox: Sandbox) -> None:
    answer = await sandbox.ask("GET", f"/history?startHistoryId={sandbox.mailbox.history_id + 1}")
    assert answer.status_code == 404
