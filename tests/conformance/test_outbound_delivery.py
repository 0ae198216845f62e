"""How a delivery ends other than by success: too late, unwanted, without an account, stopped, or by our own fault."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import pytest

from conformance.desk import Desk
from conformance.fault_cases_registry import signed
from conformance.test_outbound_properties import PACE, Killed, Mortal, PostOffice, Run
from postroom.core.mail.carrier import DraftKept
from postroom.gmail.errors import ServerError, Unreachable
from postroom.store import accounts, actions, outbound, outbound_answers, pauses
from postroom.store.engine.database import Database, Script, Transaction, sql, transaction
from postroom.store.engine.ids import new_id

T = TypeVar("T")


class Busy(PostOffice):
    """Nothing is sent; drafts can be made when it `is_open`."""

    def __init__(self, run: Run, is_open: bool) -> None:
        super().__init__(run.rng)
        self.trouble = 0
        self.is_open = is_open

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        if not self.is_open:
            raise ServerError("drafts.create", 503)
        return await super().create_draft(mail, thread_id)

    async def send_draft(self, draft_id: str) -> str | None:
        raise ServerError("drafts.send", 503)


class Broken(PostOffice):
    """It trips over its own feet."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        raise ZeroDivisionError("secret text of a mail")


async def started(desk: Desk, is_open: bool = True) -> Run:
    """A mail that was tried once."""
    run = Run(desk, seed=1)
    run.post = Busy(run, is_open)
    run.database = Mortal(desk.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    return run


async def shown(desk: Desk) -> tuple[outbound.DeliveryView, actions.ActionView]:
    (delivery,) = await desk.database.run(outbound.list_deliveries(9))
    (action,) = await desk.database.run(actions.list_actions(9))
    return delivery, action


@pytest.mark.parametrize("is_open", [True, False])
async def test_what_cannot_be_sent_in_five_days_expires_and_leaves_no_draft(sqlite_desk: Desk, is_open: bool) -> None:
    run = await started(sqlite_desk, is_open=is_open)
    assert (await shown(sqlite_desk))[0].state == "deferred"
    sqlite_desk.clock.forward(PACE.give_up.total_seconds())
    await run.round()
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state) == ("expired", "failed")
    assert "5 days" in (action.error or "")
    assert run.post.drafts == {}


@pytest.mark.parametrize(("is_open", "state"), [(False, "canceled"), (True, "unknown")])
async def test_mail_of_a_removed_account_is_canceled_unless_it_may_have_been_sent(
    sqlite_desk: Desk, is_open: bool, state: str
) -> None:
    run = await started(sqlite_desk, is_open=is_open)
    (delivery, _) = await shown(sqlite_desk)
    await sqlite_desk.database.run(accounts.remove_account(delivery.account_id, signed(), sqlite_desk.clock()))
    while await run.round():
        pass
    assert (await shown(sqlite_desk))[0].state == state


async def test_an_action_that_was_ended_meanwhile_is_not_sent(sqlite_desk: Desk) -> None:
    run = await started(sqlite_desk)
    delivery, _ = await shown(sqlite_desk)

    @transaction
    def end_action() -> Script[None]:
        yield sql("cancel_action", delivery.action_id, "by hand", sqlite_desk.clock())

    await sqlite_desk.database.run(end_action())
    while await run.round():
        pass
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state, action.error) == ("canceled", "canceled", "by hand")
    assert (run.post.left.total(), run.post.drafts) == (0, {})


