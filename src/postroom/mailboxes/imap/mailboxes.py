"""The mailboxes of all accounts over IMAP: one connection for the work of each account, which its connector
shares, and one that waits for news.
"""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from postroom.mailboxes.imap.account import ImapAccount, ImapConnectionLimits, WaitingConnection
from postroom.mailboxes.imap.apps import mail_app
from postroom.mailboxes.imap.facts import FACTS, NAME
from postroom.mailboxes.imap.labels import Keywords
from postroom.mailboxes.imap.mailbox import ImapMailbox
from postroom.mailboxes.imap.places import KnownPlaces
from postroom.mailboxes.imap.sending import ImapCarrier
from postroom.mailboxes.imap.sign_ins import ImapSignIns
from postroom.mailboxes.imap.source import ImapSource
from postroom.mailboxes.imap.submissions import Submissions
from postroom.mailboxes.imap.tokens import MailTokens

if TYPE_CHECKING:
    from postroom.core.actions.permits import Permit
    from postroom.core.mail.carrier import Carrier, SentMailbox
    from postroom.core.mail.servers import MailServers
    from postroom.core.tally import Tally
    from postroom.mailboxes.providers import ProviderParts
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.store.accounts.accounts import AccountView


@dataclass
class _Opened:
    """A mailbox, for as long as its servers stay the same."""

    servers: MailServers | None
    account: ImapAccount
    mailbox: ImapMailbox


def within_half_of_open_files(most: int) -> int:
    """So many connections, or half of the files that the process may open: databases and pages need some too."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else max(1, min(most, files // 2))


class ImapProvider:
    """Access by the account's own password or consent, which is read for each connection."""

    def __init__(self, parts: ProviderParts) -> None:
        settings = parts.settings
        self._settings = settings
        self._book = parts.book
        self._gate = parts.gate
        self._tokens = MailTokens(parts.book, partial(mail_app, settings), parts.http)
        self._sign_ins = ImapSignIns(parts.book, tokens=self._tokens)
        self._submissions = Submissions(self._sign_ins)
        self._connections = ImapConnectionLimits(within_half_of_open_files(settings.imap.most_connections))
        self._opened: dict[UUID, _Opened] = {}
        self._backfill_polls: dict[str, float] = {}

    async def mailbox(self, account_id: UUID) -> ImapMailbox:
        return self._of(await self._book.load(account_id)).mailbox

    async def mailbox_under(self, permit: Permit) -> ImapMailbox:
        return (await self.mailbox(permit.account_id)).under(permit)

    async def source(self, account_id: UUID) -> ImapSource:
        opened = self._of(await self._book.load(account_id))
        return ImapSource(opened.account, KnownPlaces(), Keywords())

    async def sent_mail(self, account_id: UUID) -> SentMailbox:
        return await self._carrier(account_id)

    async def carrier(self, permit: Permit) -> Carrier:
        await self._submissions.check(permit.account_id)
        return await self._carrier(permit.account_id, permit)

    def is_reachable(self, account: AccountView) -> bool:
        return account.servers is not None

    async def watch(self, account: AccountView, switchboard: McpSwitchboard, tally: Tally) -> None:
        from postroom.mailboxes.following.running import watch_within
        from postroom.mailboxes.imap.watching import connector_parts

        opened, hosts = self._of(account).account, FACTS.receiving_hosts(account.servers)
        waiting = WaitingConnection(self._connections, self._sign_ins.opener(account.id))
        with contextlib.closing(waiting):
            await watch_within(
                self._settings,
                switchboard,
                NAME,
                account.email,
                lambda home: connector_parts(home, opened, waiting.open, hosts),
                self._settings.imap.poll_s,
                tally=tally,
                polls=self._backfill_polls,
                acts_from=account.acts_from,
            )

    async def aclose(self) -> None:
        for each in self._opened.values():
            await each.account.log_out()
        self._opened.clear()
        await self._tokens.aclose()

    async def _carrier(self, account_id: UUID, permit: Permit | None = None) -> ImapCarrier:
        """Return a carrier that only reads, unless there is a permit."""
        account = await self._book.load(account_id)
        mailbox = self._of(account).mailbox
        submission = self._submissions.of(account_id, account.servers)
        return ImapCarrier(mailbox if permit is None else mailbox.under(permit), submission, account.email)

    def _of(self, account: AccountView) -> _Opened:
        """Return what is open, or begin anew if the account was given other servers or another password."""
        found = self._opened.get(account.id)
        if found is None or found.servers != account.servers:
            if found is not None:
                found.account.close()
            reached = ImapAccount(self._sign_ins.opener(account.id), self._connections.for_work)
            labels_as = "keywords" if account.servers is None else account.servers.labels_as
            always = [self._settings.gmail.snooze_label]
            mailbox = ImapMailbox(reached, self._gate, labels_as, always)
            found = self._opened[account.id] = _Opened(account.servers, reached, mailbox)
        return found
