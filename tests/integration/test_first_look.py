"""The first look at a mailbox says what then happens: starters chosen on real mail, switched on from a chosen time."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from postroom.compose.application import PostroomApplication
from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.starter import starters
from postroom.operations.accounts.switching_on import SwitchedOn, switch_on
from postroom.operations.caller import Caller
from postroom.operations.preview.first_look import FirstLook, take_first_look
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import list_accounts
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import add_rules, list_rules, switch_rule
from postroom.system.wall_clock import wall_clock
from support.product import OWNER, TOKEN, Product, raw_mail, running_product
from support.until import until

DAY = timedelta(days=1)
NEWS = {"List_Unsubscribe": "<https://shop.example/leave>", "List_Id": "<news.shop.example>"}


def deliver(product: Product) -> dict[str, str]:
    """Newsletters of 9, 3 and 1 days ago, of which the last was archived by hand, an alert, a receipt, and a friend's
    mail. Each by its subject, with its id.
    """
    mailbox, now = product.mailbox, product.mailbox.clock()

    def put(subject: str, sender: str, days: int, *labels: str, **headers: str) -> tuple[str, str]:
        message = mailbox.deliver(raw_mail(subject, sender, **headers), labels, received_at=now - days * DAY)
        return subject, message.id

    return dict(
        [
            put("Offer 9", "news@shop.example", 9, "INBOX", **NEWS),
            put("Offer 3", "news@shop.example", 3, "INBOX", **NEWS),
            put("Offer 1", "news@shop.example", 1, **NEWS),
            put("Your password was changed", "no-reply@bank.example", 2, "INBOX"),
            put("Your receipt for order 7", "no-reply@shop.example", 4, "INBOX"),
            put("Lunch?", "ida@friends.example", 2, "INBOX"),
        ]
    )


def inbox(product: Product, ids: Mapping[str, str]) -> set[str]:
    return {subject for subject, id in ids.items() if "INBOX" in product.mailbox.get(id).labels}


def at(product: Product) -> Settings:
    account = {"email": OWNER}
    gmail = {"base_url": product.address, "token": TOKEN}
    return Settings.model_validate({"account": account, "gmail": gmail})


async def look(product: Product, now: datetime | None = None) -> FirstLook:
    """As the command and the page take it."""
    application, settings = PostroomApplication(), at(product)
    return await take_first_look(
        product.database,
        settings,
        OWNER,
        lambda database, id: application.open_source(settings, database, id),
        now=now or wall_clock(),
    )


def caller(database: Database) -> Caller:
    return Caller(database, Signature(new_id(), "test", "admin"))


async def act(database: Database, *names: str, since: datetime | None = None) -> SwitchedOn:
    return await switch_on(caller(database), account=OWNER, starters=names, since=since)


async def test_a_look_counts_for_each_starter_and_shows_real_mail(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        ids = deliver(product)
        found = await look(product)
        assert (found.email, found.messages, found.own, found.off) == (OWNER, 6, None, None)
        assert found.reaches_lately
        by_name = {each.name: each for each in found.starters}
        assert list(by_name) == [each.name for each in starters()]
        assert {
            name: (each.mail, each.matched, each.leave_inbox) for name, each in by_name.items() if each.matched
        } == {
            "security": (6, 1, 0),
            "receipts": (6, 1, 1),
            "newsletters": (6, 3, 3),
        }
        examples = [(each.sender, each.subject, each.would) for each in by_name["newsletters"].examples]
        assert examples == [
            ("news@shop.example", f"Offer {days}", "label it “Newsletters” and archive it") for days in (1, 3, 9)
        ]
        assert await database.run(list_rules()) == []
        assert "Offer 3" in inbox(product, ids)


async def test_what_a_look_foresees_of_the_last_seven_days_is_what_happens(database: Database, tmp_path: Path) -> None:
    """Nothing was stored before: the connector's first look reaches back to the chosen time."""
    async with running_product(database, tmp_path, acts=False) as product:
        ids = deliver(product)
        found = await look(product)
        before, chosen = inbox(product, ids), ("security", "newsletters")
        effect = found.effect_lately(chosen)
        assert (effect.mail, effect.matched, effect.leave_inbox, effect.wait) == (5, 3, 1, 0)
        on = await act(database, *chosen, since=found.now - 7 * DAY)
        assert on.rules == ["Security alerts", "Newsletters"]
        await product.live.sync()
        await product.settled(5)
        assert before - inbox(product, ids) == {"Offer 3"}
        assert len(await database.run(list_actions(99))) == effect.matched


