"""Labels that the user deletes, renames or creates in Gmail: effects on rules and stored labels."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail import labels, mail
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.system.wall_clock import wall_clock
from postroom.triage.handlers.label_watch import EVERY_S, LabelWatch
from postroom_sandbox.faults import Fault
from support.mailboxes import always
from support.message_setup import MessageSetup, message_id_of
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, Product, raw_mail, running_product

RULE = "receipts"


@dataclass
class LabelSetup:
    """A product with a rule that puts a label on receipts, and its mailbox."""

    product: Product
    account_id: UUID
    arrived: int = 0

    async def receipt(self) -> actions.ActionView:
        """Another receipt comes in, and is decided on; its action, which has ended."""
        self.arrived += 1
        self.product.mailbox.deliver(raw_mail(f"Receipt {self.arrived}"))
        await self.product.live.sync()
        await self.product.settled(self.arrived)
        return next(iter(await self.product.database.run(actions.list_actions(1))))

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.product.mailbox.labels.all() if each.type == "user"}

    def label_id(self, name: str) -> str:
        return next(each.id for each in self.product.mailbox.labels.all() if each.name == name)

    async def rule(self) -> rules.RuleView:
        return await self.product.database.run(rules.load_rule(RULE))

    async def known(self) -> set[str]:
        found = await self.product.database.run(labels.list_labels(self.account_id))
        return {each.name for each in found if each.kind == "user"}


@pytest.fixture
async def label_setup(database: Database, tmp_path: Path) -> AsyncGenerator[LabelSetup]:
    async with running_product(database, tmp_path) as product:
        await product.rule(RULE, {"subject_contains": "receipt"}, "apply_label", label="Receipts")
        account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
        yield LabelSetup(product, account.id)


async def test_a_label_that_never_was_is_created_for_a_rule_and_known_at_once(label_setup: LabelSetup) -> None:
    assert (await label_setup.receipt()).state == "completed"
    assert label_setup.names == await label_setup.known() == {"Receipts"}


async def test_a_rule_does_not_bring_back_a_label_that_the_user_deleted(label_setup: LabelSetup) -> None:
    await label_setup.receipt()
    label_setup.product.mailbox.delete_label(label_setup.label_id("Receipts"))
    missed = await label_setup.receipt()
    assert (missed.state, label_setup.names) == ("failed", set())
    assert "'Receipts' was deleted from Gmail" in (missed.error or "")
    rule = await label_setup.rule()
    assert (rule.enabled, rule.disabled_reason) == (False, "Label 'Receipts' was deleted from Gmail")


async def test_a_rule_does_not_create_a_second_label_beside_one_that_the_user_renamed(label_setup: LabelSetup) -> None:
    await label_setup.receipt()
    label_setup.product.mailbox.labels.update(label_setup.label_id("Receipts"), "Bills", {})
    missed = await label_setup.receipt()
    assert (missed.state, label_setup.names) == ("failed", {"Bills"})
    assert (await label_setup.rule()).disabled_reason == "Label 'Receipts' was renamed to 'Bills' in Gmail"


async def test_a_rule_that_the_user_enables_again_may_create_its_label(label_setup: LabelSetup) -> None:
    await label_setup.receipt()
    label_setup.product.mailbox.delete_label(label_setup.label_id("Receipts"))
    await label_setup.receipt()
    signed = Signature(new_id(), "test", "admin")
    await label_setup.product.database.run(rules.switch_rule(RULE, True, signed, wall_clock()))
    assert (await label_setup.receipt()).state == "completed"
    assert label_setup.names == {"Receipts"}
    assert (await label_setup.rule()).enabled


async def test_what_was_asked_for_before_a_label_was_lost_does_not_create_it_but_a_new_word_does(
    label_setup: LabelSetup,
) -> None:
    product = label_setup.product
    await label_setup.receipt()
    setup = MessageSetup(product, "", await message_id_of(product.database, "Receipt 1"))
    await setup.do("remove_label", label="Receipts")
    product.mailbox.delete_label(label_setup.label_id("Receipts"))
    early = await setup.do("apply_label", label="Receipts")
    assert (early.state, label_setup.names) == ("failed", set())
    assert "only if you ask for it" in (early.error or "")
    assert (await setup.do("apply_label", label="Receipts")).state == "completed"
    assert label_setup.names == {"Receipts"}


async def test_a_label_made_or_deleted_in_gmail_is_known_by_the_next_look_and_an_empty_answer_changes_nothing(
    label_setup: LabelSetup,
) -> None:
    assert EVERY_S <= 45, "a label is known within a minute"

    async def token() -> str:
        return TOKEN

    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        mailbox = GmailMailbox(GmailClient(http, label_setup.product.address, token))
        watch = LabelWatch(label_setup.product.database, always(mailbox))
        made = label_setup.product.mailbox.labels.create("Receipts", {})
        assert await watch.look(label_setup.account_id)
        assert await label_setup.known() == {"Receipts"}
        assert not await watch.look(label_setup.account_id), "nothing has changed"
        fault = Fault(kind="missing_fields", method="labels.list", fields=("labels",), times=1)
        label_setup.product.emulator.faults.order(fault)
        assert not await watch.look(label_setup.account_id)
        assert await label_setup.known() == {"Receipts"}
        assert (await label_setup.rule()).enabled
        label_setup.product.mailbox.delete_label(made.id)
        assert await watch.look(label_setup.account_id)
        assert await label_setup.known() == set()
        assert not (await label_setup.rule()).enabled
