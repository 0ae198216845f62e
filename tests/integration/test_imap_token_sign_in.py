"""Access tokens of accounts over IMAP: got by the stored consent, shared, replaced in time, and what ends them."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from postroom.core.errors import Parked, VaultError
from postroom.core.mail.mailbox import job_error_of
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.errors import ImapError
from postroom.mailboxes.imap.sign_ins import AccountWaits, ImapSignIns, SecretUnreadable, TokenLater
from postroom.mailboxes.imap.submissions import Submissions
from postroom.mailboxes.imap.tokens import HeldConsent, MailTokens
from postroom.mailboxes.oauth.mail_apps import microsoft_mail_app
from postroom.mailboxes.oauth.tokens import refresh
from postroom.operations.accounts.connecting_imap import connect_imap_by_consent
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.vault.sealing import Vault
from postroom_sandbox.server import running
from support.clocks import ManualClock
from support.imap_sending import letter, submission_server
from support.microsoft import CLIENT_ID, Microsoft, nothing
from support.patience import PATIENCE_S
from support.scripted_imap import Talk, scripted_imap
from support.store.fault_cases_accounts import ADA, servers
from support.store.fault_cases_registry import signed

AGAIN = f"run `postroom account add imap --email {ADA} --sign-in microsoft`"


@dataclass
class Server:
    """Lets in whoever has an access token that Microsoft has issued and the server has not heard ended."""

    microsoft: Microsoft
    offers: bytes = b"AUTH=XOAUTH2 AUTH=OAUTHBEARER"
    ended: set[str] = field(default_factory=set[str])
    accepts_none: bool = False
    seen: list[str] = field(default_factory=list[str])
    mechanisms: list[bytes] = field(default_factory=list[bytes])

    async def talk(self, talk: Talk) -> None:
        talk.say(b"* OK [CAPABILITY IMAP4rev1 SASL-IR " + self.offers + b"] ready")
        while True:
            tag, rest = await talk.heard()
            if not rest.startswith(b"AUTHENTICATE"):
                talk.say(tag + b" OK done")
                continue
            _, mechanism, message = rest.split(b" ")
            self.mechanisms.append(mechanism)
            head, _, token = base64.b64decode(message).decode().partition("\x01auth=Bearer ")
            token = token.removesuffix("\x01\x01")
            self.seen.append(token)
            assert ADA in head
            if self.microsoft.access.get(token) == ADA and token not in self.ended and not self.accepts_none:
                talk.say(tag + b" OK in")
                continue
            # As RFC 7628 has it: the error first, and the refusal after the client's last word.
            talk.say(b"+ " + base64.b64encode(b'{"status":"401"}'))
            last_word = await talk.reader.readline()
            assert last_word.strip() in (b"", b"AQ==")
            talk.say(tag + b" NO [AUTHENTICATIONFAILED] no")


@dataclass
class Setup:
    database: Database
    vault: Vault
    clock: ManualClock
    microsoft: Microsoft
    server: Server
    http: httpx2.AsyncClient
    port: int

    def __post_init__(self) -> None:
        self.book = AccountBook(self.database, lambda: self.vault, self.clock)
        self.tokens = self.new_tokens()
        self.sign_ins = self.process(self.tokens)

    def new_tokens(self) -> MailTokens:
        app = microsoft_mail_app(CLIENT_ID, None, self.microsoft.address, "common")
        return MailTokens(self.book, lambda _name: app, self.http)

    def process(self, tokens: MailTokens | None = None) -> ImapSignIns:
        """The sign-ins of a process, with tokens of its own."""
        return ImapSignIns(self.book, tokens=tokens or self.new_tokens())

    async def consent(self, smtp_port: int | None = None) -> AccountView:
        token = self.microsoft.issue(ADA)["refresh_token"]
        at = replace(
            servers(self.clock.forward(1)),
            imap_host="127.0.0.1",
            imap_port=self.port,
            imap_security="plain",
            smtp_host=None if smtp_port is None else "127.0.0.1",
            smtp_port=smtp_port,
            smtp_security=None if smtp_port is None else "plain",
            user_name=ADA,
            sign_in="xoauth2",
        )
        held = HeldConsent("microsoft", token)
        return await connect_imap_by_consent(Caller(self.database, signed(), self.clock), self.vault, ADA, at, held)

    async def open(self, account: AccountView) -> None:
        (await self.sign_ins.open(account.id)).connection.close()

    async def stored(self, id: UUID) -> str:
        sealed = (await self.database.run(accounts.account_with_secret(id, REFRESH_TOKEN))).sealed
        assert sealed is not None
        return HeldConsent.read(self.vault.open(sealed, id, REFRESH_TOKEN)).refresh_token

    async def waits(self, account: AccountView) -> str:
        """The reason why the account waits, which says nothing of any token."""
        found = await self.database.run(accounts.load_account(account.id))
        assert found.state == "needs_consent"
        assert found.state_reason is not None
        assert not any(token in found.state_reason for token in self.microsoft.issued)
        return found.state_reason


@asynccontextmanager
async def _running(database: Database, folder: Path, clock: ManualClock) -> AsyncGenerator[Setup]:
    microsoft = Microsoft()
    server = Server(microsoft)
    async with (
        running(microsoft.app()) as microsoft.address,
        scripted_imap(server.talk) as port,
        httpx2.AsyncClient(timeout=PATIENCE_S) as http,
    ):
        yield Setup(database, Vault(folder), clock, microsoft, server, http, port)


@pytest.fixture
async def setup(sqlite: Database, tmp_path: Path, clock: ManualClock) -> AsyncGenerator[Setup]:
    async with _running(sqlite, tmp_path, clock) as setup:
        yield setup


async def test_many_connections_share_one_token_and_the_new_refresh_token_is_stored_at_once(setup: Setup) -> None:
    account = await setup.consent()
    first = await setup.stored(account.id)
    async with submission_server() as smtp:
        smtp.tls = None
        account = await setup.consent(smtp.port)
        submission = asyncio.gather(*(setup.sign_ins.submission(account.id) for _ in range(3)))
        await asyncio.gather(*(setup.open(account) for _ in range(4)), submission)
    assert setup.microsoft.refreshes == 1
    assert len(set(setup.server.seen)) == 1
    assert set(setup.server.mechanisms) == {b"XOAUTH2"}
    now = await setup.stored(account.id)
    assert now != first
    assert now == setup.microsoft.issued[-1], "the one before is not valid any more"
    (await setup.process().open(account.id)).connection.close()
    assert setup.microsoft.refreshes == 2


async def test_the_new_refresh_token_is_stored_also_if_nobody_waits_for_the_token_any_more(setup: Setup) -> None:
    account = await setup.consent()
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        asked.set()
        await may_answer.wait()

    setup.microsoft.before_refresh = slowly
    opening = asyncio.create_task(setup.open(account))
    await asked.wait()
    opening.cancel()
    await asyncio.wait({opening})
    assert opening.cancelled()
    may_answer.set()
    await setup.tokens.aclose()
    assert await setup.stored(account.id) == setup.microsoft.issued[-1]
    await setup.open(account)
    assert setup.microsoft.refreshes == 1


async def test_a_token_is_replaced_shortly_before_its_end(setup: Setup) -> None:
    account = await setup.consent()
    await setup.open(account)
    setup.clock.forward(3600 - 301)
    await setup.open(account)
    assert setup.microsoft.refreshes == 1
    setup.clock.forward(2)
    await setup.open(account)
    assert setup.microsoft.refreshes == 2
    assert len(set(setup.server.seen)) == 2


async def test_a_session_that_outlives_its_token_goes_on_and_the_next_one_gets_a_new_token(setup: Setup) -> None:
    account = await setup.consent()
    session = await setup.sign_ins.open(account.id)
    setup.server.ended.update(setup.server.seen)
    setup.clock.forward(3601)
    await session.list_folders()
    session.connection.close()
    await setup.open(account)
    assert setup.microsoft.refreshes == 2
    assert len(setup.server.seen) == 2, "the token that had ended was not tried"


async def test_a_token_that_ended_before_its_time_is_replaced_once(setup: Setup) -> None:
    account = await setup.consent()
    await setup.open(account)
    setup.server.ended.update(setup.server.seen)
    await setup.open(account)
    assert setup.microsoft.refreshes == 2
    assert len(setup.server.seen) == 3
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


async def test_a_server_that_accepts_no_token_parks_the_account_after_the_second(setup: Setup) -> None:
    setup.server.accepts_none = True
    account = await setup.consent()
    for _ in range(3):
        with pytest.raises(AccountWaits, match="does not accept the access token"):
            await setup.open(account)
    assert len(setup.server.seen) == 2
    assert (await setup.waits(account)).endswith(f"does not accept the access token (AUTHENTICATIONFAILED); {AGAIN}")
    setup.server.accepts_none = False
    await setup.open(await setup.consent())


@pytest.mark.parametrize("word", ["invalid_grant", "interaction_required"])
async def test_a_consent_that_has_ended_parks_the_account_until_there_is_another(setup: Setup, word: str) -> None:
    setup.microsoft.error = 400, word
    account = await setup.consent()
    with pytest.raises(AccountWaits) as waits:
        await setup.open(account)
    assert isinstance(job_error_of(waits.value, "archive", account.id), Parked)
    assert await setup.waits(account) == f"Microsoft no longer accepts the consent ({word}); {AGAIN}"
    assert setup.server.seen == []
    setup.microsoft.error = None
    await setup.open(await setup.consent())
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


async def test_an_app_that_is_not_accepted_parks_the_account_until_it_is_repaired(setup: Setup) -> None:
    setup.microsoft.error = 401, "invalid_client"
    account = await setup.consent()
    with pytest.raises(AccountWaits, match=r"check microsoft\.client_id"):
        await setup.open(account)
    assert (await setup.waits(account)).endswith(f"then run `postroom account resume {ADA}`")
    setup.microsoft.error = None
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    await setup.open(account)


async def test_trouble_at_the_provider_parks_nobody_and_an_old_token_is_used_while_it_lasts(setup: Setup) -> None:
    setup.microsoft.error = 503, "temporarily_unavailable"
    account = await setup.consent()
    with pytest.raises(TokenLater, match=r"answered 503 \(temporarily_unavailable\); it may work later"):
        await setup.open(account)
    setup.microsoft.error = None
    await setup.open(account)
    setup.microsoft.error = 503, "temporarily_unavailable"
    setup.clock.forward(3600 - 100)
    await setup.open(account)
    setup.clock.forward(101)
    with pytest.raises(TokenLater):
        await setup.open(account)
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


async def test_a_refresh_token_that_another_process_has_used_is_not_taken_for_a_lost_consent(setup: Setup) -> None:
    account, elsewhere = await setup.consent(), setup.process()

    async def before() -> None:
        """The other process comes first, and has stored the next one when this one's is refused."""
        setup.microsoft.before_refresh = nothing
        (await elsewhere.open(account.id)).connection.close()

    setup.microsoft.before_refresh = before
    await setup.open(account)
    assert setup.microsoft.refreshes == 3
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps the old one", "ends the old one"])
async def test_a_refresh_token_that_was_lost_with_a_process_is_replaced_by_the_old_one_or_by_the_owner(
    setup: Setup, keeps: bool
) -> None:
    """The process was killed between the provider's answer and the commit."""
    setup.microsoft.keeps_refresh_tokens = keeps
    account = await setup.consent()
    old = await setup.stored(account.id)
    lost = await refresh(setup.http, microsoft_mail_app(CLIENT_ID, None, setup.microsoft.address, "common").app, old)
    assert lost.refresh_token != old
    if keeps:
        await setup.open(account)
        assert await setup.stored(account.id) == setup.microsoft.issued[-1]
    else:
        with pytest.raises(AccountWaits):
            await setup.open(account)
        assert await setup.waits(account) == f"Microsoft no longer accepts the consent (invalid_grant); {AGAIN}"
        await setup.open(await setup.consent())
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


