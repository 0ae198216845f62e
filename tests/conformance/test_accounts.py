"""Accounts: connected once, paused, lost, reconnected; their jobs wait meanwhile, and their secrets stay encrypted."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import Conflict, IllegalMove, KeyMissing, NotFound, SealBroken, VaultError
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.mailboxes.accounts.sealing import drop_other_keys, reseal_all
from postroom.mailboxes.gmail.oauth import GoogleConsentRefused
from postroom.mailboxes.gmail.scopes import FULL, MODIFY, READONLY, SEND
from postroom.mailboxes.oauth.tokens import Grant
from postroom.operations.accounts.accounts import find_account
from postroom.operations.accounts.connecting import connect
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts, secret_keys
from postroom.store.accounts.accounts import AccountView, GivenAccess
from postroom.store.accounts.secret_keys import Resealed, StoredSecret
from postroom.store.engine.database import Database, Script, Text, Verb, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from postroom.store.people.audit import list_audit
from postroom.vault.sealing import Sealed, Vault
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.scale import scale
from support.store.dump import dump
from support.store.fault_cases_accounts import ADA, SCOPES, connected, consent, parked_job
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup, listen

BOB = "bob@example.com"


def grant(secret: str = "1//secret", *scopes: str) -> Grant:
    return Grant("ya29.x", timedelta(hours=1), frozenset(scopes or SCOPES), secret)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "keys")


async def linked(
    setup: JobSetup, vault: Vault, email: str = ADA, secret: str = "1//secret", **more: Any
) -> AccountView:
    account = await connect(
        Caller(setup.database, signed(), setup.clock), vault, grant(secret), email, "client", **more
    )
    await drop_looks(setup)
    return account


async def drop_looks(setup: JobSetup) -> None:
    """An account that is used again is looked at by a job; here it would only be in the way."""
    for job in await setup.database.run(jobs.list_jobs("queued", "history.sync.gmail")):
        await setup.cancel(job.id)


async def secret_of(setup: JobSetup, vault: Vault, id: UUID) -> str:
    sealed = (await setup.database.run(accounts.account_with_secret(id))).sealed
    assert sealed is not None
    return vault.open(sealed, id, REFRESH_TOKEN)


async def lose(setup: JobSetup, account: AccountView, reason: str = "revoked; connect it again") -> bool:
    assert account.consent is not None
    losing = accounts.lose_consent(account.id, account.consent.granted_at, reason, signed(), setup.clock())
    return await setup.database.run(losing)


async def test_an_account_is_connected_with_its_consent_and_a_sealed_secret(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault, "Ada@Example.COM")
    assert (account.email, account.endpoint_identity) == (ADA, f"gmail:user:{ADA}")
    assert (account.state, account.provider) == ("active", "gmail")
    assert account.consent == consent(setup.clock())
    assert await secret_of(setup, vault, account.id) == "1//secret"
    assert "1//secret" not in repr(await dump(setup.database))
    assert await setup.database.run(accounts.list_accounts()) == [account]
    (entry,) = await setup.database.run(list_audit(10))
    assert (entry.action, entry.object_id, entry.before) == ("account.connect", str(account.id), None)
    assert entry.after == {"state": "active", "email": ADA, "level": "organise", "scopes": sorted(SCOPES)}


@pytest.mark.parametrize("state", ["active", "paused", "needs_consent", "removed"])
async def test_a_mailbox_that_is_connected_again_keeps_its_account(setup: JobSetup, vault: Vault, state: str) -> None:
    account = await linked(setup, vault)
    match state:
        case "paused":
            await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
        case "needs_consent":
            assert await lose(setup, account)
        case "removed":
            await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
        case _:
            pass
    setup.clock.forward(60)
    again = await linked(setup, vault, "ADA@example.com", "1//again")
    assert (again.id, again.email, again.state) == (account.id, ADA, "active")
    assert await secret_of(setup, vault, account.id) == "1//again"
    assert len(await setup.database.run(accounts.list_accounts())) == 1


@pytest.mark.parametrize("again", ["ada.love@gmail.com", "A.D.A.love@GMAIL.com", "adalove@googlemail.com"])
async def test_every_spelling_of_a_gmail_address_is_the_same_account(setup: JobSetup, vault: Vault, again: str) -> None:
    account = await linked(setup, vault, "AdaLove@gmail.com")
    renewed = await linked(setup, vault, again, "1//again")
    assert (renewed.id, renewed.email) == (account.id, "adalove@gmail.com")
    assert renewed.endpoint_identity == account.endpoint_identity
    assert (await find_account(setup.database, again)).id == account.id
    assert len(await setup.database.run(accounts.list_accounts())) == 1


async def test_elsewhere_a_dot_makes_another_mailbox(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault, "ada.love@example.com")
    assert (await linked(setup, vault, "adalove@example.com")).id != account.id


@pytest.mark.parametrize(
    ("first", "second"), [("ada{}@gmail.com", "ada{}@gmail.com"), ("ada{}@gmail.com", "a.da{}@googlemail.com")]
)
async def test_two_who_connect_the_same_mailbox_at_once_make_one_account(
    setup: JobSetup, second_database: Database, first: str, second: str
) -> None:
    for number in range(scale(15, 300)):
        outcomes = await asyncio.gather(
            *(
                database.run(
                    accounts.connect_account(
                        new_id(),
                        "gmail",
                        address.format(number),
                        GivenAccess({REFRESH_TOKEN: Sealed("k", "s")}, consent(setup.clock())),
                        signed(),
                        setup.clock(),
                    )
                )
                for database, address in ((setup.database, first), (second_database, second))
            ),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in outcomes) == ["AccountView", "Conflict"]
        assert len(await setup.database.run(accounts.list_accounts())) == number + 1


async def test_an_address_may_have_an_account_at_another_provider(setup: JobSetup, vault: Vault) -> None:
    await setup.database.run(mail.keep_account(new_id(), "imap", f"imap:{ADA}", ADA, setup.clock()))
    account = await linked(setup, vault)
    with pytest.raises(Conflict, match=f"name one by its id: .*{account.id}"):
        await find_account(setup.database, ADA)
    assert (await find_account(setup.database, str(account.id))).provider == "gmail"


async def test_an_account_from_before_consents_is_taken_over_with_its_history(setup: JobSetup, vault: Vault) -> None:
    old = await setup.database.run(
        mail.keep_account(new_id(), "gmail", "gmail:user:Ada@example.com", "Ada@example.com", setup.clock())
    )
    account = await linked(setup, vault)
    assert (account.id, account.endpoint_identity) == (old.id, old.endpoint_identity)


async def test_a_consent_is_renewed_and_widened_when_that_is_asked_for(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    now = setup.clock.forward(60)
    wide = Grant("ya29.x", timedelta(hours=1), frozenset({FULL}), "1//wide", timedelta(days=7))
    renewed = await connect(Caller(setup.database, signed(), lambda: now), vault, wide, ADA, "client")
    assert renewed.id == account.id
    assert renewed.consent == accounts.Consent("client", "full", frozenset({FULL}), now, None, now + timedelta(days=7))
    assert await secret_of(setup, vault, account.id) == "1//wide"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Grant("ya29.x", timedelta(hours=1), frozenset({MODIFY})), "no refresh token"),
        (grant("1//r", SEND), "reading was not granted"),
    ],
)
async def test_a_consent_that_cannot_be_used_is_refused(
    setup: JobSetup, vault: Vault, given: Grant, words: str
) -> None:
    with pytest.raises(GoogleConsentRefused, match=words):
        await connect(Caller(setup.database, signed(), setup.clock), vault, given, ADA, "client")
    assert await setup.database.run(accounts.list_accounts()) == []


async def test_less_than_was_asked_for_is_kept_as_what_it_is(setup: JobSetup, vault: Vault) -> None:
    given = grant("1//r", READONLY, SEND)
    account = await connect(Caller(setup.database, signed(), setup.clock), vault, given, ADA, "client")
    assert account.consent is not None
    assert (account.consent.level, account.consent.scopes) == ("read", {READONLY, SEND})


async def test_a_lost_consent_parks_jobs_without_an_attempt_and_a_new_one_releases_them(
    setup: JobSetup, vault: Vault
) -> None:
    account = await linked(setup, vault)
    assert await lose(setup, account)
    waiting = await parked_job(setup, account.id)
    shown = await setup.database.run(jobs.show_job(waiting))
    assert shown is not None
    assert (shown.state, shown.attempts, shown.parked_by) == ("queued", 0, parking_key(account.id))
    assert await setup.claim() == []
    heard = await listen(setup.database, jobs.CHANNEL)
    renewed = await linked(setup, vault)
    assert (renewed.state, renewed.state_reason) == ("active", None)
    async with asyncio.timeout(PATIENCE_S):
        await heard.get()
    assert [job.id for job in await setup.claim()] == [waiting]


async def test_a_job_that_parks_after_the_release_is_not_forgotten(setup: JobSetup, vault: Vault) -> None:
    """It met the account without consent, and before it could wait the consent was there again."""
    account = await linked(setup, vault)
    job = await setup.claimed()
    assert await setup.database.run(jobs.park(job.claim, parking_key(account.id), "no consent", setup.clock()))
    assert [each.id for each in await setup.claim()] == [job.id]


async def test_a_job_that_waits_for_a_repair_sleeps_though_its_account_is_usable(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    job = await setup.claimed()
    await setup.park(job, parking_key(account.id), seconds=60)
    await drop_looks(setup)
    assert await setup.claim() == []
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    await drop_looks(setup)
    assert [each.id for each in await setup.claim()] == [job.id]


async def test_parking_and_releasing_at_once_never_strands_a_job(
    setup: JobSetup, second_database: Database, vault: Vault
) -> None:
    account = await linked(setup, vault)
    for _ in range(scale(30, 500)):
        await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
        job = await setup.claimed()
        await asyncio.gather(
            setup.database.run(jobs.park(job.claim, parking_key(account.id), "paused", setup.clock())),
            second_database.run(accounts.resume_account(account.id, signed(), setup.clock())),
        )
        await drop_looks(setup)
        (again,) = await setup.claim()
        assert again.id == job.id
        await setup.database.run(jobs.finish([again.claim], [], setup.clock()))


async def test_the_loss_of_a_consent_that_was_renewed_meanwhile_changes_nothing(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    setup.clock.forward(60)
    await linked(setup, vault)
    before = await dump(setup.database)
    assert not await lose(setup, account)
    assert await dump(setup.database) == before


async def test_of_two_processes_that_find_the_loss_one_writes_it_down(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    assert await lose(setup, account, "revoked; connect it again")
    assert not await lose(setup, account, "said again; connect it again")
    entries = await setup.database.run(list_audit(10, action="account.consent_lost"))
    assert [(entry.reason, entry.after) for entry in entries] == [
        ("revoked; connect it again", {"state": "needs_consent", "reason": "revoked; connect it again"})
    ]


async def test_every_move_is_audited_with_its_reason_and_none_is_made_twice(setup: JobSetup, vault: Vault) -> None:
    id = (await linked(setup, vault)).id
    heard = await listen(setup.database, accounts.CHANNEL)

    async def twice(verb: Verb[..., AccountView], reason: str | None = None) -> AccountView:
        for _ in range(2):
            await setup.database.run(verb(id, signed()._replace(reason=reason), setup.clock()))
        return await setup.database.run(accounts.load_account(id))

    paused = await twice(accounts.pause_account, "on holiday")
    assert (paused.state, paused.state_reason) == ("paused", "on holiday")
    async with asyncio.timeout(PATIENCE_S):
        assert await heard.get() == str(id)
    resumed = await twice(accounts.resume_account)
    assert (resumed.state, resumed.state_reason) == ("active", None)
    removed = await twice(accounts.remove_account)
    assert (removed.state, removed.consent) == ("removed", None)
    moves = [entry.action for entry in reversed(await setup.database.run(list_audit(20)))]
    assert moves == ["account.connect", "account.pause", "account.resume", "account.remove"]


async def test_a_removed_account_keeps_its_row_loses_its_secrets_and_can_be_connected_again(
    setup: JobSetup, vault: Vault
) -> None:
    account = await linked(setup, vault)
    await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
    assert (await setup.database.run(accounts.account_with_secret(account.id))).sealed is None
    assert [each.state for each in await setup.database.run(accounts.list_accounts())] == ["removed"]
    with pytest.raises(IllegalMove):
        await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    again = await linked(setup, vault, secret="1//again")
    assert (again.id, again.state) == (account.id, "active")
    assert await secret_of(setup, vault, account.id) == "1//again"


async def test_jobs_of_a_removed_account_are_let_go_to_meet_their_end(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    waiting = await parked_job(setup, account.id)
    await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
    assert [job.id for job in await setup.claim()] == [waiting]


async def test_what_is_no_account_is_not_found(setup: JobSetup) -> None:
    for verb in (accounts.pause_account, accounts.resume_account, accounts.remove_account):
        with pytest.raises(NotFound, match="postroom account list"):
            await setup.database.run(verb(new_id(), signed(), setup.clock()))
    for name in (str(new_id()), "nobody@example.com", "nonsense", ""):
        with pytest.raises(NotFound, match="postroom account list"):
            await find_account(setup.database, name)
    assert await setup.database.run(accounts.account_at("gmail:user:nobody")) is None


async def test_two_rows_that_were_swapped_do_not_open(setup: JobSetup, vault: Vault) -> None:
    ada, bob = await linked(setup, vault), await linked(setup, vault, BOB, "1//bob")
    sealed = [(await setup.database.run(accounts.account_with_secret(each.id))).sealed for each in (ada, bob)]

    @transaction
    def swap() -> Script[None]:
        for id, each in zip((bob.id, ada.id), sealed, strict=True):
            assert each is not None
            yield Text(f"UPDATE credentials SET sealed = '{each.text}' WHERE account_id = '{id}'")

    await setup.database.run(swap())
    for account in (ada, bob):
        with pytest.raises(SealBroken):
            await secret_of(setup, vault, account.id)


async def test_a_second_installation_on_the_same_database_is_told_to_bring_the_key(
    setup: JobSetup, vault: Vault, tmp_path: Path
) -> None:
    await linked(setup, vault)
    other = Vault(tmp_path / "other machine")
    with pytest.raises(KeyMissing, match=vault.known_keys()[0].id):
        await linked(setup, other, BOB)
    assert not other.file.exists()


async def test_a_key_is_dropped_only_when_nothing_stands_under_it(setup: JobSetup, vault: Vault) -> None:
    account = await linked(setup, vault)
    (old,) = await setup.database.run(secret_keys.list_key_uses())
    assert (old.id, old.secrets, old.dropped_at) == (vault.known_keys()[0].id, 1, None)
    with pytest.raises(Conflict, match="postroom key rotate"):
        await setup.database.run(secret_keys.drop_key(old.id, signed(), setup.clock()))
    stale = vault.seal(account.id, REFRESH_TOKEN, "1//stale")
    done = await reseal_all(setup.database, vault, vault.add_key(setup.clock()), setup.clock)
    assert (done.resealed, done.unopened) == (1, ())
    assert await setup.database.run(secret_keys.drop_key(old.id, signed(), setup.clock()))
    assert not await setup.database.run(secret_keys.drop_key(old.id, signed(), setup.clock()))
    sealed = (await setup.database.run(accounts.account_with_secret(account.id))).sealed
    assert sealed is not None
    late = Resealed(StoredSecret(account.id, REFRESH_TOKEN, sealed), stale)
    with pytest.raises(VaultError, match="was dropped"):
        await setup.database.run(secret_keys.reseal([late], setup.clock()))
    assert await secret_of(setup, vault, account.id) == "1//secret"


async def test_whoever_drops_a_key_and_whoever_seals_with_it_do_not_miss_each_other(
    setup: JobSetup, second_database: Database
) -> None:
    for number in range(scale(30, 500)):
        key, email = f"key{number}", f"{number}@example.com"
        known_by = await connected(setup, f"earlier{number}@example.com", key)
        await setup.database.run(accounts.remove_account(known_by.id, signed(), setup.clock()))
        storing = accounts.connect_account(
            new_id(),
            "gmail",
            email,
            GivenAccess({REFRESH_TOKEN: Sealed(key, "s")}, consent(setup.clock())),
            signed(),
            setup.clock(),
        )
        outcomes = await asyncio.gather(
            setup.database.run(storing),
            second_database.run(secret_keys.drop_key(key, signed(), setup.clock())),
            return_exceptions=True,
        )
        uses = {use.id: use for use in await setup.database.run(secret_keys.list_key_uses())}
        assert sum(isinstance(each, Exception) for each in outcomes) == 1, outcomes
        assert (uses[key].dropped_at is None) == (uses[key].secrets == 1)


async def test_rotation_while_accounts_are_connected_again_loses_nothing(
    setup: JobSetup, second_database: Database, vault: Vault
) -> None:
    """Every account's newest secret opens, under the newest key, however both were interleaved."""
    emails = [f"user{number}@example.com" for number in range(scale(60, 300))]
    newest = {(await linked(setup, vault, email, f"1//{email}-0")).id: f"1//{email}-0" for email in emails}
    running, renewals = asyncio.Event(), 0

    async def renew_again_and_again() -> None:
        nonlocal renewals
        other, serving = JobSetup(second_database, ManualClock()), Vault(vault.file.parent)
        while not running.is_set():
            email = emails[renewals * 7 % len(emails)]
            renewals += 1
            other.clock.forward(1)
            account = await linked(other, serving, email, f"1//{email}-{renewals}")
            newest[account.id] = f"1//{email}-{renewals}"

    renewing = asyncio.create_task(renew_again_and_again())
    rotations = 0
    while rotations < 3 or renewals < 20:
        rotations += 1
        key_id = vault.add_key(setup.clock())
        done = await reseal_all(setup.database, vault, key_id, setup.clock)
        assert done.unopened == ()
        assert len(await drop_other_keys(setup.database, vault, key_id, setup.clock, signed)) == 1
    running.set()
    await renewing
    (key,) = [use for use in await setup.database.run(secret_keys.list_key_uses()) if use.dropped_at is None]
    assert (key.id, key.secrets) == (vault.known_keys()[0].id, len(emails))
    assert {id: await secret_of(setup, vault, id) for id in newest} == newest


