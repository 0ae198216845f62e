"""From the user's consent to access tokens and their end, against an emulated Google over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.core.errors import AccountUnusable, Fatal, Parked, Retryable, SealBroken
from postroom.core.jobs.job import JobView
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType
from postroom.core.mail.account_repair import repair_in
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.mailbox import job_error_of
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.jobs.run import JobRun
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.accounts.sealing import reseal_all
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.credentials import AccessTokens, JobTokens
from postroom.mailboxes.gmail.errors import GmailTokenUnavailable, ScopeMissing
from postroom.mailboxes.gmail.oauth import GoogleAppRefused, GoogleOAuth
from postroom.mailboxes.gmail.scopes import COMPOSE, LABELS, MODIFY, READONLY
from postroom.mailboxes.oauth.tokens import Grant
from postroom.operations.accounts.accounts import find_account
from postroom.operations.accounts.connecting import connect, remove
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.people.audit import Signature, list_audit
from postroom.vault.sealing import Vault
from postroom_sandbox.faults import Fault
from support.canaries import Canaries, Watch, watching
from support.clocks import ManualClock
from support.gates import BY_HAND, owners_client
from support.google import ADA, BOB, Google, running_google
from support.patience import PATIENCE_S
from support.postgres import PostgresServer
from support.switchboard import services_on


class Ticks:
    """A monotonic clock that goes with the test's clock, and can be held."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self._start, self.held = clock, clock(), 0.0

    def __call__(self) -> float:
        return (self._clock() - self._start).total_seconds() - self.held


@dataclass
class OAuthSetup:
    """All that stands between a user and an access token."""

    database: Database
    clock: ManualClock
    ticks: Ticks
    vault: Vault
    google: Google
    oauth: GoogleOAuth
    tokens: AccessTokens

    async def connect(self, email: str = ADA) -> AccountView:
        grant = await self.google.consent(self.oauth, "organise", email)
        client_id, now = self.google.app.client_id, self.clock()
        return await connect(Caller(self.database, signed(), lambda: now), self.vault, grant, email, client_id)

    def another_process(self) -> AccessTokens:
        return AccessTokens(
            AccountBook(self.database, lambda: Vault(self.vault.file.parent), self.clock), self.oauth, self.ticks
        )

    @property
    def refreshes(self) -> int:
        """How many access tokens Google has given out."""
        return len(self.google.emulator.consents._access)

    async def state(self, id: UUID) -> tuple[str, str | None]:
        account = await self.database.run(accounts.load_account(id))
        return account.state, account.state_reason


def signed() -> Signature:
    return Signature(new_id(), "cli:ada", "admin")


