"""Accounts that are reached over IMAP: their servers, their sealed passwords, and a refused sign-in."""

from dataclasses import replace

import pytest

from postroom.core.errors import BadInput, Conflict
from postroom.core.mail.secret_fields import PASSWORD, REFRESH_TOKEN, SMTP_PASSWORD
from postroom.core.mail.servers import SignInKind
from postroom.operations.accounts.account_checks import Known, account_checks
from postroom.operations.accounts.account_status import account_lines
from postroom.operations.accounts.accounts import check_in_use
from postroom.operations.overview.attention import needs_attention
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import GivenAccess
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import list_audit
from postroom.vault.sealing import Sealed
from support.store.fault_cases_accounts import ADA, connected, connected_imap, parked_job, servers
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


async def test_an_account_keeps_its_servers_and_its_sealed_password(setup: JobSetup) -> None:
    account = await connected_imap(setup)
    assert (account.provider, account.endpoint_identity, account.state) == ("imap", f"imap:user:{ADA}", "active")
    assert (account.servers, account.consent) == (servers(setup.clock()), None)
    held = await setup.database.run(accounts.account_with_secret(account.id, PASSWORD))
    assert held == (account, Sealed("key1", f"sealed {ADA}"))
    (entry,) = await setup.database.run(list_audit(10))
    assert entry.after == {"state": "active", "email": ADA, "imap": "imap.example.com", "smtp": "smtp.example.com"}


async def test_connecting_again_replaces_servers_and_secrets_and_releases_the_jobs(setup: JobSetup) -> None:
    account = await connected_imap(setup)
    assert await setup.database.run(
        accounts.refuse_sign_in(account.id, setup.clock(), "wrong; give a new one", signed(), setup.clock())
    )
    refused = await setup.database.run(accounts.load_account(account.id))
    assert (refused.state, refused.state_reason) == ("needs_consent", "wrong; give a new one")
    job = await parked_job(setup, account.id)
    now = setup.clock.forward(60)
    changed = replace(servers(now), smtp_host=None, smtp_port=None, smtp_security=None, files_sent_mail=False)
    secrets = {SMTP_PASSWORD: Sealed("key1", "another")}
    again = await setup.database.run(
        accounts.connect_account(account.id, "imap", ADA, GivenAccess(secrets, servers=changed), signed(), now)
    )
    assert (again.id, again.state, again.state_reason, again.servers) == (account.id, "active", None, changed)
    assert (await setup.database.run(accounts.account_with_secret(account.id, PASSWORD))).sealed is None
    assert (await setup.database.run(accounts.account_with_secret(account.id, SMTP_PASSWORD))).sealed is not None
    assert (await setup.show(job)).parked_by is None


async def test_a_refusal_of_an_older_password_changes_nothing(setup: JobSetup) -> None:
    account = await connected_imap(setup)
    before, now = setup.clock(), setup.clock.forward(60)
    secrets = {PASSWORD: Sealed("key1", "new")}
    await setup.database.run(
        accounts.connect_account(account.id, "imap", ADA, GivenAccess(secrets, servers=servers(now)), signed(), now)
    )
    assert not await setup.database.run(accounts.refuse_sign_in(account.id, before, "wrong; x", signed(), now))
    assert (await setup.database.run(accounts.load_account(account.id))).state == "active"


async def test_removing_an_account_wipes_its_servers_and_its_password(setup: JobSetup) -> None:
    account = await connected_imap(setup)
    removed = await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
    assert (removed.state, removed.servers) == ("removed", None)
    assert (await setup.database.run(accounts.account_with_secret(account.id, PASSWORD))).sealed is None


async def test_a_mailbox_is_connected_through_gmails_api_or_over_imap_but_not_both(setup: JobSetup) -> None:
    gmail = await connected(setup)
    with pytest.raises(Conflict, match="already connected through Gmail's API"):
        await connected_imap(setup)
    await setup.database.run(accounts.remove_account(gmail.id, signed(), setup.clock()))
    assert (await connected_imap(setup)).state == "active"
    with pytest.raises(Conflict, match="already connected over IMAP"):
        await connected(setup)


async def test_one_mailbox_under_two_addresses_is_refused(setup: JobSetup) -> None:
    first, now = await connected_imap(setup), setup.clock()
    same = replace(servers(now), imap_host="IMAP.example.com", user_name=ADA.upper())
    for _ in range(2):
        with pytest.raises(Conflict, match=f"signs in to the mailbox of {ADA}"):
            await setup.database.run(
                accounts.connect_account(
                    new_id(), "imap", "alias@example.com", GivenAccess({}, servers=same), signed(), now
                )
            )
    assert [each.email for each in await setup.database.run(accounts.list_accounts())] == [ADA]
    await setup.database.run(accounts.remove_account(first.id, signed(), now))
    connecting = accounts.connect_account(
        new_id(), "imap", "alias@example.com", GivenAccess({}, servers=same), signed(), now
    )
    assert (await setup.database.run(connecting)).state == "active"


async def test_an_id_that_is_not_the_accounts_is_refused(setup: JobSetup) -> None:
    await connected_imap(setup)
    with pytest.raises(Conflict, match="connected in the meantime"):
        await setup.database.run(
            accounts.connect_account(
                new_id(), "imap", ADA, GivenAccess({}, servers=servers(setup.clock())), signed(), setup.clock()
            )
        )


@pytest.mark.parametrize(
    ("signs_in", "need", "words"),
    [
        ("password", "password", f"The server refused the password for {ADA}: wrong"),
        ("xoauth2", "consent", f"{ADA} needs your consent: wrong"),
    ],
)
async def test_a_refused_password_is_no_lost_consent(
    setup: JobSetup, signs_in: SignInKind, need: str, words: str
) -> None:
    given = replace(servers(setup.clock()), sign_in=signs_in)
    field = PASSWORD if signs_in == "password" else REFRESH_TOKEN
    access = GivenAccess({field: Sealed("key1", "sealed")}, servers=given)
    account = await setup.database.run(accounts.connect_account(new_id(), "imap", ADA, access, signed(), setup.clock()))
    await setup.database.run(accounts.refuse_sign_in(account.id, setup.clock(), "wrong", signed(), setup.clock()))
    [line] = await account_lines(setup.database, setup.clock())
    [attention] = [each for each in await needs_attention(setup.database, [line]) if each.about == ADA]
    command = f"postroom account add imap --email {ADA}"
    assert (attention.need, attention.command, attention.page) == (need, command, "/connectors/imap")
    refused = await setup.database.run(accounts.load_account(account.id))
    [check, *_] = account_checks(Known((refused,), (), {}, ()), setup.clock())
    assert check.found == words
    with pytest.raises(BadInput, match="server refused its password" if need == "password" else "needs your consent"):
        check_in_use(refused)
