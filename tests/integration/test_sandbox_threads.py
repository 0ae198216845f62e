"""Threads: which messages join, and reading and changing them together."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom_sandbox.message import Message
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, Sandbox, encoded, raw_mail, running_sandbox


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock) as running:
        yield running


def deliver(sandbox: Sandbox, subject: str, **headers: str) -> Message:
    sandbox.clock.forward(1)
    return sandbox.mailbox.deliver(raw_mail(subject, **headers))


@pytest.fixture
def talk(sandbox: Sandbox) -> list[Message]:
    """Three messages of one thread, and one beside it."""
    first = deliver(sandbox, "Lunch?", Message_ID="<a@example.org>")
    second = deliver(sandbox, "Re: Lunch?", Message_ID="<b@example.org>", In_Reply_To="<a@example.org>")
    beside = deliver(sandbox, "Invoice")
    third = deliver(sandbox, "AW: Lunch?", References="<a@example.org> <b@example.org>")
    return [first, second, third, beside]


async def send(sandbox: Sandbox, subject: str, thread: str, **headers: str) -> dict[str, Any]:
    raw = raw_mail(subject, sender=OWNER, **{"To": OTHER, **headers})
    return await sandbox.json("POST", "/messages/send", json={"raw": encoded(raw), "threadId": thread})


async def test_a_thread_is_read_with_all_its_messages_oldest_first(sandbox: Sandbox, talk: list[Message]) -> None:
    thread = await sandbox.json("GET", f"/threads/{talk[0].thread_id}?format=minimal")
    assert [message["id"] for message in thread["messages"]] == [message.id for message in talk[:3]]
    assert thread["historyId"] == str(talk[2].history_id)


async def test_threads_are_listed_by_their_newest_message(sandbox: Sandbox, talk: list[Message]) -> None:
    listed = await sandbox.json("GET", "/threads")
    assert [thread["id"] for thread in listed["threads"]] == [talk[0].thread_id, talk[3].thread_id]


async def test_pages_of_threads_hold_every_thread_once(sandbox: Sandbox, talk: list[Message]) -> None:
    for number in range(8):
        deliver(sandbox, f"number {number}")
    listed: list[str] = []
    token = ""
    while True:
        page = await sandbox.json("GET", f"/threads?maxResults=3&pageToken={token}")
        listed += [thread["id"] for thread in page["threads"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert len(listed) == len(set(listed)) == 10 == sandbox.mailbox.threads


async def test_a_thread_is_found_by_any_of_its_messages(sandbox: Sandbox, talk: list[Message]) -> None:
    sandbox.mailbox.modify(talk[1].id, add=["STARRED"])
    listed = await sandbox.json("GET", "/threads?q=is:starred")
    assert [thread["id"] for thread in listed["threads"]] == [talk[0].thread_id]


async def test_a_change_of_a_thread_changes_each_message(sandbox: Sandbox, talk: list[Message]) -> None:
    start = sandbox.mailbox.history_id
    changed = await sandbox.json("POST", f"/threads/{talk[0].thread_id}/modify", json={"removeLabelIds": ["UNREAD"]})
    assert [message["labelIds"] for message in changed["messages"]] == [["INBOX"]] * 3
    assert talk[3].labels == {"INBOX", "UNREAD"}
    assert [change.kind for change in sandbox.mailbox.changes_since(start)] == ["labelRemoved"] * 3


async def test_a_thread_goes_to_the_trash_comes_back_and_is_deleted(sandbox: Sandbox, talk: list[Message]) -> None:
    address = f"/threads/{talk[0].thread_id}"
    await sandbox.json("POST", f"{address}/trash")
    assert all(message.labels == {"TRASH", "UNREAD"} for message in talk[:3])
    assert [thread["id"] for thread in (await sandbox.json("GET", "/threads"))["threads"]] == [talk[3].thread_id]
    await sandbox.json("POST", f"{address}/untrash")
    assert all(message.labels == {"UNREAD"} for message in talk[:3])
    assert (await sandbox.ask("DELETE", address)).status_code == 204
    assert (await sandbox.ask("GET", address)).status_code == 404
    assert len(sandbox.mailbox) == 1


async def test_a_sent_answer_joins_the_thread_it_names(sandbox: Sandbox, talk: list[Message]) -> None:
    sent = await send(sandbox, "Re: Lunch?", talk[0].thread_id, In_Reply_To="<b@example.org>")
    assert sent["threadId"] == talk[0].thread_id


@pytest.mark.parametrize(
    ("subject", "headers"),
    [("Re: Lunch?", {}), ("Something else", {"In_Reply_To": "<a@example.org>"})],
    ids=["it answers nothing", "another subject"],
)
async def test_naming_a_thread_is_not_enough(
    sandbox: Sandbox, talk: list[Message], subject: str, headers: dict[str, str]
) -> None:
    sent = await send(sandbox, subject, talk[0].thread_id, **headers)
    assert sent["threadId"] == sent["id"]


async def test_the_named_thread_wins_over_another_that_is_answered_too(sandbox: Sandbox, talk: list[Message]) -> None:
    twin = deliver(sandbox, "Lunch?", Message_ID="<twin@example.org>")
    assert twin.thread_id != talk[0].thread_id
    sent = await send(sandbox, "Re: Lunch?", twin.thread_id, References="<a@example.org> <twin@example.org>")
    assert sent["threadId"] == twin.thread_id


async def test_an_unknown_thread_is_not_found_and_a_wrong_id_refused(sandbox: Sandbox) -> None:
    assert (await sandbox.ask("GET", "/threads/00000000deadbeef")).status_code == 404
    assert (await sandbox.ask("GET", "/threads/zzz")).status_code == 400
