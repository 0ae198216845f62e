"""A filter that was added just before a backfill counts for its estimate and for the job."""

from datetime import timedelta
from pathlib import Path

from postroom.core.backfill.job import NewBackfill
from postroom.core.mail.ingestion import IngestionRule
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.ingestion_rules import add_ingestion_rule
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from support.product import ENDPOINT, OWNER, Product, raw_mail, running_product

NO_SHOP = IngestionRule(1, "no-shop", "sender_domain_suffix", "skip", "store.example")
MESSAGES = 6


def signed() -> Signature:
    return Signature(new_id(), OWNER, "operator")


def deliver(product: Product) -> None:
    for number in range(MESSAGES):
        received = wall_clock() - timedelta(days=30, minutes=number)
        product.mailbox.deliver(raw_mail(f"Your invoice {number}"), {"INBOX"}, received_at=received)


def wanted() -> NewBackfill:
    today = wall_clock().date()
    first, last = today - timedelta(days=60), today - timedelta(days=3)
    return NewBackfill("gmail", ENDPOINT, ("finance",), first, last, rate_limit_per_hour=100_000, consent=True)


async def test_a_filter_added_just_before_counts_for_the_estimate(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path) as product:
        deliver(product)
        await sqlite.run(add_ingestion_rule(NO_SHOP, signed(), wall_clock()))
        new = wanted()
        asked = {"categories": ["finance"], "date_from": str(new.date_from), "date_to": str(new.date_to)}
        connector = product.parts.connector
        found = await RequestHandlers(connector, product.parts.source).backfill_sample(asked)
        assert found["sample"] == {"read": 6, "in_category": 6, "full": 0, "metadata": 0, "skipped": 6}


async def test_a_filter_added_just_before_counts_for_the_job(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path) as product:
        deliver(product)
        await sqlite.run(add_ingestion_rule(NO_SHOP, signed(), wall_clock()))
        created = await product.services.parts.backfills.create(wanted(), signed())
        assert await product.parts.backfills.work() == "completed"
        job = await product.services.parts.backfills.load(created.job.id)
        assert (job.rows_processed, job.rows_skipped) == (0, MESSAGES)
