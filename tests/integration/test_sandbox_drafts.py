"""Drafts and sending: new Message-IDs, drafts that are gone once sent, copies for local recipients."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.mime import Mail
from postroom_sandbox.outgoing import without_headers
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, Sandbox, encoded, header_of, raw_mail, running_sandbox


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, search_lag=timedelta(seconds=3)) as running:
        yield running


def outgoing(subject: str = "Lunch?", **headers: str) -> bytes:
    return raw_mail(subject, "At one?", sender=OWNER, **{"To": OTHER, "Message_ID": "<mine@postroom>", **headers})


async def read(sandbox: Sandbox, message: dict[str, Any]) -> dict[str, Any]:
    return await sandbox.json("GET", f"/messages/{message['id']}")


async def create(sandbox: Sandbox, raw: bytes, **message: str) -> dict[str, Any]:
    return await sandbox.json("POST", "/drafts", json={"message": {"raw": encoded(raw), **message}})


async def kinds_since(sandbox: Sandbox, start: str) -> list[str]:
    history = await sandbox.json("GET", f"/history?startHistoryId={start}")
    return [key for record in history.get("history", []) for key in record if key not in ("id", "messages")]


async def test_what_is_sent_gets_another_message_id(sandbox: Sandbox) -> None:
    sent = await sandbox.json("POST", "/messages/send", json={"raw": encoded(outgoing())})
    assert sent["labelIds"] == ["SENT"]
    message = await read(sandbox, sent)
    assert header_of(message, "Message-ID").endswith("@mail.gmail.com>")
    assert header_of(message, "Subject") == "Lunch?"
    sandbox.clock.forward(60)
    assert "messages" not in await sandbox.json("GET", "/messages?q=rfc822msgid:mine@postroom")


async def test_a_search_finds_what_was_sent_only_after_a_while(sandbox: Sandbox) -> None:
    sent = await sandbox.json("POST", "/messages/send", json={"raw": encoded(outgoing())})
    assert "messages" not in await sandbox.json("GET", "/messages?q=in:sent")
    assert (await sandbox.json("GET", "/messages?labelIds=SENT"))["messages"][0]["id"] == sent["id"]
    sandbox.clock.forward(3)
    assert (await sandbox.json("GET", "/messages?q=in:sent"))["messages"][0]["id"] == sent["id"]


async def test_a_draft_is_gone_once_it_is_sent_and_the_message_is_another(sandbox: Sandbox) -> None:
    draft = await create(sandbox, outgoing())
    assert draft["message"]["labelIds"] == ["DRAFT"]
    start = str(sandbox.mailbox.history_id)
    sent = await sandbox.json("POST", "/drafts/send", json={"id": draft["id"]})
    assert sent["id"] != draft["message"]["id"]
    assert sent["threadId"] == draft["message"]["threadId"]
    assert sent["labelIds"] == ["SENT"]
    before = Mail(outgoing()).header("Message-ID")
    assert header_of(await read(sandbox, sent), "Message-ID") != before
    assert (await sandbox.ask("GET", f"/drafts/{draft['id']}")).status_code == 404
    assert (await sandbox.ask("GET", f"/messages/{draft['message']['id']}")).status_code == 404
    assert (await sandbox.ask("POST", "/drafts/send", json={"id": draft["id"]})).status_code == 404
    assert await kinds_since(sandbox, start) == ["messagesAdded", "messagesDeleted"]


async def test_a_draft_keeps_its_id_and_its_thread_when_it_is_rewritten(sandbox: Sandbox) -> None:
    draft = await create(sandbox, outgoing())
    body = {"message": {"raw": encoded(outgoing("Dinner?"))}}
    again = await sandbox.json("PUT", f"/drafts/{draft['id']}", json=body)
    assert again["id"] == draft["id"]
    assert again["message"]["id"] != draft["message"]["id"]
    assert again["message"]["threadId"] == draft["message"]["threadId"]
    shown = await sandbox.json("GET", f"/drafts/{draft['id']}")
    assert header_of(shown["message"], "Subject") == "Dinner?"
    assert len(sandbox.mailbox) == 1


async def test_drafts_are_listed_newest_first_in_pages(sandbox: Sandbox) -> None:
    made: list[str] = []
    for number in range(5):
        made.append((await create(sandbox, outgoing(f"number {number}")))["id"])
        sandbox.clock.forward(1)
    sandbox.clock.forward(10)
    first = await sandbox.json("GET", "/drafts?maxResults=3")
    rest = await sandbox.json("GET", f"/drafts?maxResults=3&pageToken={first['nextPageToken']}")
    assert [draft["id"] for draft in first["drafts"] + rest["drafts"]] == made[::-1]
    assert "nextPageToken" not in rest
    found = await sandbox.json("GET", "/drafts?q=subject:3")
    assert [draft["id"] for draft in found["drafts"]] == [made[3]]


async def test_a_deleted_draft_leaves_nothing_behind(sandbox: Sandbox) -> None:
    draft = await create(sandbox, outgoing())
    assert (await sandbox.ask("DELETE", f"/drafts/{draft['id']}")).status_code == 204
    assert len(sandbox.mailbox) == 0
    other = await create(sandbox, outgoing())
    await sandbox.ask("DELETE", f"/messages/{other['message']['id']}")
    assert "drafts" not in await sandbox.json("GET", "/drafts")


async def test_what_the_user_drafted_elsewhere_is_a_draft_too(sandbox: Sandbox) -> None:
    message = sandbox.mailbox.deliver(outgoing("By hand"), ["DRAFT"])
    (draft,) = (await sandbox.json("GET", "/drafts"))["drafts"]
    assert draft["message"]["id"] == message.id
    assert (await sandbox.json("GET", "/drafts"))["drafts"] == [draft]
    sent = await sandbox.json("POST", "/drafts/send", json={"id": draft["id"]})
    assert header_of(await read(sandbox, sent), "Subject") == "By hand"


async def test_drafts_send_takes_new_content_and_drafts_that_were_never_saved(sandbox: Sandbox) -> None:
    draft = await create(sandbox, outgoing())
    body = {"id": draft["id"], "message": {"raw": encoded(outgoing("Changed my mind"))}}
    sent = await sandbox.json("POST", "/drafts/send", json=body)
    assert header_of(await read(sandbox, sent), "Subject") == "Changed my mind"
    direct = await sandbox.json("POST", "/drafts/send", json={"message": {"raw": encoded(outgoing("At once"))}})
    assert direct["labelIds"] == ["SENT"]


async def test_mail_between_two_mailboxes_arrives_without_its_bcc(sandbox: Sandbox, clock: ManualClock) -> None:
    ida = Mailbox(OTHER, sandbox.mailbox.rng, clock)
    sandbox.emulator.add(ida)
    sent = await sandbox.json("POST", "/messages/send", json={"raw": encoded(outgoing(Bcc="secret@example.org"))})
    (arrived,) = ida.search()
    assert arrived.labels == {"INBOX", "UNREAD"}
    assert arrived.mail.header("Bcc") == ""
    assert header_of(await read(sandbox, sent), "Bcc") == "secret@example.org"
    assert arrived.mail.header("Message-ID") == header_of(await read(sandbox, sent), "Message-ID")


async def test_mail_to_oneself_is_both_sent_and_received(sandbox: Sandbox) -> None:
    sent = await sandbox.json("POST", "/messages/send", json={"raw": encoded(outgoing(To=OWNER))})
    assert sent["labelIds"] == ["INBOX", "SENT", "UNREAD"]


async def test_gmail_sends_in_nobody_elses_name(sandbox: Sandbox) -> None:
    raw = outgoing().replace(OWNER.encode(), b"boss@example.org")
    sent = await sandbox.json("POST", "/messages/send", json={"raw": encoded(raw)})
    assert header_of(await read(sandbox, sent), "From") == OWNER


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "'raw' RFC822 payload"),
        ({"raw": "?"}, "Base64"),
        ({"raw": encoded(b"Subject: nobody\r\n\r\nhello")}, "Recipient address required"),
        ({"raw": encoded(b"To: nobody\r\n\r\nhello")}, "Invalid To header"),
        ({"raw": encoded(outgoing()), "shout": True}, "Unknown name"),
    ],
)
async def test_what_cannot_be_sent_is_refused(sandbox: Sandbox, body: dict[str, Any], why: str) -> None:
    answer = await sandbox.ask("POST", "/messages/send", json=body)
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]
    assert len(sandbox.mailbox) == 0


async def test_a_thread_that_does_not_exist_cannot_be_joined(sandbox: Sandbox) -> None:
    body = {"raw": encoded(outgoing()), "threadId": "00000000deadbeef"}
    assert (await sandbox.ask("POST", "/messages/send", json=body)).status_code == 404
    assert len(sandbox.mailbox) == 0


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_headers_are_taken_out_without_touching_the_rest(line_end: bytes) -> None:
    head = [b"A: 1", b"Bcc: x,", b" y", b"bCC: z", b"B: 2"]
    body = b"Bcc: stays" + line_end + line_end + b"end"
    raw = line_end.join([*head, b"", body])
    assert without_headers(raw, "bcc") == line_end.join([b"A: 1", b"B: 2", b"", body])


async def test_a_message_may_be_uploaded_as_it_is(sandbox: Sandbox) -> None:
    media: dict[str, Any] = {"content": outgoing(), "headers": {"Content-Type": "message/rfc822"}}
    sent = await sandbox.raw("POST", "/upload/gmail/v1/users/me/messages/send?uploadType=media", **media)
    assert sent.json()["labelIds"] == ["SENT"]
    assert "At one?" in (await read(sandbox, sent.json()))["snippet"]


@pytest.mark.parametrize("body", [b"plain", b"--x\r\nnot a part\r\n--x--", b"\xff\x00 bytes\n\n\n", b""])
async def test_an_upload_beside_its_fields_arrives_byte_for_byte(sandbox: Sandbox, body: bytes) -> None:
    raw = b"To: a@example.org\nX-Odd:  spaced \nContent-Type: multipart/mixed; boundary=x\n\n" + body
    about = b'--cut\r\nContent-Type: application/json\r\n\r\n{"labelIds": ["STARRED"]}\r\n'
    content = about + b"--cut\r\nContent-Type: message/rfc822\r\n\r\n" + raw + b"\r\n--cut--\r\n"
    headers = {"Content-Type": 'multipart/related; boundary="cut"'}
    path = "/upload/gmail/v1/users/me/messages?uploadType=multipart"
    inserted = (await sandbox.raw("POST", path, content=content, headers=headers)).json()
    assert inserted["labelIds"] == ["STARRED"]
    assert sandbox.mailbox.get(inserted["id"]).mail.raw == raw
    broken = await sandbox.raw("POST", path, content=about + b"--cut--", headers=headers)
    assert broken.status_code == 400
