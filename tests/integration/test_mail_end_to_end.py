"""From the mailbox to the action and back into the mailbox, with real parts, on both databases."""

from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.intake.intake import Intake
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.mailbox import Mailbox
from support.arrived import arrived_mail
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.product import TOKEN, Product, decided_action, envelope, raw_mail, running_product, until_job


def labels(mailbox: Mailbox, subject: str) -> set[str]:
    (found,) = mailbox.search(f'subject:"{subject}"')
    return set(found.labels)


async def test_a_newsletter_is_archived_by_a_rule(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        await product.rule("news", {"header_match": {"name": "List-Unsubscribe"}}, "archive")
        product.mailbox.deliver(raw_mail("Weekly news", List_Unsubscribe="<https://news.example/out>"))
        assert await product.live.sync() == 1
        (row,) = await product.settled(1)
        assert (row.action_type, row.rule_name, row.action_state, row.tier) == (
            "archive",
            "news",
            "completed",
            "default",
        )
        assert "INBOX" not in labels(product.mailbox, "Weekly news")


async def test_a_label_is_made_and_applied_and_the_message_stays_in_the_inbox(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path) as product:
        await product.rule("receipts", {"subject_contains": "receipt"}, "apply_label", label="Receipts")
        product.mailbox.deliver(raw_mail("Your receipt"))
        await product.live.sync()
        (row,) = await product.settled(1)
        assert row.action_state == "completed"
        made = product.mailbox.labels.named("Receipts")
        assert made is not None
        assert labels(product.mailbox, "Your receipt") >= {"INBOX", made.id}


async def test_mail_that_no_rule_matches_stays_as_it_is(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        product.mailbox.deliver(raw_mail("Lunch?", sender="ida@lindqvist.example"))
        before = labels(product.mailbox, "Lunch?")
        await product.live.sync()
        (row,) = await product.settled(1)
        assert (row.action_type, row.action_state) == ("none", None)
        assert labels(product.mailbox, "Lunch?") == before


async def test_mail_is_delivered_once_however_often_the_connector_looks(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        product.mailbox.deliver(raw_mail("First"))
        assert await product.live.sync() == 1
        assert await product.live.sync() == 0
        (tmp_path / "checkpoint.json").unlink()
        assert await product.live.sync() == 0
        product.mailbox.deliver(raw_mail("Second"))
        assert await product.live.sync() == 1
        rows = await product.settled(2)
        assert [row.subject for row in rows] == ["First", "Second"]


async def test_the_connector_starts_over_when_gmail_has_forgotten_its_place(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        product.mailbox.deliver(raw_mail("Before"))
        await product.live.sync()
        product.mailbox.deliver(raw_mail("After"))
        product.mailbox.history.forget(10**9)
        assert await product.live.sync() == 1
        assert len(await product.settled(2)) == 2


async def test_a_message_that_is_gone_before_its_action_fails_with_a_reason(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        await _failed_action(product)
        (row,) = await product.settled(1)
        assert row.action_error is not None
        assert "archive" in row.action_error


async def test_a_broken_rule_disables_itself_and_the_message_goes_on(database: Database, tmp_path: Path) -> None:
    from postroom.store.rules.rules import list_rules

    async with running_product(database, tmp_path) as product:
        await product.rule("broken", {"subject_regex": "("}, "archive")
        await product.rule("good", {"subject_contains": "Hello"}, "apply_label", label="Good")
        product.mailbox.deliver(raw_mail("Hello there"))
        await product.live.sync()
        (row,) = await product.settled(1)
        assert (row.rule_name, row.action_state) == ("good", "completed")
        broken = next(rule for rule in await database.run(list_rules()) if rule.name == "broken")
        assert not broken.enabled
        assert broken.disabled_reason is not None
        assert "RE2" in broken.disabled_reason


async def test_hostile_headers_reach_the_end_of_the_road(database: Database, tmp_path: Path) -> None:
    hostile = [
        b"Subject: \xff\xfe\x00 bytes\r\n\r\nbody\x00\r\n",
        b"From: a\r\nFrom: b@c.example\r\nSubject: =?utf-8?b?////?=\r\n\r\n",
        b"\r\n\r\n",
        b"Subject: " + b"A" * 20_000 + b'\r\nTo: "x,y" <mara@lindqvist.example>\r\n\r\nhi',
        raw_mail("=?utf-8?q?=00=E2=80=AEevil?=", sender="<script>alert(1)</script>@x.example"),
        raw_mail("Nested", sender="(" * 5000),
        raw_mail("Grouped", to="a:" * 5000),
        raw_mail("Long", sender="x" * 5000 + "@x.example"),
    ]
    async with running_product(database, tmp_path) as product:
        for raw in hostile:
            product.mailbox.deliver(raw)
        assert await product.live.sync() == len(hostile)
        assert len(await product.settled(len(hostile))) == len(hostile)


async def _failed_action(product: Product) -> UUID:
    """An archive that Gmail has refused; returns the id of its job."""
    await product.rule("all", {"subject_contains": "Refused"}, "archive")
    product.mailbox.deliver(raw_mail("Refused once"))
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S) as http:
        fault = {"code": 404, "reason": "notFound", "path": "/modify", "times": 1}
        (await http.post(f"{product.address}/sandbox/faults", json=fault)).raise_for_status()
    await product.live.sync()
    (row,) = await product.settled(1)
    assert row.action_state == "failed"
    (job,) = await product.database.run(jobs.list_jobs(type="action.gmail"))
    return job.id


async def test_a_failed_action_is_carried_out_when_its_job_is_retried(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        job_id = await _failed_action(product)
        await until_job(database, job_id, "failed")
        await database.run(jobs.retry_job(job_id, wall_clock()))
        await until_job(database, job_id, "completed")
        (row,) = await product.settled(1)
        assert (row.action_state, row.action_error) == ("completed", None)
        assert "INBOX" not in labels(product.mailbox, "Refused once")


@pytest.mark.parametrize(("end", "expected"), [("cancel", "canceled"), ("rescue", "failed")])
async def test_an_action_ends_with_its_job_when_the_job_ends_without_it(
    database: Database, tmp_path: Path, clock: ManualClock, end: str, expected: str
) -> None:
    """The job is canceled in the queue, or given up by the rescuer after its last attempt."""
    action_id, job_id = await decided_action(database, clock, max_attempts=1)
    if end == "cancel":
        await database.run(jobs.cancel_job(job_id, clock()))
    else:
        token = new_id()
        await database.run(jobs.open_lease(token, "worker", clock(), clock()))
        (claimed,) = await database.run(jobs.claim(token, 1, clock()))
        await database.run(actions.begin_action(claimed, action_id, 20, clock()))
        await database.run(jobs.rescue(clock.forward(1)))
    assert await database.run(actions.end_orphans(clock())) == 1
    assert (await database.run(actions.load_action(action_id))).state == expected
    assert await database.run(actions.end_orphans(clock())) == 0


async def test_an_accepted_message_that_cannot_be_read_fails_alone(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        intake = Intake(database, None)
        bad = envelope("bad", {"headers": "no list"})
        await intake.ingest(bad)
        await intake.ingest(envelope("odd", {"sent_at": "9999-12-31T23:59:59-12:00", "headers": []}))
        product.mailbox.deliver(raw_mail("Good"))
        await product.live.sync()
        await product.settled(2)
        rows = {row.subject: row for row in await arrived_mail(database)}
        assert rows["(unreadable)"].state == "failed"
        assert "headers" in (rows["(unreadable)"].reason or "")
        assert rows["Good"].state == "done"


async def test_the_connector_waits_out_a_quota_and_loses_nothing(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        await product.live.sync()
        for number in range(5):
            product.mailbox.deliver(raw_mail(f"Mail {number}"))
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S) as http:
            fault = {"code": 429, "reason": "rateLimitExceeded", "path": "/messages/", "times": 3}
            (await http.post(f"{product.address}/sandbox/faults", json=fault)).raise_for_status()
        assert await product.live.sync() == 5


async def test_a_checkpoint_is_written_only_when_the_connector_has_got_further(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path) as product:
        product.mailbox.deliver(raw_mail("One"))
        await product.live.sync()
        await product.live.sync()
        written = (tmp_path / "checkpoint.json").stat().st_mtime_ns
        await product.live.sync()
        assert (tmp_path / "checkpoint.json").stat().st_mtime_ns == written