async def test_what_does_not_open_is_named_and_left_and_all_else_is_sealed_again(setup: JobSetup, vault: Vault) -> None:
    ada, bob = await linked(setup, vault), await linked(setup, vault, BOB, "1//bob")

    @transaction
    def spoil() -> Script[None]:
        yield Text(f"UPDATE credentials SET sealed = 'AAAA' WHERE account_id = '{ada.id}'")

    await setup.database.run(spoil())
    done = await reseal_all(setup.database, vault, vault.add_key(setup.clock()), setup.clock)
    assert (done.resealed, done.unopened) == (1, (ada.id,))
    assert await secret_of(setup, vault, bob.id) == "1//bob"


async def test_a_refresh_is_noted_for_the_consent_it_was_made_with(setup: JobSetup) -> None:
    account = await connected(setup)
    assert account.consent is not None
    later = setup.clock.forward(60)
    assert await setup.database.run(accounts.note_refresh(account.id, account.consent.granted_at, later))
    assert not await setup.database.run(accounts.note_refresh(account.id, later, setup.clock.forward(60)))
    found = await setup.database.run(accounts.load_account(account.id))
    assert found.consent is not None
    assert found.consent.refreshed_at == later


async def test_a_new_account_acts_from_when_its_owner_says_and_renewing_it_changes_nothing(setup: JobSetup) -> None:
    account = await connected(setup)
    assert account.acts_from is None
    since = setup.clock() - timedelta(days=7)
    for _ in range(2):
        view = await setup.database.run(accounts.act_from(account.id, since, signed(), setup.clock()))
        assert view.acts_from == since
    again = accounts.connect_account(
        account.id,
        "gmail",
        ADA,
        GivenAccess({REFRESH_TOKEN: Sealed("key1", "x")}, consent(setup.clock())),
        signed(),
        setup.clock(),
    )
    assert (await setup.database.run(again)).acts_from == since
    written = [each.action for each in await setup.database.run(list_audit(limit=99))]
    assert written.count("account.act") == 1


@pytest.mark.parametrize("before", ["removed", "never connected"])
async def test_an_account_that_is_connected_anew_does_not_act_yet(setup: JobSetup, before: str) -> None:
    if before == "removed":
        id = (await connected(setup)).id
        await setup.database.run(accounts.act_from(id, setup.clock(), signed(), setup.clock()))
        await setup.database.run(accounts.remove_account(id, signed(), setup.clock()))
    else:
        id = (
            await setup.database.run(mail.keep_account(new_id(), "gmail", f"gmail:user:{ADA}", ADA, setup.clock()))
        ).id
    assert (await setup.database.run(accounts.load_account(id))).acts_from is not None
    connecting = accounts.connect_account(
        id,
        "gmail",
        ADA,
        GivenAccess({REFRESH_TOKEN: Sealed("key1", "x")}, consent(setup.clock())),
        signed(),
        setup.clock(),
    )
    assert (await setup.database.run(connecting)).acts_from is None
