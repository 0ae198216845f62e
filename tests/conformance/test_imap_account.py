"""The connections of many IMAP accounts together: kept while there is room, and shared when there is none."""

import asyncio

import pytest

from postroom.mailboxes.imap.account import ImapAccount, ImapConnectionLimits, WaitingConnection
from postroom.mailboxes.imap.errors import Unreachable
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.session import ImapSession
from support.imap_mailbox import account_on
from support.imap_server import ImapServer
from support.patience import PATIENCE_S


def with_slots(server: ImapServer, count: int, slots: asyncio.Semaphore) -> list[ImapAccount]:
    return [ImapAccount(account_on(server, server.new_user()).open, slots) for _ in range(count)]


async def test_accounts_share_few_connections_without_waiting_for_idle_ones(dovecot: ImapServer) -> None:
    accounts = with_slots(dovecot, 5, asyncio.Semaphore(2))

    async def use(account: ImapAccount) -> None:
        for _ in range(2):
            async with account.session() as session:
                await session.noop()

    async with asyncio.timeout(PATIENCE_S / 10):
        await asyncio.gather(*map(use, accounts))
    for each in accounts:
        await each.log_out()


async def test_a_connection_is_kept_while_there_is_room(dovecot: ImapServer) -> None:
    (account,) = with_slots(dovecot, 1, asyncio.Semaphore(2))
    async with account.session() as first:
        pass
    async with account.session() as second:
        assert second is first
    await account.log_out()


async def test_mailboxes_that_wait_for_news_are_bounded_and_leave_connections_for_work(dovecot: ImapServer) -> None:
    limits, pauses = ImapConnectionLimits(5), list[float]()
    accounts = [account_on(dovecot, dovecot.new_user()) for _ in range(3)]
    waiting = [WaitingConnection(limits, each.open) for each in accounts]
    has_rested = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        has_rested.set()
        await asyncio.Event().wait()

    hints = [IdleHints(each.open, sleep=sleep) for each in waiting]
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(each.wait() for each in hints[:2]))
        # There is none for the third, which rests; it is not watched, so that rounds look at it.
        third = asyncio.create_task(hints[2].wait())
        await has_rested.wait()
        assert [each.is_watching for each in hints] == [True, True, False]
        assert pauses[0] >= 60
        # A connection that is lost and opened again is not counted twice.
        hints[0].close()
        hints[0] = IdleHints(waiting[0].open)
        await hints[0].wait()
        assert limits.waiting_left == 0
        # The places for work are others.
        work = [ImapAccount(each.open, limits.for_work) for each in accounts]
        async with work[0].session(), work[1].session(), work[2].session() as session:
            await session.noop()
            assert limits.for_work.locked()
        third.cancel()
        await asyncio.wait({third})
        hints[1].close()
        waiting[1].close()
        hints[2] = IdleHints(waiting[2].open)
        await hints[2].wait()
        assert hints[2].is_watching
    for each in hints:
        each.close()
    for each in waiting:
        each.close()
    assert limits.waiting_left == 2
    for each in work:
        await each.log_out()


async def test_a_place_to_wait_is_given_back_if_the_connection_cannot_be_opened() -> None:
    async def refuse() -> ImapSession:
        raise Unreachable("imap.example.com", "refused")

    limits = ImapConnectionLimits(2)
    waiting = WaitingConnection(limits, refuse)
    for _ in range(2):
        with pytest.raises(Unreachable):
            await waiting.open()
        assert limits.waiting_left == 1