async def test_a_refresh_token_that_cannot_be_stored_is_kept_until_it_can(setup: Setup) -> None:
    account = await setup.consent()
    asked = 0

    def vault() -> Vault:
        """Its folder cannot be read when the new token is to be sealed."""
        nonlocal asked
        asked += 1
        if asked == 2:
            raise VaultError("the keys cannot be read")
        return setup.vault

    app = microsoft_mail_app(CLIENT_ID, None, setup.microsoft.address, "common")
    tokens = MailTokens(AccountBook(setup.database, vault, setup.clock), lambda _name: app, setup.http)
    sign_ins = ImapSignIns(setup.book, tokens=tokens)
    old = await setup.stored(account.id)
    with pytest.raises(SecretUnreadable, match="the keys cannot be read"):
        await sign_ins.open(account.id)
    assert await setup.stored(account.id) == old
    (await sign_ins.open(account.id)).connection.close()
    assert await setup.stored(account.id) == setup.microsoft.issued[-1]
    assert setup.microsoft.refreshes == 2


async def test_where_only_oauthbearer_is_offered_it_is_used(setup: Setup) -> None:
    setup.server.offers = b"AUTH=OAUTHBEARER"
    await setup.open(await setup.consent())
    assert setup.server.mechanisms == [b"OAUTHBEARER"]


async def test_a_server_that_takes_no_tokens_parks_the_account(setup: Setup) -> None:
    setup.server.offers = b"AUTH=PLAIN"
    account = await setup.consent()
    with pytest.raises(AccountWaits, match="cannot be signed in to with a token"):
        await setup.open(account)
    await setup.waits(account)


async def test_mail_is_sent_with_a_token_which_is_replaced_once_if_it_is_refused(setup: Setup) -> None:
    async def leaving() -> None:
        left.append(True)

    left = list[bool]()
    submissions = Submissions(setup.sign_ins, setup.clock)
    async with submission_server({"AUTH": ["535 5.7.8 no", "235 2.7.0 in"]}) as smtp:
        smtp.tls = None
        account = await setup.consent(smtp.port)
        goodbye = await submissions.submit(account.id, letter(uuid4()), leaving)
        await goodbye()
        assert (len(smtp.received), left, setup.microsoft.refreshes) == (1, [True], 2)
        smtp.answers = {"AUTH": "535 5.7.8 no"}
        for _ in range(2):
            with pytest.raises(ImapError, match=r"does not accept the access token \(535 5\.7\.8\)"):
                await submissions.submit(account.id, letter(uuid4()), leaving)
        assert setup.microsoft.refreshes == 3
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"
