"""Google's own Python client against the emulator, and every answer held against Google's discovery document."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import google_auth_httplib2
import googleapiclient.discovery_cache
import httplib2
import pytest
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build_from_document
from googleapiclient.errors import HttpError

from postroom.sandbox.emulator import Emulator
from postroom.sandbox.mailbox import Mailbox
from postroom.sandbox.sample import fill_sample
from postroom.sandbox.server import running_emulator

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
SEED = 12
DOCUMENT: dict[str, Any] = json.loads(
    (Path(googleapiclient.discovery_cache.__file__).parent / "documents" / "gmail.v1.json").read_text()
)
Result = TypeVar("Result")


def problems(schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    """Where a value differs from a schema of the discovery document: unknown keys, wrong types, wrong formats."""
    schema = DOCUMENT["schemas"][schema["$ref"]] if "$ref" in schema else schema
    match schema["type"], value:
        case "object", dict():
            for key, inner in value.items():
                if key in schema["properties"]:
                    yield from problems(schema["properties"][key], inner, f"{where}.{key}")
                else:
                    yield f"{where}.{key} is unknown"
        case "array", list():
            for number, inner in enumerate(value):
                yield from problems(schema["items"], inner, f"{where}[{number}]")
        case "string", str():
            pattern = {"uint64": r"\d{1,20}", "int64": r"-?\d{1,19}", "byte": r"[A-Za-z0-9_-]*={0,2}"}
            if not re.fullmatch(pattern.get(schema.get("format", ""), r"(?s).*"), value):
                yield f"{where} is no {schema['format']}: {value!r}"
            if value not in schema.get("enum", [value]):
                yield f"{where} is not one of {schema['enum']}: {value!r}"
        case "integer", int() if not isinstance(value, bool):
            low, high = {"int32": (-(2**31), 2**31), "uint32": (0, 2**32)}[schema["format"]]
            if not low <= value < high:
                yield f"{where} is out of range: {value}"
        case "boolean", bool():
            pass
        case kind, _:
            yield f"{where} should be {kind}: {value!r}"


def check(schema: str, answer: Any) -> None:
    assert list(problems({"$ref": schema}, answer, schema)) == []


class Google:
    """The official client, pointed at the emulator and used from a thread, since it blocks."""

    def __init__(self, mailbox: Mailbox, url: str) -> None:
        self.mailbox = mailbox
        self._url = url

    async def run(self, use: Callable[[Any], Result], token: str = TOKEN) -> Result:
        return await asyncio.to_thread(self._use, use, token)

    async def refused(self, use: Callable[[Any], Any], token: str = TOKEN) -> HttpError:
        with pytest.raises(HttpError) as caught:
            await self.run(lambda users: use(users).execute(), token)
        error = json.loads(caught.value.content)["error"]
        assert error.keys() == {"code", "message", "errors", "status"}
        assert error["errors"][0].keys() == {"domain", "reason", "message"}
        assert error["code"] == caught.value.status_code
        return caught.value

    def _use(self, use: Callable[[Any], Result], token: str) -> Result:
        document = {**DOCUMENT, "rootUrl": f"{self._url}/", "mtlsRootUrl": f"{self._url}/"}
        http = google_auth_httplib2.AuthorizedHttp(Credentials(token), httplib2.Http(proxy_info=None))
        with closing(build_from_document(document, http=http)) as service:
            return use(service.users())


@pytest.fixture
async def google() -> AsyncGenerator[Google]:
    print(f"seed {SEED}")
    mailbox = Mailbox(OWNER, Random(SEED), clock=lambda: NOW)
    async with running_emulator(Emulator(mailbox, TOKEN, lambda mailbox: fill_sample(mailbox, SEED))) as url:
        yield Google(mailbox, url)


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ("Message", {"id": "18c2", "labels": []}),
        ("Message", {"historyId": 5}),
        ("Message", {"historyId": "-5"}),
        ("Message", {"raw": "a+b"}),
        ("Message", {"sizeEstimate": 2**31}),
        ("Message", {"sizeEstimate": True}),
        ("Message", {"payload": {"parts": [{"body": {"size": "3"}}]}}),
        ("Label", {"type": "robot"}),
        ("ListHistoryResponse", {"history": {}}),
    ],
)
def test_the_check_against_the_document_finds_what_is_wrong(schema: str, wrong: dict[str, Any]) -> None:
    assert len(list(problems({"$ref": schema}, wrong, schema))) == 1


async def test_the_profile_is_as_documented(google: Google) -> None:
    profile = await google.run(lambda users: users.getProfile(userId="me").execute())
    check("Profile", profile)
    assert profile["emailAddress"] == OWNER


@pytest.mark.parametrize("format", ["full", "metadata", "minimal", "raw"])
async def test_every_message_of_the_sample_is_as_documented(google: Google, format: str) -> None:
    def read(users: Any) -> list[dict[str, Any]]:
        listed = users.messages().list(userId="me", maxResults=500, includeSpamTrash=True).execute()
        check("ListMessagesResponse", listed)
        ids = [message["id"] for message in listed["messages"]]
        return [users.messages().get(userId="me", id=id, format=format).execute() for id in ids]

    messages = await google.run(read)
    assert len(messages) == len(google.mailbox)
    for message in messages:
        check("Message", message)
        assert ("payload" in message) == (format in ("full", "metadata"))
        assert ("raw" in message) == (format == "raw")


async def test_only_the_headers_asked_for_are_given(google: Google) -> None:
    stored = next(google.mailbox.search("category:promotions"))
    wanted = ["subject", "List-Unsubscribe"]
    message = await google.run(
        lambda users: (
            users.messages().get(userId="me", id=stored.id, format="metadata", metadataHeaders=wanted).execute()
        )
    )
    check("Message", message)
    assert {header["name"] for header in message["payload"]["headers"]} == {"Subject", "List-Unsubscribe"}


async def test_the_official_paging_walks_the_whole_mailbox(google: Google) -> None:
    def walk(users: Any) -> list[str]:
        ids: list[str] = []
        request = users.messages().list(userId="me", labelIds=["INBOX"], maxResults=7)
        while request is not None:
            answer = request.execute()
            check("ListMessagesResponse", answer)
            ids += [message["id"] for message in answer["messages"]]
            request = users.messages().list_next(request, answer)
        return ids

    assert await google.run(walk) == [message.id for message in google.mailbox.search("in:inbox")]


async def test_a_list_without_matches_is_as_documented(google: Google) -> None:
    answer = await google.run(lambda users: users.messages().list(userId="me", q="subject:nothing-like-it").execute())
    check("ListMessagesResponse", answer)
    assert answer == {"resultSizeEstimate": 0}


async def test_labels_are_as_documented(google: Google) -> None:
    def use(users: Any) -> tuple[Any, Any, Any, Any]:
        labels = users.labels()
        created = labels.create(userId="me", body={"name": "Trips", "labelListVisibility": "labelHide"}).execute()
        listed = labels.list(userId="me").execute()
        counted = labels.get(userId="me", id="INBOX").execute()
        return created, listed, counted, labels.delete(userId="me", id=created["id"]).execute()

    created, listed, counted, deleted = await google.run(use)
    check("Label", created)
    check("ListLabelsResponse", listed)
    check("Label", counted)
    assert created["labelListVisibility"] == "labelHide"
    assert "Trips" in [label["name"] for label in listed["labels"]]
    assert counted["messagesTotal"] == len(list(google.mailbox.search("in:inbox")))
    assert deleted == ""
    assert google.mailbox.labels.named("Trips") is None


async def test_a_change_and_its_history_are_as_documented(google: Google) -> None:
    stored = next(google.mailbox.search("in:inbox"))

    def use(users: Any) -> tuple[Any, Any]:
        start = users.getProfile(userId="me").execute()["historyId"]
        body = {"addLabelIds": ["TRASH"], "removeLabelIds": ["UNREAD"]}
        changed = users.messages().modify(userId="me", id=stored.id, body=body).execute()
        users.messages().delete(userId="me", id=stored.id).execute()
        return changed, users.history().list(userId="me", startHistoryId=start).execute()

    changed, history = await google.run(use)
    check("Message", changed)
    check("ListHistoryResponse", history)
    assert "TRASH" in changed["labelIds"]
    assert "INBOX" not in changed["labelIds"]
    assert [key for record in history["history"] for key in record if key not in ("id", "messages")] == [
        "labelsAdded",
        "labelsRemoved",
        "messagesDeleted",
    ]


REFUSALS: list[tuple[Callable[[Any], Any], int, str]] = [
    (lambda users: users.messages().get(userId="me", id="00000000deadbeef"), 404, "notFound"),
    (lambda users: users.messages().get(userId="me", id="not-an-id"), 400, "invalidArgument"),
    (lambda users: users.messages().list(userId="me", labelIds=["Label_99"]), 400, "invalidArgument"),
    (lambda users: users.messages().list(userId="me", pageToken="???"), 400, "invalidArgument"),
    (lambda users: users.messages().modify(userId="me", id="not-an-id", body={}), 400, "invalidArgument"),
    (lambda users: users.labels().get(userId="me", id="Label_99"), 404, "notFound"),
    (lambda users: users.labels().delete(userId="me", id="INBOX"), 400, "invalidArgument"),
    (lambda users: users.labels().create(userId="me", body={"name": "Family"}), 409, "aborted"),
    (lambda users: users.labels().create(userId="me", body={"name": "Inbox"}), 400, "invalidArgument"),
    (lambda users: users.history().list(userId="me", startHistoryId="99999999"), 404, "notFound"),
    (lambda users: users.history().list(userId="me"), 400, "invalidArgument"),
    (lambda users: users.getProfile(userId="ida@lindqvist.example"), 403, "forbidden"),
    (lambda users: users.threads().list(userId="me"), 404, "notFound"),
]


@pytest.mark.parametrize(("use", "status", "reason"), REFUSALS)
async def test_a_refusal_has_googles_status_reason_and_form(
    google: Google, use: Callable[[Any], Any], status: int, reason: str
) -> None:
    error = await google.refused(use)
    assert error.status_code == status
    assert json.loads(error.content)["error"]["errors"][0]["reason"] == reason


async def test_a_wrong_token_is_refused_in_googles_form(google: Google) -> None:
    # Credentials that cannot be renewed make the official client fail before it shows the 401, so it is asked plainly.
    def ask() -> tuple[Any, bytes]:
        http = httplib2.Http(proxy_info=None)
        with closing(http):
            return http.request(f"{google._url}/gmail/v1/users/me/profile", headers={"Authorization": "Bearer wrong"})

    response, content = await asyncio.to_thread(ask)
    assert response.status == 401
    assert "Bearer" in response["www-authenticate"]
    assert json.loads(content)["error"]["status"] == "UNAUTHENTICATED"
