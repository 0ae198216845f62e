"""Approvals as the settings compose them: both channels, the bot, the hook, and the key that signs buttons."""

import asyncio
import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.compose.approvals import HOOK, ApprovalChannels, approval_routes, run_discord_bot
from postroom.core.actions.safety import Policy
from postroom.core.errors import SettingsError
from postroom.core.jobs.types import CATALOGUE
from postroom.settings.reading import Settings, load_settings
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.approvals import Approvals
from postroom.vault.keys import NAME
from support.approval_setup import ApprovalSetup as MessageSetup
from support.approval_setup import pending
from support.clocks import ManualClock
from support.discord_api import CHANNEL_ID, DiscordApi, running_discord
from support.message_setup import MessageSetup as Mail
from support.message_setup import message_id_of
from support.patience import PATIENCE_S
from support.product import raw_mail, running_product
from support.store.fault_cases_registry import signed

APPROVER = "910000000000000071"


def settings_with(folder: Path, **more: Any) -> Settings:
    given = {name.replace("__", "."): value for name, value in more.items()}
    return load_settings({"data_dir": folder, **given}, environ={}, cwd=folder)


async def test_without_settings_nobody_is_asked_and_no_door_is_open(sqlite: Database, tmp_path: Path) -> None:
    settings = settings_with(tmp_path)
    async with ApprovalChannels(settings, sqlite) as setup:
        assert setup.channels == []
    assert approval_routes(settings, sqlite) == []
    assert not (tmp_path / NAME).exists()


async def test_a_webhook_alone_opens_no_door_for_answers(sqlite: Database, tmp_path: Path) -> None:
    url, secret = "https://example.com/told", "0123456789abcdef"
    settings = settings_with(tmp_path, approvals__webhook_url=url, approvals__webhook_secret=secret)
    async with ApprovalChannels(settings, sqlite) as setup:
        assert [channel.name for channel in setup.channels] == ["webhook"]
    assert approval_routes(settings, sqlite) == []
    answering = settings_with(tmp_path, approvals__webhook_secret=secret, approvals__webhook_answers=True)
    assert [route.path for route in approval_routes(answering, sqlite)] == [HOOK]


async def test_a_bot_that_is_set_up_asks_and_takes_the_answer(
    sqlite: Database, tmp_path: Path, clock: ManualClock
) -> None:
    api, at = DiscordApi(), MessageSetup(sqlite, clock)
    clock.now = wall_clock()
    async with running_discord(api) as (base_url, gateway_url):
        settings = settings_with(
            tmp_path,
            discord__token=api.token,
            discord__channel=CHANNEL_ID,
            discord__approvers=APPROVER,
            discord__base_url=base_url,
            discord__gateway_url=gateway_url,
        )
        id = await pending(at)
        async with ApprovalChannels(settings, sqlite) as setup:
            listening = asyncio.create_task(run_discord_bot(settings, sqlite))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await api.gateway.until_connected()
                    await at.notify(id, setup.channels)
                    (notice,) = await at.notices(id)
                    custom_id = api.button(notice.reference, "Approve")["custom_id"]
                    pressed = await api.press(notice.reference, custom_id, APPROVER)
                    assert await pressed.said == "Approved: it is being done."
            finally:
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
    assert await at.state(id) == "queued"
    assert (tmp_path / NAME).exists()


async def test_a_bot_without_its_library_is_an_error_that_says_what_to_install(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("discord", "discord_message", "discord_bot", "discord_library"):
        monkeypatch.delitem(sys.modules, f"postroom.triage.act.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "discord", None)
    settings = settings_with(tmp_path, discord__token="x", discord__channel=CHANNEL_ID)
    with pytest.raises(SettingsError, match=r"pip install 'postroom\[discord\]'"):
        ApprovalChannels(settings, sqlite)
    with pytest.raises(SettingsError):
        importlib.import_module("postroom.triage.act.discord_bot")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"approvals__webhook_url": "https://example.com"}, "approvals.webhook_secret"),
        ({"approvals__webhook_url": "ftp://example.com", "approvals__webhook_secret": "x" * 16}, "an address"),
        ({"approvals__webhook_secret": "short"}, "16 characters"),
        ({"approvals__webhook_answers": True}, "approvals.webhook_secret"),
        ({"approvals__public_url": "mail.example.com"}, "an address"),
        ({"discord__token": "x"}, "discord.channel"),
        ({"discord__channel": "general"}, "discord.channel"),
        ({"discord__approvers": "ada"}, "ids of users"),
        ({"discord__base_url": "discord.com"}, "an address"),
    ],
)
def test_settings_that_are_invalid_are_refused_with_the_remedy(
    tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_with(tmp_path, **given)
    assert words in str(refused.value)
    assert "short" not in str(refused.value)


async def test_what_an_agent_proposes_is_done_in_the_mailbox_once_a_person_approves_it(
    sqlite: Database, tmp_path: Path
) -> None:
    async with running_product(sqlite, tmp_path) as product:
        message = product.mailbox.deliver(raw_mail("Hello"))
        await product.live.sync()
        await product.settled(1)
        setup = Mail(product, message.id, await message_id_of(sqlite, "Hello"))
        requests = ActionRequests(sqlite, CATALOGUE, Policy(), wall_clock)
        asked = await requests.ask(
            setup.id, "trash", {}, source="agent", asked_by="token:7", why="it is old", signed=signed()
        )
        assert asked.state == "approved_pending"
        approvals = Approvals(sqlite, CATALOGUE, wall_clock)
        shown = await approvals.show(asked.action_id)
        await approvals.approve(asked.action_id, shown.action_hash, setup.signed())
        done = await setup.ended(asked.action_id)
        assert (done.state, done.approved_by) == ("completed", "test")
        assert "TRASH" in setup.labels
