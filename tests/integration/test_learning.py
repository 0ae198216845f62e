"""From one of our actions to the user's answer in the mailbox, recognised by its history alone."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.jobs.types import CATALOGUE
from postroom.core.rules import agreement
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import undo_job
from postroom.store.rules import outcomes, proposals
from postroom.system.wall_clock import wall_clock
from support.product import Product, raw_mail, running_product, until_job


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing is passed over only for being young."""
    monkeypatch.setattr(agreement, "SETTLING", timedelta(0))
    monkeypatch.setattr(outcomes, "SETTLING", timedelta(0))


async def acted_on(product: Product) -> tuple[dict[str, actions.ActionView], dict[str, str]]:
    """Three messages: archived, labelled, put into the trash. By their subjects; and so their ids at Gmail."""
    ids: dict[str, str] = {}
    for word, action in (("one", "archive"), ("two", "apply_label"), ("three", "trash")):
        parameters = {"label": "Receipts"} if action == "apply_label" else {}
        await product.rule(word, {"subject_contains": word}, action, **parameters)
        ids[word] = product.mailbox.deliver(raw_mail(word, sender=f"{word}@shop.example")).id
    await product.live.sync()
    await product.settled(3)
    return {view.subject: view for view in await product.database.run(actions.list_actions(9))}, ids


async def answers(product: Product, message_id: UUID) -> list[str]:
    return [each.what for each in await product.database.run(outcomes.outcomes_of(message_id))]


async def proposed(product: Product) -> set[str]:
    return {each.draft.name for each in await product.database.run(proposals.list_proposals("open", 9))}


async def test_what_we_did_and_undid_comes_back_by_the_history_and_is_no_answer(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path) as product:
        done, _ = await acted_on(product)
        await product.live.sync()
        for view in done.values():
            job = undo_job(CATALOGUE, view.account_id, (view.id,))
            await database.run(jobs.enqueue_many([job], wall_clock()))
            await until_job(database, job.id, "completed")
        await product.live.sync()
        assert [await answers(product, view.message_id) for view in done.values()] == [[], [], []]
        assert await proposed(product) == set()


async def test_what_the_user_takes_back_is_an_answer_and_a_proposal(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        done, ids = await acted_on(product)
        await product.live.sync()
        label = product.mailbox.labels.named("Receipts")
        assert label is not None
        product.mailbox.modify(ids["one"], add=["INBOX"])
        product.mailbox.modify(ids["two"], remove=[label.id])
        product.mailbox.modify(ids["three"], remove=["TRASH"])
        await product.live.sync()
        found = {word: await answers(product, view.message_id) for word, view in done.items()}
        assert found == {
            "one": ["moved it back to the inbox"],
            "two": ["removed this label"],
            "three": ["took it out of the trash"],
        }
        assert await proposed(product) == {
            "No archive for mail from one@shop.example",
            "No apply_label Receipts for mail from two@shop.example",
            "No trash for mail from three@shop.example",
        }
