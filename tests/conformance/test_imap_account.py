"""The connections of many IMAP accounts together: kept while there is room, and shared when there is none."""

import asyncio

from postroom.imap.account import ImapAccount
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
