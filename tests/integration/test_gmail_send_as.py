"""Mail to another address of the user's counts as mail to the user: send-as addresses are looked up, and kept."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.following.send_as import SendAsAddresses
from postroom.store.engine.opening import open_database
from postroom_sandbox.faults import Fault
from postroom_sandbox.methods import METADATA
from postroom_sandbox.send_as import Alias, SendAs
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.patience import PATIENCE_S
from support.product import OWNER, TOKEN, raw_mail

WORK, SCHOOL, GIVEN = "Mara@Work.example", "old@school.example", "mara@club.example"


@pytest.fixture
async def setup(clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    database = await open_database(tmp_path, None)
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found
    await database.close()


@pytest.fixture
def aliases(setup: GmailSetup) -> SendAs:
    found = setup.emulator.accounts[OWNER].send_as
    found.add(Alias(WORK))
    found.add(Alias(SCHOOL, verification="pending"))
    return found


def send_as_of(setup: GmailSetup, token: str = TOKEN, **options: Any) -> SendAsAddresses:
    async def give() -> str:
        return token

    return SendAsAddresses(
        setup.folder / "send_as.json", GmailClient(setup.http, setup.address, give), setup.clock, **options
    )


def connector_of(setup: GmailSetup, send_as: SendAsAddresses) -> GmailConnector:
    """Beside what Gmail tells, one address was given by hand, as `--also` does."""
    return setup.connector(knowledge=Knowledge([OWNER, GIVEN], more_addresses=send_as))


async def tiers_of(setup: GmailSetup, connector: GmailConnector, *recipients: str) -> dict[str, str]:
    delivered = {setup.mailbox.deliver(raw_mail(to, to=to)).id: to for to in recipients}
    await connector.sync()
    return {
        delivered[id]: envelope["control"]["policy_tier"]
        for id, envelope in (await setup.waiting()).items()
        if id in delivered
    }


async def test_mail_to_a_verified_address_is_direct_and_to_another_is_not(setup: GmailSetup, aliases: SendAs):
    found = await tiers_of(
        setup, connector_of(setup, send_as_of(setup)), OWNER, WORK.lower(), GIVEN, SCHOOL, "x@y.example"
    )
    assert found == {
        OWNER: "interactive",
        WORK.lower(): "interactive",
        GIVEN: "interactive",
        SCHOOL: "default",
        "x@y.example": "default",
    }


async def test_they_are_looked_up_about_once_an_hour(setup: GmailSetup, aliases: SendAs):
    send_as = send_as_of(setup)
    for _ in range(3):
        await send_as.refresh()
    assert setup.calls["settings.sendAs.list"] == 1
    aliases.add(Alias("mara@new.example"))
    setup.clock.forward(3599)
    await send_as.refresh()
    assert "mara@new.example" not in send_as.addresses()
    setup.clock.forward(1)
    await send_as.refresh()
    assert send_as.addresses() == {OWNER, WORK.lower(), "mara@new.example"}
    setup.clock.forward(-86_400)
    await send_as.refresh()
    assert setup.calls["settings.sendAs.list"] == 3


@pytest.mark.parametrize(
    "fault",
    [
        Fault(503, "backendError", method="settings.sendAs.list", times=9),
        Fault(403, "insufficientPermissions", method="settings.sendAs.list", times=9),
        Fault(kind="reset", path="/settings/sendAs", times=9),
        Fault(kind="missing_fields", method="settings.sendAs.list", fields=("sendAsEmail",), times=9),
    ],
    ids=["unavailable", "forbidden", "reset", "nonsense"],
)
async def test_while_gmail_does_not_tell_the_last_known_count_and_mail_comes(
    setup: GmailSetup, aliases: SendAs, fault: Fault
):
    await send_as_of(setup).refresh()
    setup.emulator.faults.order(fault)
    send_as = send_as_of(setup)
    connector = connector_of(setup, send_as)
    with capture_logs() as logged:
        assert await tiers_of(setup, connector, WORK.lower()) == {WORK.lower(): "interactive"}
        setup.clock.forward(3600)
        await send_as.refresh()
    assert [each["event"] for each in logged if "send_as" in each["event"]] == ["connector.send_as_unknown"]
    setup.emulator.faults.clear()
    aliases.add(Alias("mara@new.example"))
    setup.clock.forward(3600)
    await send_as.refresh()
    assert "mara@new.example" in send_as.addresses()


async def test_a_token_without_the_scope_is_reported_once_and_asked_for_no_more_than_hourly(
    setup: GmailSetup, aliases: SendAs
):
    narrow = setup.emulator.issue_token(scopes=[METADATA]).access_token
    send_as = send_as_of(setup, narrow)
    with capture_logs() as logged:
        for _ in range(3):
            await send_as.refresh()
            setup.clock.forward(600)
    assert send_as.addresses() == frozenset()
    (told,) = logged
    assert "settings.sendAs.list needs https://www.googleapis.com/auth/gmail.readonly" in told["error"]


async def test_gmail_may_not_hold_up_mail_by_being_slow(setup: GmailSetup, aliases: SendAs):
    setup.emulator.faults.order(Fault(kind="delay", path="/settings/sendAs", delay_s=30))
    connector = connector_of(setup, send_as_of(setup, patience=timedelta(milliseconds=50)))
    assert await tiers_of(setup, connector, OWNER) == {OWNER: "interactive"}


async def test_a_look_that_is_canceled_is_made_up_for_soon(setup: GmailSetup, aliases: SendAs):
    asking, stays = asyncio.Event(), True

    async def token() -> str:
        asking.set()
        if stays:
            await asyncio.Event().wait()
        return TOKEN

    found = SendAsAddresses(setup.folder / "send_as.json", GmailClient(setup.http, setup.address, token), setup.clock)
    looking = asyncio.create_task(found.refresh())
    async with asyncio.timeout(PATIENCE_S):
        await asking.wait()
        looking.cancel()
        await asyncio.wait({looking})
    stays = False
    setup.clock.forward(300)
    await found.refresh()
    assert WORK.lower() in found.addresses()


@pytest.mark.parametrize("content", ["", "{", '{"addresses": 7}', '{"addresses": [7, "no address", "a@b.example"]}'])
def test_a_file_that_is_invalid_is_no_trouble(setup: GmailSetup, content: str):
    setup.folder.mkdir()
    (setup.folder / "send_as.json").write_text(content)
    assert send_as_of(setup).addresses() == ({"a@b.example"} if "a@b" in content else set())
