"""Every call of the Gmail client against the emulator: single, in batches, within a quota, and with tokens that end."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from random import Random

import httpx2
import pytest

from postroom.mailboxes.gmail.errors import (
    ConsentLost,
    DraftNotFound,
    GmailError,
    HistoryExpired,
    LabelNotFound,
    MessageNotFound,
    RateLimited,
    ScopeMissing,
    ServerError,
    ThreadNotFound,
    Unauthorized,
)
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.gmail.oauth import ConsentLife, GoogleApp, GoogleOAuth
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.resources import Message
from postroom.mailboxes.gmail.scopes import LEVELS
from postroom.mailboxes.gmail.terms import Terms
from postroom.mailboxes.gmail.tokens import GmailAccessToken, Tokens
from postroom_sandbox.consent import CLIENT_ID, CLIENT_SECRET
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import Limits
from postroom_sandbox.sample import fill_sample
from postroom_sandbox.server import running_emulator
from support.gates import owners_client
from support.patience import PATIENCE_S
from support.whole_gmail import WholeGmailClient

OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
SEED = 25


@dataclass
class Google:
    emulator: Emulator
    url: str
    http: httpx2.AsyncClient
    gmail: WholeGmailClient = field(init=False)

    def __post_init__(self) -> None:
        self.gmail = self.client()

    def client(self, quota: Quota | None = None, token: str = TOKEN) -> WholeGmailClient:
        async def give() -> str:
            return token

        return owners_client(self.http, self.url, give, quota=quota)

    def ids(self, search: str = "in:anywhere") -> list[str]:
        return [message.id for message in self.emulator.mailbox.search(search)]

    def calls(self, method: str) -> int:
        return self.emulator.quota.counters.calls[method]

    def tokens(self, refresh_token: str) -> Tokens:
        """As a connected account fetches them."""

        app = GoogleApp(CLIENT_ID, CLIENT_SECRET, token_url=f"{self.url}/token")
        life = ConsentLife(OWNER, datetime.now(UTC))

        async def fetch(refused: str | None) -> GmailAccessToken:
            grant = await GoogleOAuth(self.http, app).refresh(refresh_token, life, datetime.now(UTC))
            return GmailAccessToken(grant.access_token, datetime.now(UTC) + grant.expires_in)

        return Tokens(fetch, lambda: datetime.now(UTC))


@pytest.fixture
async def google() -> AsyncGenerator[Google]:
    print(f"seed {SEED}")
    mailbox = Mailbox(OWNER, Random(SEED))
    emulator = Emulator(mailbox, TOKEN, fill=lambda mailbox: fill_sample(mailbox, SEED))
    async with running_emulator(emulator) as url, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        yield Google(emulator, url, http)


def mail(subject: str = "Plans", body: str = "See you on Sunday.", reply_to: str | None = None) -> bytes:
    message = EmailMessage()
    if reply_to is not None:
        message["In-Reply-To"] = message["References"] = reply_to
    message["From"], message["To"], message["Subject"] = OWNER, "ida@lindqvist.example", subject
    message.set_content(body)
    return message.as_bytes()


async def test_mail_is_trashed_brought_back_and_deleted_for_good(google: Google) -> None:
    box, id = GmailMailbox(google.gmail), google.ids("in:inbox")[0]
    assert "TRASH" in (await box.trash(id)).labels
    assert "TRASH" not in (await box.untrash(id)).labels
    await box.delete(id)
    with pytest.raises(MessageNotFound):
        await box.labels_of(id)


async def test_many_messages_are_changed_and_deleted_in_one_call(google: Google) -> None:
    ids = google.ids("in:inbox")[:15]
    await google.gmail.batch_modify(ids, add=["STARRED"], remove=["INBOX"])
    labels = [each.label_ids for each in await google.gmail.get_messages(ids, "minimal") if isinstance(each, Message)]
    assert len(labels) == 15
    assert all("STARRED" in each and "INBOX" not in each for each in labels)
    await google.gmail.batch_delete(ids)
    assert google.calls("messages.batchModify") == google.calls("messages.batchDelete") == 1
    assert all(isinstance(each, MessageNotFound) for each in await google.gmail.get_messages(ids))


async def test_a_draft_lives_until_it_is_sent(google: Google) -> None:
    created = await google.gmail.create_draft(mail())
    assert (await google.gmail.get_draft(created.id)).message.header("subject") == "Plans"
    listed = [draft.id for draft in (await google.gmail.list_drafts()).drafts]
    assert created.id in listed
    sent = await google.gmail.send_draft(created.id)
    assert "SENT" in (await google.gmail.get_message(sent.id)).label_ids
    for gone in (google.gmail.get_draft, google.gmail.send_draft, google.gmail.delete_draft):
        with pytest.raises(DraftNotFound):
            await gone(created.id)


async def test_a_draft_can_be_thrown_away(google: Google) -> None:
    created = await google.gmail.create_draft(mail())
    await google.gmail.delete_draft(created.id)
    assert created.id not in [draft.id for draft in (await google.gmail.list_drafts()).drafts]


@pytest.mark.parametrize("size", [100, 5 << 20])
async def test_mail_is_sent_and_joins_its_thread(google: Google, size: int) -> None:
    first = await google.gmail.send_message(mail("Plans"))
    message_id = (await google.gmail.get_message(first.id, "metadata", ["Message-ID"])).header("message-id")
    answer = mail("Re: Plans", f"{'x' * 70}\n" * (size // 70), message_id)
    reply = await google.gmail.send_message(answer, thread_id=first.thread_id)
    thread = await google.gmail.get_thread(first.thread_id, "metadata", ["Subject"])
    assert [each.id for each in thread.messages] == [first.id, reply.id]
    assert thread.messages[0].header("subject") == "Plans"
    with pytest.raises(ThreadNotFound):
        await google.gmail.get_thread("ffff")


async def test_an_attachment_comes_whole(google: Google) -> None:
    message = EmailMessage()
    message["To"], message["Subject"] = "ida@lindqvist.example", "Photo"
    message.set_content("Here it is.")
    message.add_attachment(bytes(range(256)) * 500, "image", "jpeg", filename="photo.jpg")
    sent = await google.gmail.send_message(message.as_bytes())
    payload = (await google.gmail.get_message(sent.id)).payload
    assert payload is not None
    attachment_id = payload.parts[1].body.attachment_id
    assert attachment_id is not None
    assert await google.gmail.get_attachment(sent.id, attachment_id) == bytes(range(256)) * 500


async def test_labels_are_made_renamed_counted_and_deleted(google: Google) -> None:
    made = await google.gmail.create_label("Postroom/Tests")
    renamed = await google.gmail.update_label(made, "Postroom/Checked")
    assert renamed.id == made.id
    await google.gmail.batch_modify(google.ids()[:3], add=[made.id])
    found = await google.gmail.get_label(made.id)
    assert (found.name, found.messages_total) == ("Postroom/Checked", 3)
    await google.gmail.delete_label(made.id)
    for gone in (google.gmail.get_label, google.gmail.delete_label):
        with pytest.raises(LabelNotFound):
            await gone(made.id)


async def test_history_tells_every_kind_of_change_page_by_page(google: Google) -> None:
    start = (await google.gmail.get_profile()).history_id
    first, second = google.ids("in:inbox")[:2]
    await google.gmail.modify_message(first, add=["STARRED"])
    await google.gmail.modify_message(first, remove=["STARRED"])
    await google.gmail.delete_message(second)
    sent = await google.gmail.send_message(mail())
    records = [each async for page in google.gmail.history_pages(start, max_results=1) for each in page.records]
    assert [change.label_ids for each in records for change in each.labels_added] == [{"STARRED"}]
    assert [change.label_ids for each in records for change in each.labels_removed] == [{"STARRED"}]
    assert [ref.id for each in records for ref in each.messages_deleted] == [second]
    assert [ref.id for each in records for ref in each.messages_added] == [sent.id]
    inbox = await google.gmail.list_history(start, history_types=["messageAdded"], label_id="INBOX")
    assert inbox.records == ()
    google.emulator.mailbox.expire_history()
    with pytest.raises(HistoryExpired):
        await google.gmail.list_history(start)


async def test_all_pages_together_hold_every_message_once(google: Google) -> None:
    listed = [
        ref.id async for page in google.gmail.message_pages("in:anywhere", max_results=7) for ref in page.messages
    ]
    assert listed == google.ids()


async def test_a_watch_tells_until_when_it_lasts(google: Google) -> None:
    watch = await google.gmail.watch("projects/p/topics/gmail", ["INBOX"])
    assert timedelta(days=6) < watch.expires_at - datetime.now(UTC) <= timedelta(days=7, minutes=1)
    assert watch.history_id == google.emulator.mailbox.history_id
    await google.gmail.stop()


async def test_a_batch_answers_each_call_in_order_with_its_own_verdict(google: Google) -> None:
    ids = google.ids()[:30]
    asked = [*ids[:10], "ffff", *ids[10:]]
    outcomes = await google.gmail.get_messages(asked, "metadata")
    assert [each.id if isinstance(each, Message) else type(each) for each in outcomes] == [
        *ids[:10], MessageNotFound, *ids[10:],
    ]  # fmt: skip
    assert google.emulator.quota.counters.batches == 2, "of 12, and the rest"


async def test_a_part_that_the_rate_limit_refuses_does_not_fail_the_others(google: Google) -> None:
    ids = google.ids()[:10]
    google.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=3))
    google.emulator.faults.order(Fault(503, "backendError", method="messages.get", times=1))
    outcomes = await google.gmail.get_messages(ids)
    assert [type(each) for each in outcomes[:4]] == [RateLimited, RateLimited, RateLimited, ServerError]
    assert [each.id for each in outcomes[4:] if isinstance(each, Message)] == ids[4:]


async def test_within_a_quota_only_the_refused_parts_are_asked_for_again(google: Google) -> None:
    ids = google.ids()[:25]
    google.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=3))
    outcomes = await google.client(Quota(rng=Random(SEED))).get_messages(ids)
    assert [each.id for each in outcomes if isinstance(each, Message)] == ids
    assert google.calls("messages.get") == 28


async def test_batches_come_as_they_are_answered_with_the_refused_parts_in_the_next(google: Google) -> None:
    ids = google.ids()[:20]
    google.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=3))
    client = google.client(Quota(rng=Random(SEED)))
    places = [list(outcomes) async for outcomes in client.message_batches(ids)]
    assert places == [list(range(3, 12)), [0, 1, 2, 12, 13, 14], list(range(15, 20))]


async def test_a_refused_call_is_made_again_after_the_time_that_google_names(google: Google) -> None:
    google.emulator.faults.order(Fault(403, "userRateLimitExceeded", retry_after=1, times=1))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await google.client(Quota(rng=Random(SEED))).get_profile()
    assert 1.0 <= loop.time() - started < 5
    assert google.calls("getProfile") == 2


async def test_a_call_that_stays_refused_ends_with_the_rate_limit(google: Google) -> None:
    google.emulator.faults.order(Fault(429, "rateLimitExceeded", retry_after=600, times=100))
    with pytest.raises(RateLimited) as caught:
        await google.client(Quota(rng=Random(SEED))).get_profile()
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= timedelta(seconds=590)
    assert google.calls("getProfile") == 1


async def test_the_emulator_never_has_to_refuse_a_client_that_keeps_to_its_terms(google: Google) -> None:
    google.emulator.quota.limits = Limits(per_user_minute=1_000)
    client = google.client(Quota(Terms(per_minute=1_000, reserve=500, most_at_once=8), rng=Random(SEED)))
    bulk = client.for_use("bulk")
    read = [asyncio.create_task(bulk.get_message(id)) for id in google.ids()[:40]]
    await asyncio.gather(*[client.get_message(id) for id in google.ids()[:25]])
    for task in read:
        task.cancel()
    await asyncio.wait(read)
    assert google.emulator.quota.counters.refused.total() == 0
    assert google.emulator.quota.most_in_a_minute(OWNER) <= 1_000
    assert sum(not task.cancelled() for task in read) <= 25


async def test_many_calls_whose_token_has_ended_share_one_new_one(google: Google) -> None:
    issued = google.emulator.issue_token()
    assert issued.refresh_token is not None
    tokens = google.tokens(issued.refresh_token)
    client = owners_client(google.http, google.url, tokens)
    await client.get_profile()
    before = await tokens.token()
    google.emulator.consents.expire_access()
    results = await asyncio.gather(*[client.get_message(id, "minimal") for id in google.ids()[:20]])
    assert len(results) == 20
    assert await tokens.token() != before
    google.emulator.consents.expire_access()
    outcomes = await client.get_messages(google.ids()[:5], "minimal")
    assert all(isinstance(each, Message) for each in outcomes)


async def test_a_withdrawn_consent_is_lost_and_said_so(google: Google) -> None:
    issued = google.emulator.issue_token()
    assert issued.refresh_token is not None
    client = owners_client(google.http, google.url, google.tokens(issued.refresh_token))
    await client.get_profile()
    google.emulator.consents.revoke(issued.refresh_token)
    with pytest.raises(ConsentLost, match=OWNER):
        await client.get_profile()


async def test_a_token_of_a_setting_that_is_refused_is_not_tried_twice(google: Google) -> None:
    with pytest.raises(Unauthorized):
        await google.client(token="wrong").get_profile()
    assert google.emulator.quota.counters.calls.total() == 0


@pytest.mark.parametrize(("level", "refused"), [("read", "organise"), ("organise", "full"), ("send", "full")])
async def test_what_the_level_does_not_allow_names_the_level_that_does(
    google: Google, level: str, refused: str
) -> None:
    scopes: Collection[str] = next(scopes for name, scopes in LEVELS.items() if name == level)
    client = google.client(token=google.emulator.issue_token(scopes=scopes).access_token)
    id = google.ids()[0]
    await client.get_message(id)
    with pytest.raises(ScopeMissing, match=f"--level {refused}"):
        await (client.trash_message(id) if level == "read" else client.delete_message(id))


async def test_every_error_of_a_batch_is_an_error_of_gmails(google: Google) -> None:
    google.emulator.faults.order(Fault(401, "authError", method="messages.get", times=1))
    google.emulator.faults.order(Fault(403, "domainPolicy", method="messages.get", times=1))
    outcomes = await google.gmail.get_messages(google.ids()[:3])
    assert [isinstance(each, GmailError) for each in outcomes] == [True, True, False]