@pytest.fixture
async def setup(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[OAuthSetup]:
    ticks, vault = Ticks(clock), Vault(tmp_path / "keys")
    async with running_google(clock) as google, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        oauth = GoogleOAuth(http, google.app)
        tokens = AccessTokens(AccountBook(database, lambda: vault, clock), oauth, ticks)
        yield OAuthSetup(database, clock, ticks, vault, google, oauth, tokens)
        await tokens.close()


async def test_a_consent_leads_to_a_token_that_opens_the_mailbox(setup: OAuthSetup) -> None:
    account = await setup.connect()
    token = await setup.tokens.of(account.id)
    assert token.account.email == ADA
    assert timedelta(minutes=59) < token.expires_in <= timedelta(hours=1)
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        client = GmailClient(http, setup.google.address, JobTokens(setup.tokens, account.id))
        assert (await client.get_profile()).email_address == ADA
    assert token.value not in repr(token)


async def test_a_token_is_kept_until_five_minutes_before_its_end(setup: OAuthSetup) -> None:
    account = await setup.connect()
    first = await setup.tokens.of(account.id)
    setup.clock.forward(3599 - 301)
    assert (await setup.tokens.of(account.id)).value == first.value
    setup.clock.forward(2)
    second = await setup.tokens.of(account.id)
    assert second.value != first.value
    found = await setup.database.run(accounts.load_account(account.id))
    assert found.consent is not None
    assert found.consent.refreshed_at == setup.clock()


async def test_all_who_need_a_token_at_once_share_one_refresh_and_a_leaver_disturbs_nobody(setup: OAuthSetup) -> None:
    account = await setup.connect()
    before = setup.refreshes
    waiting = [asyncio.create_task(setup.tokens.of(account.id)) for _ in range(50)]
    setup.google.emulator.faults.order(Fault(kind="delay", path="/token", delay_s=0.05))
    await asyncio.sleep(0)
    waiting[0].cancel()
    values = {token.value for token in await asyncio.gather(*waiting[1:])}
    assert len(values) == 1
    assert setup.refreshes == before + 1


async def test_several_processes_each_have_a_token_that_works(setup: OAuthSetup) -> None:
    account = await setup.connect()
    others = [setup.another_process() for _ in range(3)]
    values = {(await each.of(account.id)).value for each in (setup.tokens, *others)}
    assert len(values) == 4
    assert all(setup.google.emulator.consents.access(value) for value in values)


async def test_a_wall_clock_that_jumps_back_keeps_no_token_beyond_its_end(setup: OAuthSetup) -> None:
    account = await setup.connect()
    first = await setup.tokens.of(account.id)
    setup.ticks.held = -3600.0
    setup.clock.forward(-86400)
    setup.ticks.held -= 86400
    assert (await setup.tokens.of(account.id)).value != first.value


async def test_a_machine_that_slept_asks_again_though_its_ticks_stood_still(setup: OAuthSetup) -> None:
    account = await setup.connect()
    first = await setup.tokens.of(account.id)
    setup.clock.forward(7200)
    setup.ticks.held = 7200
    assert (await setup.tokens.of(account.id)).value != first.value


async def test_a_short_failure_of_google_before_the_end_is_not_felt(setup: OAuthSetup) -> None:
    account = await setup.connect()
    first = await setup.tokens.of(account.id)
    setup.clock.forward(3599 - 200)
    setup.google.emulator.faults.order(Fault(kind="reset", path="/token", times=2))
    assert (await setup.tokens.of(account.id)).value == first.value
    setup.clock.forward(201)
    with pytest.raises(GmailTokenUnavailable):
        await setup.tokens.of(account.id)
    assert (await setup.tokens.of(account.id)).value != first.value


async def test_a_token_that_gmail_refuses_is_replaced_at_once(setup: OAuthSetup) -> None:
    account = await setup.connect()
    first = await setup.tokens.of(account.id)
    setup.google.emulator.consents.expire_access(ADA)
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        client = GmailClient(http, setup.google.address, JobTokens(setup.tokens, account.id))
        assert (await client.get_profile()).email_address == ADA
    assert (await setup.tokens.of(account.id)).value != first.value


@pytest.mark.parametrize("age_days", [1, 7, 30])
async def test_a_dead_consent_is_reported_in_words_and_parks_the_account_until_it_is_renewed(
    setup: OAuthSetup, age_days: int
) -> None:
    account = await setup.connect()
    setup.clock.forward(86400 * age_days)
    if age_days == 7:
        setup.google.emulator.consents.behaviour.testing = True
    else:
        await setup.tokens.of(account.id)
        setup.clock.forward(3600)
        setup.google.emulator.consents.revoke_user(ADA)
    with pytest.raises(AccountUnusable) as lost:
        await setup.tokens.of(account.id)
    state, reason = await setup.state(account.id)
    assert (state, reason) == ("needs_consent", str(lost.value))
    assert ('"Testing"' in str(reason) and "7 days" in str(reason)) == (age_days == 7)
    assert ("withdrawn" in str(reason)) == (age_days != 7)
    assert "postroom account add gmail" in str(reason)
    entries = await setup.database.run(list_audit(5, action="account.consent_lost"))
    assert [(entry.actor, entry.reason) for entry in entries] == [("process:credentials", reason)]
    with pytest.raises(Parked) as parked:
        await JobTokens(setup.tokens, account.id).token()
    assert parked.value.key == parking_key(account.id)
    setup.clock.forward(60)
    setup.google.emulator.consents.behaviour.testing = False
    await setup.connect()
    assert await setup.state(account.id) == ("active", None)
    assert (await setup.tokens.of(account.id)).account.email == ADA


async def test_google_itself_says_when_a_consent_of_an_app_in_testing_ends(setup: OAuthSetup) -> None:
    setup.google.emulator.consents.behaviour.testing = True
    account = await setup.connect()
    assert account.consent is not None
    assert account.consent.dies_at == setup.clock() + timedelta(days=7)


async def test_a_process_with_the_old_consent_takes_up_the_new_one_instead_of_losing_it(setup: OAuthSetup) -> None:
    """The refusal of the old refresh token arrives when the account has been connected anew."""
    account = await setup.connect()
    setup.google.emulator.consents.revoke_user(ADA)
    refusing, released = asyncio.Event(), asyncio.Event()
    refresh = setup.oauth.refresh

    async def late(*arguments: object) -> object:
        refusing.set()
        await released.wait()
        return await refresh(*arguments)  # type: ignore[arg-type]

    setup.oauth.refresh = late  # type: ignore[method-assign]
    asking = asyncio.create_task(setup.tokens.of(account.id))
    await refusing.wait()
    setup.clock.forward(1)
    await setup.connect()
    released.set()
    assert (await asking).account.email == ADA
    assert await setup.state(account.id) == ("active", None)


async def test_an_app_whose_secret_is_wrong_parks_the_account_and_says_what_to_check(setup: OAuthSetup) -> None:
    account = await setup.connect()
    setup.google.emulator.consents.register(setup.google.app.client_id, "another secret")
    with pytest.raises(Parked, match=r"google\.client_secret.*postroom account resume ada@example\.com"):
        await JobTokens(setup.tokens, account.id).token()
    mending = repair_in((await setup.state(account.id))[1], ADA)
    assert mending is not None
    assert mending.remedy.startswith("check google.client_id and google.client_secret")
    setup.google.emulator.consents.register(setup.google.app.client_id, setup.google.app.client_secret)
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    assert await JobTokens(setup.tokens, account.id).token()


async def test_where_only_a_new_consent_helps_nothing_is_told_of_resuming(setup: OAuthSetup) -> None:
    account = await setup.connect()

    async def refuse(*_given: object) -> Grant:
        raise GoogleAppRefused("unauthorized_client")

    setup.oauth.refresh = refuse  # type: ignore[method-assign]
    with pytest.raises(Parked, match=r"connect the account again$"):
        await JobTokens(setup.tokens, account.id).token()
    assert repair_in((await setup.state(account.id))[1], ADA) is None


async def test_pause_and_removal_by_another_process_reach_a_kept_token_in_seconds(setup: OAuthSetup) -> None:
    account = await setup.connect()
    await setup.tokens.of(account.id)
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    setup.clock.forward(6)
    with pytest.raises(Parked, match="postroom account resume"):
        await JobTokens(setup.tokens, account.id).token()
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    await setup.tokens.of(account.id)
    assert await remove(Caller(setup.database, signed(), setup.clock), setup.vault, setup.oauth.revoke, account)
    setup.clock.forward(6)
    with pytest.raises(Fatal, match="was removed"):
        await JobTokens(setup.tokens, account.id).token()
    assert all(grant.revoked for grant in setup.google.emulator.consents.grants)


async def test_trouble_with_google_lets_a_job_try_again(setup: OAuthSetup) -> None:
    account = await setup.connect()
    setup.google.emulator.faults.order(Fault(kind="reset", path="/token"))
    with pytest.raises(Retryable):
        await JobTokens(setup.tokens, account.id).token()
    assert await setup.state(account.id) == ("active", None)


async def test_less_than_was_asked_for_is_seen_before_and_behind_google(setup: OAuthSetup) -> None:
    setup.google.emulator.consents.behaviour.withheld = frozenset({MODIFY, COMPOSE})
    request = await setup.google.consent(setup.oauth, "read")
    account = await connect(Caller(setup.database, signed(), setup.clock), setup.vault, request, ADA, "client")
    assert account.consent is not None
    assert account.consent.level == "read"
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        client = owners_client(http, setup.google.address, JobTokens(setup.tokens, account.id))
        with pytest.raises(ScopeMissing) as refused:
            await client.create_label("Receipts")
        labelling = calls.create_label("Receipts", "labelShow", "show").under(BY_HAND)
        (again,) = await client.batch([labelling])
    told = (
        f"labels.create needs {LABELS} (the level organise), and {ADA} has granted {READONLY} (the level read); "
        f"run `postroom account add gmail --email {ADA} --level organise`, and leave every box on Google's page ticked"
    )
    assert (str(refused.value), str(again)) == (told, told)
    assert str(job_error_of(refused.value, "apply_label")) == f"apply_label: {told}"


async def test_jobs_of_a_lost_consent_wait_through_it_without_an_attempt(setup: OAuthSetup) -> None:
    """A whole worker: twenty jobs meet the dead consent, wait, and all complete after it was given again."""
    account = await setup.connect()
    setup.google.emulator.consents.revoke_user(ADA)
    catalogue, changed = Catalogue(JobType("sync", retry=RetryPolicy(max_attempts=1))), asyncio.Event()
    provider = JobTokens(setup.tokens, account.id)

    async def handler(run: JobRun) -> None:
        try:
            await provider.token()
        finally:
            changed.set()

    new = [new_job(catalogue, "sync", {}) for _ in range(20)]
    await setup.database.run(jobs.enqueue_many(new, setup.clock()))
    worker = Worker(setup.database, catalogue, {"sync": handler}, WorkerOptions(concurrency=4))
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await _until(setup.database, changed, lambda views: all(view.parked_by for view in views))
            setup.clock.forward(60)
            await setup.connect()
            await _until(setup.database, changed, lambda views: all(view.state == "completed" for view in views))
    finally:
        worker.stop()
        await running


async def _until(database: Database, changed: asyncio.Event, met: Callable[[list[JobView]], bool]) -> None:
    while True:
        changed.clear()
        views = await database.run(jobs.list_jobs(type="sync", limit=100))
        if met(views):
            return
        await signalled(changed, 0.1)


async def test_a_connector_gets_the_token_of_its_own_mailbox_over_mcp(setup: OAuthSetup) -> None:
    from mcp.client import Client

    account, bob = await setup.connect(), await setup.connect(BOB)
    services = services_on(setup.database, setup.clock, credentials=setup.tokens)
    ada = build_server(services, Principal(Role.CONNECTOR, account.endpoint_identity))
    async with Client(ada) as client:
        answer = (await client.call_tool("credentials.access_token", {})).structured_content
        assert (answer["email"], answer["level"], answer["scopes"]) == (ADA, "organise", [MODIFY])
        assert 3500 < answer["expires_in_s"] <= 3600
        again = await client.call_tool("credentials.access_token", {"refused": answer["access_token"]})
        assert again.structured_content["access_token"] != answer["access_token"]
        foreign = await client.call_tool("credentials.access_token", {"endpoint_identity": bob.endpoint_identity})
        assert foreign.structured_content["code"] == "bad_input"
        setup.google.emulator.consents.revoke_user(ADA)
        lost = await client.call_tool("credentials.access_token", {"refused": again.structured_content["access_token"]})
    assert lost.is_error
    assert (lost.structured_content["code"], lost.structured_content["retry_after_s"]) == ("account_unusable", 60)
    assert "postroom account add gmail" in lost.structured_content["remedy"]
    nobody = build_server(services, Principal(Role.CONNECTOR, "gmail:user:nobody@example.com"))
    async with Client(nobody) as client:
        missing = await client.call_tool("credentials.access_token", {})
    assert missing.structured_content["code"] == "account_unusable"


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def watch(canaries: Canaries) -> Iterator[Watch]:
    with watching(canaries) as running:
        yield running


async def test_no_secret_is_in_the_database_its_log_our_logs_or_an_error(
    setup: OAuthSetup, canaries: Canaries, watch: Watch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Connected, refreshed, rotated, spoilt, lost and connected anew; then every byte on disk is searched."""
    errors: list[str] = []
    account, bob = await setup.connect(), await setup.connect(BOB)
    await setup.tokens.of(account.id)
    await reseal_all(setup.database, setup.vault, setup.vault.add_key(setup.clock()), setup.clock)
    setup.clock.forward(7200)
    setup.google.emulator.faults.order(Fault(kind="drop_reply", path="/token"))
    with pytest.raises(GmailTokenUnavailable) as unavailable:
        await setup.tokens.of(account.id)
    sealed = (await setup.database.run(accounts.account_with_secret(account.id))).sealed
    assert sealed is not None
    with pytest.raises(SealBroken) as broken:
        setup.vault.open(sealed, bob.id, "refresh_token")
    setup.google.emulator.consents.revoke_user(ADA)
    with pytest.raises(AccountUnusable) as lost:
        await setup.tokens.of(account.id)
    setup.clock.forward(1)
    await setup.connect()
    await setup.tokens.of((await find_account(setup.database, ADA)).id)
    errors += [repr(each.value) + str(each.value) for each in (unavailable, broken, lost)]
    consents = setup.google.emulator.consents
    for grant in consents.grants:
        canaries.note("refresh token", grant.refresh_token)
    for token in consents._access:
        canaries.note("access token", token)
    canaries.note("client secret", setup.google.app.client_secret)
    assert len(canaries._planted) >= 5
    for key in setup.vault.file.read_text().split('"'):
        if len(key) == 44:
            canaries.note("secret key", key)
    assert canaries.found_in("".join(errors)) == set()
    assert watch.leaks() == {}
    found = canaries.found_in(_bytes_of(setup.database, request, tmp_path))
    # The server is not this test's own: the canaries of other tests may still lie in its log, as something unknown.
    assert {each for each in found if not each.startswith("something: ")} == set()


def _bytes_of(database: Database, request: pytest.FixtureRequest, folder: Path) -> bytes:
    """Every byte that the database has on disk: its file and its log, or all of the server's folder."""
    if database.dialect == "sqlite":
        files = [each for each in folder.iterdir() if each.name.startswith("postroom.sqlite3")]
        assert {each.name for each in files} >= {"postroom.sqlite3", "postroom.sqlite3-wal"}
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        server.sql("CHECKPOINT")
        files = [each for each in server.data.rglob("*") if each.is_file()]
    content = b"".join(each.read_bytes() for each in files)
    assert ADA.encode() in content
    return content
