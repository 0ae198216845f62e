"""Who pulls the hints: the account with its own consent, or a service account with its key; and errors of both."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from postroom.core.errors import SettingsError
from postroom.mailboxes.gmail.following.hints import HintsRefused, PubSubHints
from postroom.mailboxes.gmail.scopes import MODIFY, PUBSUB, Consented
from postroom.mailboxes.gmail.service_account import KeyRefused, ServiceAccountKeyFile, service_account_tokens
from postroom.mailboxes.gmail.tokens import GmailAccessToken, Tokens
from postroom.store.engine.opening import open_database
from postroom_sandbox.pubsub import Subscription
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import OWNER, raw_mail
from support.service_keys import ROBOT, write_key

TOPIC = "projects/home/topics/gmail"
SUBSCRIPTION = "projects/home/subscriptions/postroom"
SETTING = "gmail.pubsub_key_file"


@pytest.fixture
async def setup(clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    database = await open_database(tmp_path / "desk", None)
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found
    await database.close()


@pytest.fixture
def subscription(setup: GmailSetup) -> Subscription:
    return setup.emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)


def consenting(setup: GmailSetup, *scopes: str) -> Tokens:
    """The account's own tokens, as the switchboard gives them."""

    async def fetch(refused: str | None) -> GmailAccessToken:
        issued = setup.emulator.issue_token(scopes=scopes)
        life = timedelta(seconds=issued.expires_in)
        return GmailAccessToken(issued.access_token, setup.clock() + life, Consented(OWNER, frozenset(scopes)))

    return Tokens(fetch, setup.clock)


def signing(setup: GmailSetup, path: Path) -> Tokens:
    endpoint = f"{setup.address}/token"
    return service_account_tokens(setup.http, ServiceAccountKeyFile(path, SETTING, [endpoint]), (PUBSUB,), setup.clock)


def key_of(setup: GmailSetup, path: Path) -> Path:
    return write_key(path, setup.emulator.service_accounts.create_key(ROBOT, f"{setup.address}/token"))


def hints_of(setup: GmailSetup, tokens: Tokens) -> PubSubHints:
    soon = timedelta(milliseconds=1)
    return PubSubHints(setup.http, SUBSCRIPTION, OWNER, tokens, setup.address, after_trouble=soon)


async def test_an_account_whose_consent_includes_pubsub_pulls(setup: GmailSetup, subscription: Subscription):
    setup.emulator.pubsub.publish(TOPIC, {"emailAddress": OWNER, "historyId": 2})
    await hints_of(setup, consenting(setup, MODIFY, PUBSUB)).wait()
    assert subscription.waiting == []


async def test_a_service_account_pulls_with_its_key(setup: GmailSetup, subscription: Subscription, tmp_path: Path):
    hints = hints_of(setup, signing(setup, key_of(setup, tmp_path / "key.json")))
    for number in range(2):
        setup.emulator.pubsub.publish(TOPIC, {"emailAddress": OWNER, "historyId": number})
        await hints.wait()
        setup.clock.forward(3600)
    assert subscription.waiting == []


async def test_a_consent_without_pubsub_is_reported_in_the_heartbeat_and_polling_goes_on(
    setup: GmailSetup, subscription: Subscription
):
    hints = hints_of(setup, consenting(setup, MODIFY))
    stop, connector = asyncio.Event(), setup.connector(hints=hints)
    with capture_logs() as logged:
        running = asyncio.create_task(connector.run(timedelta(milliseconds=1), stop))
        await setup.health.until(lambda: setup.health.cursor is not None)
        setup.mailbox.deliver(raw_mail("hello"))
        await setup.health.until(lambda: setup.health.counters["ingested"] == 1)
        await setup.health.until(lambda: setup.health.state == "degraded")
        stop.set()
        await running
    told = (
        f"pulling gmail.pubsub_subscription needs {PUBSUB}, and {OWNER} has granted {MODIFY} (the level organise); "
        f"run `postroom account add gmail --email {OWNER} --level organise`, and leave every box on Google's page "
        "ticked; gmail.pubsub_subscription must be set there too"
    )
    assert setup.health.error_message is not None
    assert setup.health.error_message.startswith(f"HintsRefused: {told}")
    (line,) = [each for each in logged if each["event"] == "connector.no_hints"]
    assert line["error"].startswith(told)


async def test_a_key_file_that_is_put_right_is_taken_up_without_a_restart(
    setup: GmailSetup, subscription: Subscription, tmp_path: Path
):
    path = tmp_path / "key.json"
    hints = hints_of(setup, signing(setup, path))
    setup.emulator.pubsub.publish(TOPIC, {"emailAddress": OWNER, "historyId": 2})
    with pytest.raises(SettingsError, match=rf"{SETTING}: {path} cannot be read"):
        await hints.pull()
    key_of(setup, path)
    assert await hints.pull()


async def test_a_key_that_google_does_not_take_any_more_is_reported(
    setup: GmailSetup, subscription: Subscription, tmp_path: Path
):
    hints = hints_of(setup, signing(setup, key_of(setup, tmp_path / "key.json")))
    setup.emulator.service_accounts.delete_keys(ROBOT)
    with pytest.raises(KeyRefused, match=rf"the key of {ROBOT} .*{SETTING}"):
        await hints.pull()


async def test_a_subscription_that_is_not_there_says_which_setting_names_it(setup: GmailSetup):
    with pytest.raises(HintsRefused, match=rf"no subscription {SUBSCRIPTION}.*correct gmail\.pubsub_subscription"):
        await hints_of(setup, consenting(setup, PUBSUB)).pull()


async def test_a_subscriber_without_the_role_is_told_of_it(setup: GmailSetup, subscription: Subscription):
    subscription.closed = True
    with pytest.raises(HintsRefused, match="the role Pub/Sub Subscriber"):
        await hints_of(setup, consenting(setup, PUBSUB)).pull()
