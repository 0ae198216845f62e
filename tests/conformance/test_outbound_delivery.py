"""How a delivery ends other than by success: too late, unwanted, without an account, stopped, or by our own fault."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import pytest

from postroom.core.mail.carrier import DraftKept
from postroom.mailboxes.gmail.errors import Unreachable
from postroom.store.accounts import accounts
from postroom.store.actions import pauses
from postroom.store.engine.database import Database, Script, Transaction, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound import outbound, outbound_answers
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.sending import PACE, Killed, Mortal, PostOffice, Run, shown, started

T = TypeVar("T")


class Broken(PostOffice):
    """It trips over its own feet."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        raise ZeroDivisionError("secret text of a mail")


@pytest.mark.parametrize("is_open", [True, False])
async def test_what_cannot_be_sent_in_five_days_expires_and_leaves_no_draft(
    sqlite_setup: JobSetup, is_open: bool
) -> None:
    run = await started(sqlite_setup, is_open=is_open)
    assert (await shown(sqlite_setup))[0].state == "deferred"
    sqlite_setup.clock.forward(PACE.give_up.total_seconds())
    await run.round()
    delivery, action = await shown(sqlite_setup)
    assert (delivery.state, action.state) == ("expired", "failed")
    assert "5 days" in (action.error or "")
    assert run.post.drafts == {}


@pytest.mark.parametrize(("is_open", "state"), [(False, "canceled"), (True, "unknown")])
async def test_mail_of_a_removed_account_is_canceled_unless_it_may_have_been_sent(
    sqlite_setup: JobSetup, is_open: bool, state: str
) -> None:
    run = await started(sqlite_setup, is_open=is_open)
    (delivery, _) = await shown(sqlite_setup)
    assert delivery.account_id is not None
    await sqlite_setup.database.run(accounts.remove_account(delivery.account_id, signed(), sqlite_setup.clock()))
    while await run.round():
        pass
    assert (await shown(sqlite_setup))[0].state == state


async def test_an_action_that_was_ended_meanwhile_is_not_sent(sqlite_setup: JobSetup) -> None:
    run = await started(sqlite_setup)
    delivery, _ = await shown(sqlite_setup)

    @transaction
    def end_action() -> Script[None]:
        yield sql("cancel_action", delivery.action_id, "by hand", sqlite_setup.clock())

    await sqlite_setup.database.run(end_action())
    while await run.round():
        pass
    delivery, action = await shown(sqlite_setup)
    assert (delivery.state, action.state, action.error) == ("canceled", "canceled", "by hand")
    assert (run.post.left.total(), run.post.drafts) == (0, {})


async def test_a_fault_of_our_own_puts_mail_off_and_tells_nothing_of_it(sqlite_setup: JobSetup) -> None:
    run = Run(sqlite_setup, seed=1)
    run.post = Broken(run.rng)
    run.post.trouble = 0
    run.database = Mortal(sqlite_setup.database, run.rng, run.post)
    await run.admit(1)
    await run.round()
    delivery, action = await shown(sqlite_setup)
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


async def calm(setup: JobSetup, post: Callable[[Run], PostOffice] | None = None) -> Run:
    """A mail that nobody has tried, where nothing fails by chance."""
    run = Run(setup, seed=1)
    run.post = PostOffice(run.rng) if post is None else post(run)
    run.post.trouble = 0
    run.database = Mortal(setup.database, run.rng, run.post)
    await run.admit(1)
    return run


def stop(setup: JobSetup) -> Callable[[], Awaitable[object]]:
    return lambda: setup.database.run(pauses.pause(pauses.ALL, "a look", signed(), setup.clock()))


async def test_no_draft_is_made_once_everything_is_stopped(sqlite_setup: JobSetup) -> None:
    run = await calm(sqlite_setup)
    run.database = Watched(sqlite_setup.database, run.post, "load_content", stop(sqlite_setup))
    await run.round()
    assert run.post.drafts == {}
    assert (await shown(sqlite_setup))[0].state == "queued"
    await sqlite_setup.database.run(pauses.resume(pauses.ALL, signed(), sqlite_setup.clock()))
    await run.round()
    assert (await shown(sqlite_setup))[0].state == "sent"


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


