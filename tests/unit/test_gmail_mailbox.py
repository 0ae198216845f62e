"""The mailbox port over Gmail, with scripted answers of Gmail."""

import json
from typing import Any

import httpx2
import pytest

from postroom.core.mail.mailbox import Mailbox
from postroom.mailboxes.gmail.errors import LabelNotFound, NoLabels
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from support.gates import owners_client


class Google:
    """Answers in the order given, and remembers what was asked."""

    def __init__(self, *answers: tuple[int, dict[str, Any]]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def mailbox(self) -> Mailbox:
        async def token() -> str:
            return "token"

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))
        return GmailMailbox(owners_client(http, "https://gmail.example", token))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path.removeprefix("/gmail/v1/users/me"), body))
        status, answer = self._answers.pop(0)
        return httpx2.Response(status, json=answer)


def labels(*names: str) -> dict[str, Any]:
    own = {"id": "INBOX", "name": "INBOX", "type": "system"}
    return {"labels": [own, *({"id": f"Label_{number}", "name": name} for number, name in enumerate(names, 1))]}


MESSAGE = {"id": "18c2", "threadId": "18c2", "historyId": "1", "internalDate": "1", "labelIds": ["INBOX"]}


async def test_the_labels_of_a_message_are_read_without_its_content() -> None:
    google = Google((200, MESSAGE))
    assert await google.mailbox().labels_of("18c2") == {"INBOX"}
    assert google.asked == [("GET", "/messages/18c2", None)]


async def test_a_change_tells_the_labels_after_it() -> None:
    google = Google((200, {**MESSAGE, "labelIds": ["STARRED"]}))
    assert await google.mailbox().modify("18c2", add=["STARRED"], remove=["INBOX"]) == ("18c2", {"STARRED"})
    assert google.asked[0][2] == {"addLabelIds": ["STARRED"], "removeLabelIds": ["INBOX"]}


async def test_a_change_of_nothing_changes_nothing() -> None:
    google = Google((200, MESSAGE))
    assert await google.mailbox().modify("18c2") == ("18c2", {"INBOX"})
    assert google.asked[0][0] == "GET"


async def test_a_label_is_found_whatever_the_case_of_its_name() -> None:
    assert await Google((200, labels("Work", "Postroom/Snoozed"))).mailbox().label_id("postroom/snoozed") == "Label_2"


@pytest.mark.parametrize("name", ["TRASH", "trash", "YELLOW_STAR"])
async def test_a_label_of_gmail_itself_is_not_found(name: str) -> None:
    own = [{"id": each, "name": each, "type": "system"} for each in ("TRASH", "YELLOW_STAR")]
    with pytest.raises(LabelNotFound):
        await Google((200, {"labels": own})).mailbox().label_id(name, create=False)


async def test_a_missing_label_is_created() -> None:
    google = Google((200, labels()), (200, {"id": "Label_9", "name": "Work"}))
    assert await google.mailbox().label_id("Work") == "Label_9"
    assert google.asked[1][2]["name"] == "Work"


async def test_a_missing_label_is_not_created_against_the_callers_will() -> None:
    google = Google((200, labels()))
    with pytest.raises(LabelNotFound, match="'Work'"):
        await google.mailbox().label_id("Work", create=False)
    assert len(google.asked) == 1


@pytest.mark.parametrize("answer", [{}, {"labels": []}])
async def test_an_answer_without_any_label_is_no_answer_and_nothing_is_created(answer: dict[str, Any]) -> None:
    google = Google((200, answer))
    with pytest.raises(NoLabels):
        await google.mailbox().label_id("Work")
    assert len(google.asked) == 1


async def test_a_label_that_somebody_else_creates_at_the_same_time_is_used() -> None:
    google = Google((200, labels()), (409, {"error": {"code": 409}}), (200, labels("Work")))
    assert await google.mailbox().label_id("Work") == "Label_1"
