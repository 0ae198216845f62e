"""Google's own Python client against the emulator, every answer checked against Google's discovery document."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from random import Random
from typing import Any, TypeVar

import google_auth_httplib2
import httplib2
import pytest
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build_from_document
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaInMemoryUpload

from postroom_sandbox.consent import CLIENT_ID, CLIENT_SECRET
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import METADATA, METHODS, SEND
from postroom_sandbox.sample import fill_sample
from postroom_sandbox.send_as import Alias
from postroom_sandbox.server import running_emulator
from support.sandbox import DOCUMENT, DOCUMENTED, CheckedEmulator, check, encoded, error_problems

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
SEED = 12
Result = TypeVar("Result")


class Google:
    """The official client, pointed at the emulator and used from a thread, since it blocks."""

    def __init__(self, emulator: CheckedEmulator, url: str) -> None:
        self.emulator = emulator
        self.mailbox = emulator.mailbox
        self._url = url

    async def run(self, use: Callable[[Any], Result], token: str = TOKEN) -> Result:
        return await asyncio.to_thread(self._use, use, token)

    async def refused(self, use: Callable[[Any], Any], token: str = TOKEN) -> HttpError:
        with pytest.raises(HttpError) as caught:
            await self.run(lambda users: use(users).execute(), token)
        assert list(error_problems(caught.value.status_code, json.loads(caught.value.content))) == []
        return caught.value

    def _use(self, use: Callable[[Any], Result], token: str) -> Result:
        document = {**DOCUMENT, "rootUrl": f"{self._url}/", "mtlsRootUrl": f"{self._url}/"}
        http = google_auth_httplib2.AuthorizedHttp(Credentials(token), httplib2.Http(proxy_info=None))
        with closing(build_from_document(document, http=http)) as service:
            return use(service.users())

    async def batch(self, ask: Callable[[Any], list[Any]]) -> dict[str, Any]:
        """The answers of several calls in one request, by the numbers that the client gives them."""
        answers: dict[str, Any] = {}

        def keep(number: str, answer: Any, error: Any) -> None:
            answers[number] = error or answer

        def use() -> None:
            document = {**DOCUMENT, "rootUrl": f"{self._url}/", "mtlsRootUrl": f"{self._url}/"}
            http = httplib2.Http(proxy_info=None)
            with closing(build_from_document(document, http=_Bearing(http))) as service:
                batch = service.new_batch_http_request(callback=keep)
                for request in ask(service.users()):
                    batch.add(request)
                batch.execute()

        await asyncio.to_thread(use)
        return answers


class _Bearing:
    """The client's transport with the token on every request: a token that cannot be renewed breaks its batches."""

    def __init__(self, http: httplib2.Http) -> None:
        self._http = http

    def request(self, uri: str, method: str = "GET", body: Any = None, headers: Any = None, **more: Any) -> Any:
        headers = {**(headers or {}), "Authorization": f"Bearer {TOKEN}"}
        return self._http.request(uri, method, body, headers, **more)

    def close(self) -> None:
        self._http.close()


@pytest.fixture
async def google() -> AsyncGenerator[Google]:
    print(f"seed {SEED}")
    mailbox = Mailbox(OWNER, Random(SEED), clock=lambda: NOW)
    emulator = CheckedEmulator(mailbox, TOKEN, lambda mailbox: fill_sample(mailbox, SEED))
    async with running_emulator(emulator) as url:
        yield Google(emulator, url)
    assert emulator.wrong == []


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
    (lambda users: users.messages().modify(userId="me", id="0" * 16, body={"addLabelIds": ["INBOX"]}), 404, "notFound"),
    (lambda users: users.messages().batchModify(userId="me", body={"ids": []}), 400, "invalidArgument"),
    (lambda users: users.messages().attachments().get(userId="me", messageId="0" * 16, id="x"), 404, "notFound"),
    (lambda users: users.messages().send(userId="me", body={}), 400, "invalidArgument"),
    (lambda users: users.threads().get(userId="me", id="0" * 16), 404, "notFound"),
    (lambda users: users.drafts().get(userId="me", id="r-1"), 404, "notFound"),
    (lambda users: users.drafts().send(userId="me", body={"id": "r-1"}), 404, "notFound"),
    (lambda users: users.labels().update(userId="me", id="INBOX", body={"name": "x"}), 400, "invalidArgument"),
    (lambda users: users.labels().patch(userId="me", id="Label_1", body={"name": "family"}), 409, "aborted"),
    (lambda users: users.watch(userId="me", body={"topicName": "mail"}), 400, "invalidArgument"),
    (lambda users: users.settings().getImap(userId="me"), 404, "notFound"),
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


