"""Our own Gmail client against the emulator, over a real socket."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx2
import pytest

from postroom.compose.demo import SandboxPlan, sandbox_mailbox
from postroom.core.errors import BadInput
from postroom.mailboxes.gmail.errors import (
    Forbidden,
    GmailRefused,
    HistoryExpired,
    LabelNotFound,
    MessageNotFound,
    RateLimited,
    ScopeMissing,
    ServerError,
    Unauthorized,
    Unreachable,
)
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.sample import fill_sample
from postroom_sandbox.server import running_emulator
from support.gates import owners_client
from support.patience import PATIENCE_S
from support.whole_gmail import WholeGmailClient

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
SEED = 11


class Sandbox:
    """A running emulator with everything that a test may want of it."""

    def __init__(self, mailbox: Mailbox, url: str, http: httpx2.AsyncClient) -> None:
        self.mailbox = mailbox
        self.url = url
        self.http = http
        self.gmail = self.client()

    def client(self, token: str = TOKEN, user: str = "me") -> WholeGmailClient:
        async def give() -> str:
            return token

        return owners_client(self.http, self.url, give, user)

    async def control(self, path: str, token: str = TOKEN, **request: Any) -> httpx2.Response:
        method = request.pop("method", "POST")
        headers = {"Authorization": f"Bearer {token}"}
        return await self.http.request(method, f"{self.url}/sandbox/{path}", headers=headers, **request)

    async def order(self, **fault: Any) -> None:
        (await self.control("faults", json=fault)).raise_for_status()


@pytest.fixture
async def sandbox() -> AsyncGenerator[Sandbox]:
    print(f"seed {SEED}")
    mailbox = Mailbox(OWNER, Random(SEED), clock=lambda: NOW)
    emulator = Emulator(mailbox, TOKEN, fill=lambda mailbox: fill_sample(mailbox, SEED))
    async with running_emulator(emulator) as url, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        yield Sandbox(mailbox, url, http)


async def test_the_profile_names_the_owner_and_counts_the_mail(sandbox: Sandbox) -> None:
    profile = await sandbox.gmail.get_profile()
    assert profile.email_address == OWNER
    assert profile.messages_total == len(sandbox.mailbox)
    assert profile.history_id == sandbox.mailbox.history_id


async def test_pages_together_hold_every_message_once(sandbox: Sandbox) -> None:
    listed: list[str] = []
    token: str | None = None
    while True:
        page = await sandbox.gmail.list_messages("in:anywhere", page_token=token, max_results=10)
        listed += [message.id for message in page.messages]
        token = page.next_page_token
        if token is None:
            break
    assert listed == [message.id for message in sandbox.mailbox.search("in:anywhere")]
    assert len(listed) > 50


async def test_a_list_can_be_narrowed_by_labels_and_search(sandbox: Sandbox) -> None:
    page = await sandbox.gmail.list_messages("from:parcel-pigeon", ["INBOX"])
    assert page.messages
    for reference in page.messages:
        message = await sandbox.gmail.get_message(reference.id, format="metadata")
        assert "INBOX" in message.label_ids
        assert "parcel-pigeon" in (message.header("from") or "")


async def test_a_message_comes_with_the_bytes_that_were_delivered(sandbox: Sandbox) -> None:
    stored = next(sandbox.mailbox.search("from:yuki"))
    raw = await sandbox.gmail.get_message(stored.id, format="raw")
    full = await sandbox.gmail.get_message(stored.id)
    assert raw.raw == stored.mail.raw
    assert full.header("subject") == "来週の打ち合わせについて"
    assert full.payload is not None
    assert full.payload.body.data is not None
    assert "田中" in full.payload.body.data.decode()


async def test_labels_are_changed_through_the_mailbox_port(sandbox: Sandbox) -> None:
    port = GmailMailbox(sandbox.gmail)
    stored = next(sandbox.mailbox.search("in:inbox is:unread"))
    snoozed = await port.label_id("Postroom/Snoozed")
    after = (await port.modify(stored.id, add=[snoozed], remove=["INBOX"])).labels
    assert snoozed in after
    assert "INBOX" not in after
    assert await port.labels_of(stored.id) == after == stored.labels
    assert await port.label_id("postroom/snoozed", create=False) == snoozed
    with pytest.raises(LabelNotFound):
        await port.label_id("Nowhere", create=False)


async def test_history_tells_what_came_and_what_changed_since(sandbox: Sandbox) -> None:
    start = (await sandbox.gmail.get_profile()).history_id
    delivered = (await sandbox.control("messages", content=b"Subject: new\r\n\r\nhello")).json()
    await sandbox.gmail.modify_message(delivered["id"], remove=["UNREAD"])
    page = await sandbox.gmail.list_history(start)
    assert [message.id for record in page.records for message in record.messages_added] == [delivered["id"]]
    assert [change.label_ids for record in page.records for change in record.labels_removed] == [{"UNREAD"}]
    assert page.history_id == sandbox.mailbox.history_id
    assert (await sandbox.gmail.list_history(page.history_id)).records == ()


async def test_history_is_paged_and_narrowed(sandbox: Sandbox) -> None:
    start = sandbox.mailbox.history_id
    for number in range(130):
        sandbox.mailbox.deliver(b"Subject: %d\r\n\r\n" % number)
    first = await sandbox.gmail.list_history(start, history_types=["messageAdded"], label_id="INBOX")
    rest = await sandbox.gmail.list_history(start, first.next_page_token, history_types=["messageAdded"])
    ids = [record.id for record in first.records + rest.records]
    assert len(ids) == 130
    assert ids == sorted(set(ids))
    assert rest.next_page_token is None


async def test_an_expired_history_is_reported_as_such(sandbox: Sandbox) -> None:
    start = sandbox.mailbox.history_id
    sandbox.mailbox.deliver(b"Subject: x\r\n\r\n")
    sandbox.mailbox.history.forget(sandbox.mailbox.history_id)
    with pytest.raises(HistoryExpired):
        await sandbox.gmail.list_history(start)


async def test_a_deleted_message_is_not_found(sandbox: Sandbox) -> None:
    stored = next(sandbox.mailbox.search())
    sandbox.mailbox.delete(stored.id)
    with pytest.raises(MessageNotFound, match=stored.id):
        await sandbox.gmail.modify_message(stored.id, add=["STARRED"])


async def test_an_unknown_label_is_refused(sandbox: Sandbox) -> None:
    stored = next(sandbox.mailbox.search())
    with pytest.raises(GmailRefused, match="400 invalidArgument"):
        await sandbox.gmail.modify_message(stored.id, add=["Label_77"])


async def test_a_wrong_token_is_unauthorized(sandbox: Sandbox) -> None:
    with pytest.raises(Unauthorized):
        await sandbox.client(token="another").get_profile()


async def test_somebody_elses_mailbox_is_forbidden(sandbox: Sandbox) -> None:
    assert (await sandbox.client(user=OWNER).get_profile()).email_address == OWNER
    with pytest.raises(Forbidden):
        await sandbox.client(user="ida@lindqvist.example").get_profile()


async def test_an_ordered_fault_strikes_as_often_as_ordered(sandbox: Sandbox) -> None:
    await sandbox.order(code=429, reason="rateLimitExceeded", retry_after=7, times=2, path="/labels")
    await sandbox.gmail.get_profile()
    for _ in range(2):
        with pytest.raises(RateLimited) as caught:
            await sandbox.gmail.list_labels()
        assert caught.value.retry_after == timedelta(seconds=7)
    assert await sandbox.gmail.list_labels()


async def test_faults_reach_the_client_as_the_errors_they_stand_for(sandbox: Sandbox) -> None:
    await sandbox.order(code=403, reason="insufficientPermissions")
    with pytest.raises(ScopeMissing):
        await sandbox.gmail.get_profile()
    await sandbox.order(code=503)
    with pytest.raises(ServerError):
        await sandbox.gmail.get_profile()


async def test_waiting_faults_are_listed(sandbox: Sandbox) -> None:
    await sandbox.order(code=503, times=3)
    await sandbox.order(code=500)
    listed = (await sandbox.control("faults", method="GET")).json()["faults"]
    assert [(fault["code"], fault["times"]) for fault in listed] == [(503, 3), (500, 1)]


async def test_a_reset_brings_back_the_beginning(sandbox: Sandbox) -> None:
    before = [message.mail.raw for message in sandbox.mailbox.search()]
    start = sandbox.mailbox.history_id
    await sandbox.control("messages", content=b"Subject: x\r\n\r\n")
    await sandbox.order(code=503)
    assert (await sandbox.control("reset")).status_code == 200
    assert [message.mail.raw for message in sandbox.mailbox.search()] == before
    assert (await sandbox.gmail.get_profile()).history_id > start


@pytest.mark.parametrize("path", ["messages", "faults", "reset"])
async def test_the_control_surface_wants_the_token_too(sandbox: Sandbox, path: str) -> None:
    before = len(sandbox.mailbox)
    answer = await sandbox.control(path, token="another", content=b"Subject: x\r\n\r\n")
    assert answer.status_code == 401
    assert len(sandbox.mailbox) == before


async def test_mail_beyond_googles_size_limit_is_not_taken(sandbox: Sandbox) -> None:
    answer = await sandbox.control("messages", content=b"x" * 36_700_161)
    assert answer.status_code == 413


async def test_a_stopped_emulator_is_unreachable(sandbox: Sandbox) -> None:
    emulator = Emulator(Mailbox(OWNER, Random(1)), TOKEN)
    async with running_emulator(emulator) as url:
        sandbox.url = url
        gmail = sandbox.client()
        assert (await gmail.get_profile()).messages_total == 0
    with pytest.raises(Unreachable):
        await gmail.get_profile()


async def test_a_port_that_is_taken_is_named(sandbox: Sandbox) -> None:
    taken = int(sandbox.url.rpartition(":")[2])
    with pytest.raises(BadInput, match=f"{taken} is not available"):
        async with sandbox_mailbox(SandboxPlan(port=taken), TOKEN, print):
            pytest.fail("two emulators listen on one port")
