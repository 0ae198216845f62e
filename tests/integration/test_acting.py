"""Old mail waits for a word: until the owner says from when on to act, everything is decided in shadow."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from postroom.core.errors import BadInput
from postroom.operations.accounts.acting import begin_acting, plan_acting
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import find_message
from postroom.store.accounts.accounts import list_accounts
from postroom.store.actions.actions import list_actions
from postroom.store.actions.decisions import decisions_about
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import ACTS_ON_ALL
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from support.mail import story_of
from support.product import OWNER, Product, raw_mail, running_product
from support.until import until

DAY = timedelta(days=1)


def signed() -> Signature:
    return Signature(new_id(), "test", "admin")


def deliver(product: Product, **ages: float) -> dict[str, str]:
    """Mail that came so many days ago; by its subject, its id at Gmail."""
    now = product.mailbox.clock()
    return {
        name: product.mailbox.deliver(raw_mail(name, sender="a@shop.example"), received_at=now - age * DAY).id
        for name, age in ages.items()
    }


async def archived(product: Product, ids: Mapping[str, str]) -> set[str]:
    return {name for name, id in ids.items() if "INBOX" not in product.mailbox.get(id).labels}


async def until_done(database: Database, count: int) -> None:
    """Waits until so many actions are completed."""
    await until(
        database,
        lambda: database.run(list_actions(99)),
        lambda found: sum(each.state == "completed" for each in found) == count,
    )


async def test_the_first_start_changes_nothing_until_the_owner_says_from_when(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        await product.rule("shops", {"sender_domain": "shop.example"}, "archive")
        ids = deliver(product, old=5, recent=1)
        await product.live.sync()
        rows = await product.until_decided(2)
        assert [row.action_type for row in rows] == ["none", "none"]
        assert await database.run(list_actions(9)) == []
        old = await find_message(database, ids["old"])
        story = await story_of(database, str(old))
        assert any("you have not switched on acting for mail of that time yet" in line.text for line in story)
        decided = await database.run(decisions_about(old))
        assert [(each.decision.shadow, each.decision.action_type) for each in decided] == [
            (False, "none"),
            (True, "archive"),
        ]

        acting = await begin_acting(Caller(database, signed()), OWNER, wall_clock())
        assert acting.messages == 0
        assert acting.acts_from > ACTS_ON_ALL
        ids |= deliver(product, new=-0.001)
        await product.live.sync()
        await until_done(database, 1)
        assert await archived(product, ids) == {"new"}


async def test_mail_since_the_given_time_is_decided_again_and_earlier_mail_stays(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path, acts=False) as product:
        await product.rule("shops", {"subject_contains": "recent"}, "archive")
        ids = deliver(product, old=5, recent=1, other=2)
        await product.live.sync()
        await product.until_decided(3)
        # A rule that came later decides too.
        await product.rule("others", {"subject_contains": "o"}, "archive")
        since = wall_clock() - 3 * DAY
        plan = await plan_acting(database, OWNER, since)
        assert (plan.messages, dict(plan.would), plan.changes) == (2, {"archive": 1}, 1)
        assert await archived(product, ids) == set()

        for count in (2, 0):
            acting = await begin_acting(Caller(database, signed()), OWNER, since)
            assert acting.messages == count
            await until_done(database, 2)
        assert await archived(product, ids) == {"recent", "other"}


async def test_the_future_is_no_time_to_act_from(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path, acts=False):
        with pytest.raises(BadInput, match="in the future"):
            await begin_acting(Caller(database, signed()), OWNER, wall_clock() + DAY)
        assert [each.acts_from for each in await database.run(list_accounts())] == [None]
