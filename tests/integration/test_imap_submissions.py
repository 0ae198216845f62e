"""The submission servers of accounts over IMAP: stored password, another server, and a refused sign-in."""

from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from postroom.core.errors import NotAllowed
from postroom.core.mail.secret_fields import PASSWORD
from postroom.core.mail.servers import MailServers
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.errors import ImapSignInRefused
from postroom.mailboxes.imap.sign_ins import ImapSignIns
from postroom.mailboxes.imap.submissions import REFUSED_FOR, Submissions
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import GivenAccess
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.vault.sealing import Vault
from postroom_sandbox.smtp_server import SmtpServer
from support.clocks import ManualClock
from support.imap_sending import OWNER, letter, submission_server
from support.store.fault_cases_registry import signed


@dataclass
class Connected:
    """One account, whose servers and password its owner gives anew."""

    database: Database
    vault: Vault
    clock: ManualClock
    submissions: Submissions
    id: UUID

    async def give(self, smtp: SmtpServer | None, password: str) -> MailServers:
        now = self.clock.forward(1)
        host, port, security = (None, None, None) if smtp is None else ("127.0.0.1", smtp.port, "plain")
        servers = MailServers(
            "127.0.0.1", 143, "plain", host, port, security, "mara", "password", "keywords", False, now
        )
        secrets = {PASSWORD: self.vault.seal(self.id, PASSWORD, password)}
        await self.database.run(
            accounts.connect_account(self.id, "imap", OWNER, GivenAccess(secrets, servers=servers), signed(), now)
        )
        return servers

    async def submit(self) -> None:
        goodbye = await self.submissions.submit(self.id, letter(uuid4()), _nothing)
        await goodbye()


async def _nothing() -> None: ...


@pytest.fixture
def connected(database: Database, clock: ManualClock, tmp_path: Path) -> Connected:
    vault = Vault(tmp_path / "keys")
    vault.prepare([], clock())
    sign_ins = ImapSignIns(AccountBook(database, lambda: vault, clock))
    return Connected(database, vault, clock, Submissions(sign_ins, clock), new_id())


async def test_a_refused_password_is_not_tried_again_until_there_is_another_or_an_hour_is_over(
    connected: Connected,
) -> None:
    async with submission_server({"AUTH": "535 5.7.8 no"}) as smtp:
        smtp.tls = None
        await connected.give(smtp, "wrong")
        for _ in range(3):
            with pytest.raises(ImapSignInRefused, match=r"535 5\.7\.8"):
                await connected.submit()
        assert smtp.connections == 1
        connected.clock.forward(REFUSED_FOR.total_seconds())
        with pytest.raises(ImapSignInRefused):
            await connected.submit()
        assert smtp.connections == 2
        smtp.answers = {}
        await connected.give(smtp, "right")
        await connected.submit()
        # What may be read and changed over IMAP goes on: sending is switched on separately at many providers.
        assert (await connected.database.run(accounts.load_account(connected.id))).state == "active"
    assert [each.username for each in smtp.received] == ["mara"]


async def test_an_account_without_a_server_for_sending_says_how_to_give_one(connected: Connected) -> None:
    await connected.give(None, "secret")
    with pytest.raises(NotAllowed, match="cannot send: no server for sending was given; run `postroom account"):
        await connected.submissions.check(connected.id)


@pytest.mark.parametrize(
    ("host", "filed", "does"), [("smtp.gmail.com", False, True), ("a.example", True, True), ("a.example", False, False)]
)
async def test_a_server_is_known_to_file_copies_by_its_name_or_by_the_accounts_settings(
    connected: Connected, host: str, filed: bool, does: bool
) -> None:
    servers = replace(await connected.give(None, "secret"), smtp_host=host, files_sent_mail=filed)
    assert connected.submissions.of(connected.id, servers).files_copies is does
