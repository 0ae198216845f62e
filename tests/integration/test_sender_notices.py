"""People are told of a throttle: by a signed webhook over real HTTP, and by mail from Postroom's own tenant."""

import json
from email import message_from_bytes
from email.policy import default
from typing import Any

import apsw
import pytest

from postroom.core.errors import Fatal, Retryable
from postroom.core.jobs.job import Job
from postroom.core.outbound.abuse import AbusePolicy
from postroom.jobs.run import JobRun
from postroom.outbound.queue.scoring import Scoring
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.outbound import senders, tenants
from postroom.triage.act.webhook import HEADER, SignedWebhook, check_signature
from postroom.triage.handlers.sender_notify import NoticeAddresses, SenderNotify
from support.gates import LASTING
from support.store.dump import dump
from support.store.fault_cases_senders import ADA, added, counted
from support.webhook_receiver import SECRET, Receiver

ADDRESSES = NoticeAddresses("postmaster@example.org", "postroom@example.org")


async def throttled(receiver: Receiver) -> dict[str, Job]:
    """The jobs that tell of a throttle, by their channel."""
    setup = receiver.setup
    ada = await added(setup)
    await counted(setup, ada.id, bounced=100)
    await Scoring(setup.database, AbusePolicy(), "on", ("mail", "webhook"), clock=setup.clock).score()
    return {job.payload["channel"]: job for job in await setup.claim()}


def webhook(receiver: Receiver) -> SignedWebhook:
    clock = receiver.setup.clock
    return SignedWebhook(receiver.http, f"{receiver.url}/told", SECRET, clock, "notices about senders", "the setting")


async def tell(receiver: Receiver, job: Job, notify: SenderNotify) -> JobRun:
    run = JobRun(job, receiver.setup.database, receiver.setup.clock, LASTING)
    await notify(run)
    return run


def contents(receiver: Receiver) -> list[Any]:
    """What waits to be sent: its tenant, user and envelope sender, and the message."""
    database = receiver.setup.database
    assert isinstance(database, SqliteDatabase)
    connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
    columns = "m.tenant, m.username, m.envelope_sender, c.content"
    rows = connection.execute(f"SELECT {columns} FROM outbound_mail m JOIN outbound_contents c ON c.mail_id = m.id")
    return rows.fetchall()


async def test_the_webhook_is_told_who_why_and_until_when_signed(receiver: Receiver) -> None:
    job = (await throttled(receiver))["webhook"]
    await tell(receiver, job, SenderNotify(webhook(receiver), None, receiver.setup.clock))
    headers, body = receiver.taken[0]
    check_signature(SECRET, headers[HEADER.lower()], body, receiver.setup.clock())
    told = json.loads(body)
    assert told["id"] == headers["idempotency-key"] == f"sender.throttled:{job.id}"
    assert (told["event"], told["username"], told["tenant"]) == ("sender.throttled", ADA, "example.com")
    assert (told["score"], told["reason"]) == (60, "100 of 100 bounced")
    assert told["until"] == "2026-11-15T16:00:00+00:00"


async def test_a_webhook_that_fails_is_tried_again_and_one_that_refuses_is_not(receiver: Receiver) -> None:
    job = (await throttled(receiver))["webhook"]
    notify = SenderNotify(webhook(receiver), None)
    receiver.status = 503
    with pytest.raises(Retryable, match="the webhook of notices about senders answered 503"):
        await tell(receiver, job, notify)
    receiver.status = 404
    with pytest.raises(Fatal, match="check the setting"):
        await tell(receiver, job, notify)


async def test_the_operator_gets_one_mail_from_postrooms_own_tenant(receiver: Receiver) -> None:
    setup, job = receiver.setup, (await throttled(receiver))["mail"]
    run = await tell(receiver, job, SenderNotify(None, ADDRESSES, setup.clock))
    assert run.ended
    ((tenant, username, envelope_sender, content),) = contents(receiver)
    assert (tenant, username, envelope_sender) == ("system", "system", "postroom@example.org")
    mail = message_from_bytes(content, policy=default)
    assert (mail["From"], mail["To"]) == ("postroom@example.org", "postmaster@example.org")
    assert mail["Subject"] == f"Sender throttled: {ADA}"
    assert mail["Auto-Submitted"] == "auto-generated"
    text = mail.get_content()
    assert "100 of 100 bounced" in text
    assert f"postroom sender release {ADA}" in text
    assert [each.name for each in await setup.database.run(tenants.list_tenants())] == ["example.com", "system"]
    own = await setup.database.run(senders.load_sender("system", setup.clock()))
    assert (own.lane, own.has_password) == ("normal", False)


async def test_a_channel_that_is_not_set_up_is_said_so(receiver: Receiver) -> None:
    jobs = await throttled(receiver)
    before = await dump(receiver.setup.database)
    for job in jobs.values():
        with pytest.raises(Fatal, match="are not set up"):
            await tell(receiver, job, SenderNotify(None, None))
    assert await dump(receiver.setup.database) == before
