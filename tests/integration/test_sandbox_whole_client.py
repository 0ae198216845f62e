"""All of our own client and OAuth against the emulator, every answer checked against Google's document."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.errors import (
    ConsentLost,
    DraftNotFound,
    GmailError,
    MessageNotFound,
    RateLimited,
    ScopeMissing,
)
from postroom.mailboxes.gmail.oauth import ConsentLife, GoogleApp, GoogleOAuth, begin_consent
from postroom.mailboxes.oauth.consent import answer_in
from postroom_sandbox.consent import CLIENT_ID, CLIENT_SECRET
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import NEW_PROJECT, Limits
from support.clocks import ManualClock
from support.gates import owners_client
from support.sandbox import OTHER, OWNER, Sandbox, raw_mail, running_sandbox
from support.whole_gmail import WholeGmailClient


def thirty(mailbox: Mailbox) -> None:
    for number in range(30):
        mailbox.deliver(raw_mail(f"number {number}"))


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, thirty) as running:
        yield running


def client(sandbox: Sandbox, token: str = "") -> WholeGmailClient:
    async def give() -> str:
        return token or sandbox.token

    return owners_client(sandbox.http, sandbox.url, give)


async def test_what_is_written_is_read_back(sandbox: Sandbox) -> None:
    gmail = client(sandbox)
    start = (await gmail.get_profile()).history_id
    ids = [message.id for message in (await gmail.list_messages(max_results=10)).messages]
    await gmail.batch_modify(ids[:5], add=["STARRED"])
    assert {message.id for message in (await gmail.list_messages("is:starred")).messages} == set(ids[:5])
    assert "TRASH" in await gmail.trash_message(ids[0])
    assert "TRASH" not in await gmail.untrash_message(ids[0])
    await gmail.delete_message(ids[0])
    await gmail.batch_delete(ids[1:3])
    label = await gmail.create_label("Trips")
    assert (await gmail.update_label(label, "Travel")).name == "Travel"
    assert (await gmail.get_label(label.id)).name == "Travel"
    await gmail.delete_label(label.id)
    deleted = [
        message.id
        async for page in gmail.history_pages(start)
        for record in page.records
        for message in record.messages_deleted
    ]
    assert sorted(deleted) == sorted(ids[:3])


async def test_a_draft_is_sent_once(sandbox: Sandbox) -> None:
    gmail = client(sandbox)
    draft = await gmail.create_draft(raw_mail("Lunch?", sender=OWNER, To=OTHER))
    assert [each.id for each in (await gmail.list_drafts()).drafts] == [draft.id]
    sent = await gmail.send_draft(draft.id)
    assert "SENT" in sent.label_ids
    with pytest.raises(DraftNotFound):
        await gmail.send_draft(draft.id)
    thread = await gmail.get_thread(sent.thread_id)
    assert [message.id for message in thread.messages] == [sent.id]


async def test_a_mail_too_large_for_json_is_uploaded(sandbox: Sandbox) -> None:
    raw = raw_mail("Plans", "x" * 70 + "\n", sender=OWNER, To=OTHER) + b"line of the plan\n" * 500_000
    gmail = client(sandbox)
    sent = await gmail.send_draft((await gmail.create_draft(raw)).id)
    assert sandbox.mailbox.get(sent.id).mail.raw.endswith(raw[-1000:])


async def test_a_batch_gives_each_its_verdict_in_order(sandbox: Sandbox) -> None:
    ids = [message.id for message in sandbox.mailbox.search()]
    sandbox.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=1))
    wanted = [calls.get_message(id, "raw") for id in [*ids[:26], "00000000deadbeef"]]
    verdicts = await client(sandbox).batch(wanted)
    assert len(verdicts) == 27
    assert isinstance(verdicts[-1], MessageNotFound)
    failed = [each for each in verdicts if isinstance(each, GmailError)]
    assert [type(each) for each in failed] in ([RateLimited, MessageNotFound], [MessageNotFound])


async def test_a_spent_quota_and_a_missing_scope_are_reported_as_such(sandbox: Sandbox) -> None:
    token = sandbox.emulator.issue_token(scopes=["https://www.googleapis.com/auth/gmail.labels"]).access_token
    with pytest.raises(ScopeMissing):
        await client(sandbox, token).list_messages()
    for refusal in ("403", "429"):
        sandbox.emulator.quota.limits = Limits(per_user_minute=0, user_refusal=refusal)
        with pytest.raises(RateLimited):
            await client(sandbox).get_profile()
    assert NEW_PROJECT.per_user_minute == 6000


async def test_a_watch_begins_and_ends(sandbox: Sandbox) -> None:
    gmail = client(sandbox)
    begun = await gmail.watch("projects/home/topics/mail", ["INBOX"])
    assert begun.history_id == sandbox.mailbox.history_id
    await gmail.stop()


async def test_our_oauth_goes_all_the_way_round(sandbox: Sandbox) -> None:
    app = GoogleApp(
        CLIENT_ID,
        CLIENT_SECRET,
        f"{sandbox.url}/o/oauth2/v2/auth",
        f"{sandbox.url}/token",
        f"{sandbox.url}/revoke",
    )
    sandbox.emulator.consents.behaviour.testing = True
    oauth, asked = GoogleOAuth(sandbox.http, app), begin_consent(app, "http://127.0.0.1:9/", "organise", OWNER)
    back = (await sandbox.http.get(asked.url)).headers["location"]
    grant = await oauth.exchange(asked, answer_in(asked, back))
    assert grant.refresh_token is not None
    assert grant.dies_in == timedelta(days=7)
    begun = sandbox.clock()
    life = ConsentLife(OWNER, begun)
    sandbox.clock.forward(3600)
    fresh = await oauth.refresh(grant.refresh_token, life, sandbox.clock())
    assert (await client(sandbox, fresh.access_token).get_profile()).email_address == OWNER
    sandbox.clock.forward(7 * 86400)
    with pytest.raises(ConsentLost):
        await oauth.refresh(grant.refresh_token, life, sandbox.clock())
    assert await oauth.revoke(grant.refresh_token)
    assert not await oauth.revoke(grant.refresh_token)