async def test_a_fault_of_our_own_puts_mail_off_and_tells_nothing_of_it(sqlite_desk: Desk) -> None:
    run = Run(sqlite_desk, seed=1)
    run.post = Broken(run.rng)
    run.post.trouble = 0
    run.database = Mortal(sqlite_desk.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    delivery, action = await shown(sqlite_desk)
    assert delivery.state == "deferred"
    assert "ZeroDivisionError" in (action.error or "")
    assert "secret" not in f"{delivery.error}{action.error}"


class Watched(Mortal):
    """Something happens right before the first transaction of this name."""

    def __init__(self, database: Database, post: PostOffice, name: str, happens: Callable[[], Awaitable[object]]):
        super().__init__(database, post.rng, post)
        self._name = name
        self._happens = happens

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.name == self._name:
            self._name = ""
            await self._happens()
        return await super().run(transaction)


async def calm(desk: Desk, post: Callable[[Run], PostOffice] | None = None) -> Run:
    """A mail that nobody has tried, where nothing fails by chance."""
    run = Run(desk, seed=1)
    run.post = PostOffice(run.rng) if post is None else post(run)
    run.post.trouble = 0
    run.database = Mortal(desk.database, run.rng, run.post)
    await run.admit(1)
    return run


def stop(desk: Desk) -> Callable[[], Awaitable[object]]:
    return lambda: desk.database.run(pauses.pause(pauses.ALL, "a look", signed(), desk.clock()))


async def test_no_draft_is_made_once_everything_is_stopped(sqlite_desk: Desk) -> None:
    run = await calm(sqlite_desk)
    run.database = Watched(sqlite_desk.database, run.post, "load_mime", stop(sqlite_desk))
    await run.round()
    assert run.post.drafts == {}
    assert (await shown(sqlite_desk))[0].state == "queued"
    await sqlite_desk.database.run(pauses.resume(pauses.ALL, signed(), sqlite_desk.clock()))
    await run.round()
    assert (await shown(sqlite_desk))[0].state == "delivered"


class Forgetful(PostOffice):
    """The first answer to each of these is lost, after its effect."""

    lost: frozenset[str] = frozenset()

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        return self._told("create", await super().create_draft(mail, thread_id))

    async def send_draft(self, draft_id: str) -> str | None:
        return self._told("send", await super().send_draft(draft_id))

    def _told(self, what: str, answer: T) -> T:
        if what in self.lost:
            self.lost -= {what}
            raise Unreachable("a call", "reset")
        return answer


def forgetful(*lost: str) -> Callable[[Run], PostOffice]:
    def opened(run: Run) -> PostOffice:
        post = Forgetful(run.rng)
        post.lost = frozenset(lost)
        return post

    return opened


async def test_no_spare_draft_is_deleted_once_everything_is_stopped(sqlite_desk: Desk) -> None:
    run = await calm(sqlite_desk, forgetful("create"))
    await run.round()
    (mark,) = run.post.drafts.values()
    run.post.drafts["spare"] = mark

    async def drafts_of(mark: UUID) -> list[DraftKept]:
        await stop(sqlite_desk)()
        return await PostOffice.drafts_of(run.post, mark)

    run.post.drafts_of = drafts_of
    sqlite_desk.clock.forward(90)
    await run.round()
    assert len(run.post.drafts) == 2
    assert (await shown(sqlite_desk))[0].state == "queued"


async def test_that_a_mail_was_sent_is_written_down_before_anything_is_tidied(sqlite_desk: Desk) -> None:
    run = await calm(sqlite_desk, forgetful("send"))
    await run.round()

    async def drafts_of(mark: UUID) -> list[DraftKept]:
        raise Killed

    run.post.drafts_of = drafts_of
    sqlite_desk.clock.forward(90)
    await run.round()
    assert (await shown(sqlite_desk))[0].state == "delivered"


async def test_whoever_looks_for_long_keeps_the_lease(sqlite_desk: Desk) -> None:
    run = await calm(sqlite_desk, forgetful("send"))
    await run.round()
    taken: list[outbound.LeasedDelivery] = []

    async def find_sent(mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        now = sqlite_desk.clock.forward(PACE.lease.total_seconds() * 0.6)
        taken.extend(await sqlite_desk.database.run(outbound.lease_deliveries(new_id(), 9, now, now + PACE.lease)))
        return None

    run.post.find_sent = find_sent
    sqlite_desk.clock.forward(90)
    await run.round()
    assert taken == []
    assert (await shown(sqlite_desk))[0].state == "unknown"


async def test_mail_that_was_not_sent_by_a_persons_word_is_looked_for_before_it_is_made_again(
    sqlite_desk: Desk,
) -> None:
    """He had looked into the wrong mailbox, or too early."""
    run = await calm(sqlite_desk, forgetful("send"))
    admitted_at, looked = sqlite_desk.clock(), list[datetime]()

    async def find_sent(mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        looked.append(since)
        return await PostOffice.find_sent(run.post, mark, threads, since)

    run.post.find_sent = find_sent
    await run.round()
    run.post.in_sent, hidden = {}, run.post.in_sent
    sqlite_desk.clock.forward(90)
    await run.round()
    (delivery, _) = await shown(sqlite_desk)
    assert delivery.state == "unknown"
    run.post.in_sent = hidden
    now = sqlite_desk.clock.forward(30 * 86_400)
    await sqlite_desk.database.run(outbound_answers.resolve_delivery(delivery.id, "not_sent", signed(), now))
    await run.round()
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state) == ("delivered", "completed")
    assert run.post.left[delivery.id] == 1
    assert looked[-1] <= admitted_at


@pytest.mark.parametrize(("lost", "state", "left"), [((), "canceled", 0), (("send",), "delivered", 1)])
async def test_what_is_canceled_while_it_is_sent_is_taken_back_unless_it_has_left(
    sqlite_desk: Desk, lost: tuple[str, ...], state: str, left: int
) -> None:
    run = await calm(sqlite_desk, forgetful(*lost))
    (id,) = run.seen

    async def cancel() -> None:
        result = await sqlite_desk.database.run(outbound_answers.cancel_delivery(id, signed(), sqlite_desk.clock()))
        assert result == "stopping"

    run.database = Watched(sqlite_desk.database, run.post, "defer" if lost else "hold_delivery", cancel)
    while await run.round():
        pass
    delivery, action = await shown(sqlite_desk)
    assert (delivery.state, action.state, action.error) == (state, "canceled", "canceled by cli:ada")
    assert (run.post.left.total(), run.post.drafts) == (left, {})