def note(subject: str = "A note") -> bytes:
    return f"From: {OWNER}\r\nTo: ida@lindqvist.example\r\nSubject: {subject}\r\n\r\nhello".encode()


def upload(raw: bytes) -> MediaInMemoryUpload:
    return MediaInMemoryUpload(raw, mimetype="message/rfc822", resumable=False)


def every_method(users: Any, topic: str = "projects/home/topics/mail") -> None:
    """Each method that the emulator has, at least once, with an effect that the next one sees."""
    me = {"userId": "me"}
    users.getProfile(**me).execute()
    users.watch(**me, body={"topicName": topic, "labelIds": ["INBOX"]}).execute()
    start = users.getProfile(**me).execute()["historyId"]
    messages, threads, drafts, labels = users.messages(), users.threads(), users.drafts(), users.labels()
    label = labels.create(**me, body={"name": "Trips"}).execute()["id"]
    labels.patch(**me, id=label, body={"labelListVisibility": "labelHide"}).execute()
    color = {"textColor": "#000000", "backgroundColor": "#ffffff"}
    assert (
        labels.update(**me, id=label, body={"id": label, "name": "Travel", "color": color}).execute()["name"]
        == "Travel"
    )
    assert labels.get(**me, id=label).execute()["color"] == color
    ids = [each["id"] for each in messages.list(**me, maxResults=4, q="in:inbox").execute()["messages"]]
    messages.batchModify(**me, body={"ids": ids, "addLabelIds": [label]}).execute()
    assert labels.get(**me, id=label).execute()["messagesTotal"] == 4
    assert label in messages.get(**me, id=ids[0], format="minimal").execute()["labelIds"]
    messages.trash(**me, id=ids[0]).execute()
    assert "TRASH" not in messages.untrash(**me, id=ids[0]).execute()["labelIds"]
    messages.delete(**me, id=ids[0]).execute()
    messages.batchDelete(**me, body={"ids": ids[1:3]}).execute()
    messages.modify(**me, id=ids[3], body={"removeLabelIds": [label]}).execute()
    sent = messages.send(**me, body={"raw": encoded(note())}).execute()
    assert sent["labelIds"] == ["SENT"]
    inserted = messages.insert(**me, body={"raw": encoded(note()), "labelIds": ["STARRED"]}).execute()
    imported = messages.import_(**me, body={"labelIds": ["INBOX"]}, media_body=upload(note("imported"))).execute()
    assert messages.get(**me, id=imported["id"]).execute()["snippet"] == "hello"
    thread = threads.get(**me, id=inserted["threadId"], format="metadata").execute()
    threads.modify(**me, id=thread["id"], body={"addLabelIds": ["INBOX"]}).execute()
    threads.trash(**me, id=thread["id"]).execute()
    threads.untrash(**me, id=thread["id"]).execute()
    threads.list(**me, q="is:starred").execute()
    threads.delete(**me, id=thread["id"]).execute()
    draft = drafts.create(**me, body={"message": {"raw": encoded(note())}}).execute()
    drafts.update(**me, id=draft["id"], body={"message": {"raw": encoded(note("second"))}}).execute()
    assert drafts.get(**me, id=draft["id"], format="full").execute()["message"]["payload"]["headers"]
    assert [each["id"] for each in drafts.list(**me).execute()["drafts"]] == [draft["id"]]
    drafts.send(**me, body={"id": draft["id"]}).execute()
    drafts.delete(**me, id=drafts.create(**me, body={}, media_body=upload(note())).execute()["id"]).execute()
    labels.delete(**me, id=label).execute()
    labels.list(**me).execute()
    settings = users.settings()
    addresses = settings.sendAs().list(**me).execute()["sendAs"]
    assert settings.sendAs().get(**me, sendAsEmail=addresses[0]["sendAsEmail"]).execute() == addresses[0]
    archive = {"criteria": {"from": "shop@store.example"}, "action": {"removeLabelIds": ["INBOX"]}}
    created = settings.filters().create(**me, body=archive).execute()
    assert settings.filters().list(**me).execute() == {
        "filter": [settings.filters().get(**me, id=created["id"]).execute()]
    }
    settings.filters().delete(**me, id=created["id"]).execute()
    settings.updateVacation(**me, body={"enableAutoReply": True, "responseSubject": "Away"}).execute()
    assert settings.getVacation(**me).execute()["responseSubject"] == "Away"
    found: set[str] = set()
    request = users.history().list(**me, startHistoryId=start, maxResults=10)
    while request is not None:
        page = request.execute()
        found |= {key for record in page["history"] for key in record}
        request = users.history().list_next(request, page)
    assert {"messagesAdded", "messagesDeleted", "labelsAdded", "labelsRemoved"} <= found
    users.stop(**me).execute()