async def test_no_spare_draft_is_deleted_once_everything_is_stopped(sqlite_setup: JobSetup) -> None:
    run = await calm(sqlite_setup, forgetful("create"))
    await run.round()
    (mark,) = run.post.drafts.values()
    run.post.drafts["spare"] = mark

    async def drafts_of(mark: UUID) -> list[DraftKept]:
        await stop(sqlite_setup)()
        return await PostOffice.drafts_of(run.post, mark)

    run.post.drafts_of = drafts_of
    sqlite_setup.clock.forward(90)
    await run.round()
    assert len(run.post.drafts) == 2
    assert (await shown(sqlite_setup))[0].state == "queued"


async def test_that_a_mail_was_sent_is_written_down_before_anything_is_tidied(sqlite_setup: JobSetup) -> None:
    run = await calm(sqlite_setup, forgetful("send"))
    await run.round()

    async def drafts_of(mark: UUID) -> list[DraftKept]:
        raise Killed

    run.post.drafts_of = drafts_of
    sqlite_setup.clock.forward(90)
    await run.round()
    assert (await shown(sqlite_setup))[0].state == "sent"


async def test_whoever_looks_for_long_keeps_the_lease(sqlite_setup: JobSetup) -> None:
    run = await calm(sqlite_setup, forgetful("send"))
    await run.round()
    taken: list[outbound.LeasedMail] = []

    async def find_sent(mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        now = sqlite_setup.clock.forward(PACE.lease.total_seconds() * 0.6)
        taken.extend(await sqlite_setup.database.run(outbound.lease_mail(new_id(), 9, now, now + PACE.lease)))
        return None

    run.post.find_sent = find_sent
    sqlite_setup.clock.forward(90)
    await run.round()
    assert taken == []
    assert (await shown(sqlite_setup))[0].state == "unknown"


async def test_mail_that_was_not_sent_by_a_persons_word_is_looked_for_before_it_is_made_again(
    sqlite_setup: JobSetup,
) -> None:
    """He had looked into the wrong mailbox, or too early."""
    run = await calm(sqlite_setup, forgetful("send"))
    admitted_at, looked = sqlite_setup.clock(), list[datetime]()

    async def find_sent(mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        looked.append(since)
        return await PostOffice.find_sent(run.post, mark, threads, since)

    run.post.find_sent = find_sent
    await run.round()
    run.post.in_sent, hidden = {}, run.post.in_sent
    sqlite_setup.clock.forward(90)
    await run.round()
    (delivery, _) = await shown(sqlite_setup)
    assert delivery.state == "unknown"
    run.post.in_sent = hidden
    now = sqlite_setup.clock.forward(30 * 86_400)
    await sqlite_setup.database.run(outbound_answers.resolve_mail(delivery.id, "not_sent", signed(), now))
    await run.round()
    delivery, action = await shown(sqlite_setup)
    assert (delivery.state, action.state) == ("sent", "completed")
    assert run.post.left[delivery.id] == 1
    assert looked[-1] <= admitted_at


@pytest.mark.parametrize(("lost", "state", "left"), [((), "canceled", 0), (("send",), "sent", 1)])
async def test_what_is_canceled_while_it_is_sent_is_taken_back_unless_it_has_left(
    sqlite_setup: JobSetup, lost: tuple[str, ...], state: str, left: int
) -> None:
    run = await calm(sqlite_setup, forgetful(*lost))
    (id,) = run.seen

    async def cancel() -> None:
        result = await sqlite_setup.database.run(outbound_answers.cancel_mail(id, signed(), sqlite_setup.clock()))
        assert result == "stopping"

    run.database = Watched(sqlite_setup.database, run.post, "defer" if lost else "hold_mail", cancel)
    while await run.round():
        pass
    delivery, action = await shown(sqlite_setup)
    assert (delivery.state, action.state, action.error) == (state, "canceled", "canceled by cli:ada")
    assert (run.post.left.total(), run.post.drafts) == (left, {})