async def test_mail_that_was_read_in_shadow_before_is_acted_on_too(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        ids = deliver(product)
        await product.live.sync()
        await product.until_decided(5)
        before = inbox(product, ids)
        # What no rule is for is decided again each time, and left alone again.
        for count in (5, 3):
            on = await act(database, "newsletters", since=wall_clock() - 7 * DAY)
            assert on.acting.messages == count
            await until(
                database,
                lambda: database.run(list_actions(99)),
                lambda found: sum(each.state == "completed" for each in found) == 2,
            )
            await product.settled(5)
        assert before - inbox(product, ids) == {"Offer 3"}
        assert len(await database.run(list_actions(99))) == 2


async def test_only_new_mail_is_the_default_and_repeating_it_leaves_the_time(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        ids = deliver(product)
        first = await act(database, "newsletters")
        again = await act(database, "newsletters")
        assert first.rules == ["Newsletters"]
        assert again.rules == []
        assert again.acting.acts_from == first.acting.acts_from
        # Earlier, on second thoughts; and never later again.
        earlier = wall_clock() - 7 * DAY
        for since in (earlier, wall_clock() - DAY):
            moved = await act(database, since=since)
            assert moved.acting.acts_from == earlier.replace(microsecond=0)
        ids["Offer 0"] = product.mailbox.deliver(raw_mail("Offer 0", "news@shop.example", **NEWS)).id
        await product.live.sync()
        await product.settled(6)
        assert "Offer 0" not in inbox(product, ids)


async def test_a_time_in_the_future_adds_no_rule(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False):
        with pytest.raises(BadInput, match="in the future"):
            await act(database, "newsletters", since=wall_clock() + DAY)
        assert await database.run(list_rules()) == []
        assert [each.acts_from for each in await database.run(list_accounts())] == [None]


async def test_own_rules_come_first_and_a_look_says_what_starters_add(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        deliver(product)
        await product.rule("shop", {"subject_contains": "offer 3"}, "star")
        off = RuleDraft("imported", {"subject_contains": "lunch"}, "mark_read", enabled=False)
        await database.run(add_rules([(new_id(), off)], wall_clock()))
        found = await look(product)
        assert found.own is not None
        assert (found.own.rules, found.own.matched, found.own.examples[0].subject) == (1, 1, "Offer 3")
        assert found.off is not None
        assert (found.off.rules, found.off.matched, found.off.examples[0].would) == (1, 1, "mark it as read")
        newsletters = next(each for each in found.starters if each.name == "newsletters")
        assert [each.subject for each in newsletters.examples] == ["Offer 1", "Offer 9"]
        assert (found.effect(()).matched, found.effect(["newsletters"]).matched) == (1, 3)


async def test_a_starter_rule_that_was_switched_off_is_on_again_when_it_is_chosen(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        deliver(product)
        await act(database, "newsletters")
        await database.run(switch_rule("Newsletters", False, Signature(new_id(), "test", "admin"), wall_clock()))
        found = next(each for each in (await look(product)).starters if each.name == "newsletters")
        assert (found.chosen, found.matched) == ("no", 3)
        assert (await act(database, "newsletters")).rules == ["Newsletters"]
        assert [each.enabled for each in await database.run(list_rules())] == [True]


async def test_a_busy_mailbox_is_looked_at_for_seven_days_and_an_idle_one_further_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the newest two, both would be of one day; all of seven days are read, and no more."""
    monkeypatch.setattr("postroom.operations.preview.first_look.MOST", 2)
    monkeypatch.setattr("postroom.operations.preview.preview_account.CHUNK", 1)
    async with running_product(database, tmp_path, acts=False) as product:
        deliver(product)
        found = await look(product)
        assert (found.messages, found.reaches_lately) == (6, True)
        monkeypatch.setattr("postroom.operations.preview.preview_account.FURTHEST", 4)
        short = await look(product)
        assert (short.messages, short.reaches_lately) == (4, False)
        monkeypatch.setattr("postroom.operations.preview.first_look.MOST", 4)
        idle = await look(product, wall_clock() - 3 * DAY)
        assert idle.messages == 4


async def test_an_empty_mailbox_has_nothing_to_show(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        found = await look(product)
        assert (found.messages, found.oldest, found.newest, found.reaches) == (0, None, None, None)
        assert {each.matched for each in found.starters} == {0}
        assert found.effect_lately(["newsletters"]).matched == 0