async def test_every_method_works_with_the_official_client_and_is_as_documented(google: Google) -> None:
    await google.run(every_method)
    stored = next(google.mailbox.search("has:attachment"))

    def attachment(users: Any) -> Any:
        whole = users.messages().get(userId="me", id=stored.id).execute()
        id = next(part["body"]["attachmentId"] for part in whole["payload"]["parts"] if part["filename"])
        return users.messages().attachments().get(userId="me", messageId=stored.id, id=id).execute()

    assert (await google.run(attachment))["size"] > 0
    assert google.emulator.seen == METHODS.keys() <= DOCUMENTED.keys()


async def test_an_attachment_has_another_id_at_every_reading(google: Google) -> None:
    stored = next(google.mailbox.search("has:attachment"))

    def ids(users: Any) -> list[str]:
        parts = users.messages().get(userId="me", id=stored.id).execute()["payload"]["parts"]
        return [part["body"]["attachmentId"] for part in parts if part["filename"]]

    assert (await google.run(ids))[0] != (await google.run(ids))[0]


async def test_the_official_batch_gives_each_call_its_verdict(google: Google) -> None:
    stored = [message.id for message in islice(google.mailbox.search(), 3)]
    answers = await google.batch(
        lambda users: [
            *(users.messages().get(userId="me", id=id, format="minimal") for id in stored),
            users.messages().get(userId="me", id="0" * 16),
            users.messages().modify(userId="me", id=stored[0], body={"addLabelIds": ["STARRED"]}),
        ]
    )
    assert [answers[str(number)]["id"] for number in (1, 2, 3)] == stored
    assert answers["4"].status_code == 404
    assert "STARRED" in answers["5"]["labelIds"]


async def test_the_official_credentials_renew_themselves(google: Google) -> None:
    issued = google.emulator.issue_token()
    google.emulator.consents.expire_access()

    def use() -> Any:
        credentials = Credentials(
            issued.access_token,
            refresh_token=issued.refresh_token,
            token_uri=f"{google._url}/token",
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
        )
        document = {**DOCUMENT, "rootUrl": f"{google._url}/", "mtlsRootUrl": f"{google._url}/"}
        http = google_auth_httplib2.AuthorizedHttp(credentials, httplib2.Http(proxy_info=None))
        with closing(build_from_document(document, http=http)) as service:
            return service.users().getProfile(userId="me").execute()

    assert (await asyncio.to_thread(use))["emailAddress"] == OWNER


async def test_send_as_addresses_are_as_documented(google: Google) -> None:
    send_as = google.emulator.accounts[OWNER].send_as
    send_as.add(Alias("Mara@Work.example", "Mara L."), default=True)
    send_as.add(Alias("old@school.example", verification="pending", treat_as_alias=False))
    answer = await google.run(lambda users: users.settings().sendAs().list(userId="me").execute())
    check("ListSendAsResponse", answer)
    shown = [
        (each["sendAsEmail"], each.get("isPrimary"), each.get("isDefault"), each.get("verificationStatus"))
        for each in answer["sendAs"]
    ]
    assert shown == [
        (OWNER, True, None, None),
        ("Mara@Work.example", None, True, "accepted"),
        ("old@school.example", None, None, "pending"),
    ]
    for scope in (SEND, METADATA):
        token = google.emulator.issue_token(scopes=[scope]).access_token
        assert (
            await google.refused(lambda users: users.settings().sendAs().list(userId="me"), token)
        ).status_code == 403


async def test_mail_may_be_sent_from_an_alias_that_is_verified_and_from_no_other(google: Google) -> None:
    send_as = google.emulator.accounts[OWNER].send_as
    send_as.add(Alias("mara@work.example"))
    send_as.add(Alias("boss@work.example", verification="pending"))
    for sender, shown in (("mara@work.example", "mara@work.example"), ("boss@work.example", OWNER)):
        raw = encoded(f"From: {sender}\r\nTo: ida@lindqvist.example\r\nSubject: x\r\n\r\nhi".encode())
        sent = await google.run(lambda users, raw=raw: users.messages().send(userId="me", body={"raw": raw}).execute())
        assert google.mailbox.get(sent["id"]).mail.header("From") == shown
