"""The real discord.py over loopback sockets: notices are posted once and closed, and only valid presses count."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.action import ActionType
from postroom.core.errors import Fatal, KeyMissing, Retryable
from postroom.store.actions import approvals
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.triage.act.discord import DiscordChannel, DiscordTerms
from postroom.triage.act.discord_bot import DiscordBot
from postroom.triage.act.discord_buttons import ButtonIds
from postroom.triage.act.discord_library import point_at
from support.approval_setup import ApprovalSetup, Broken, pending
from support.approvals import tamper
from support.clocks import ManualClock
from support.discord_api import CHANNEL_ID, DiscordApi, Pressed, Refusal, running_discord
from support.patience import PATIENCE_S

APPROVER, STRANGER = "910000000000000071", "910000000000000072"
BUTTONS = ButtonIds(lambda: [b"k" * 32])


@dataclass
class DiscordSetup:
    """The stand-in, the bot in it, and the setup behind."""

    setup: ApprovalSetup
    discord: DiscordApi
    channel: DiscordChannel

    async def asked(self, action: ActionType = "trash", parameters: dict[str, Any] | None = None) -> tuple[UUID, str]:
        """The ids of an action that waits, and of the message that asks."""
        id = await pending(self.setup, action, parameters, actor="rule")
        await self.setup.notify(id, [self.channel])
        return id, (await self.setup.notices(id))[0].reference

    async def press(self, message_id: str, button: str, user: str = APPROVER) -> str:
        """What the bot says to who presses; `button` is a label, or an id that the message has no button of."""
        labels = {"Approve", "Reject"}
        custom_id = self.discord.button(message_id, button)["custom_id"] if button in labels else button
        return await said(await self.discord.press(message_id, custom_id, user))


async def said(pressed: Pressed) -> str:
    async with asyncio.timeout(PATIENCE_S):
        words = await pressed.said
    assert pressed.is_private
    return words


@pytest.fixture
async def quiet(sqlite: Database, clock: ManualClock) -> AsyncIterator[DiscordSetup]:
    """Discord without a bot that listens: what any worker has."""
    api = DiscordApi()
    async with running_discord(api) as (base_url, gateway_url):
        point_at(base_url, gateway_url)
        channel = DiscordChannel(DiscordTerms(api.token, int(CHANNEL_ID), "https://mail.example.com"), BUTTONS)
        try:
            yield DiscordSetup(ApprovalSetup(sqlite, clock), api, channel)
        finally:
            await channel.aclose()


@contextlib.asynccontextmanager
async def listening(quiet: DiscordSetup, buttons: ButtonIds) -> AsyncGenerator[DiscordSetup]:
    bot = DiscordBot(quiet.discord.token, quiet.setup.answers, buttons, [APPROVER])
    task = asyncio.create_task(bot.run(again_after=timedelta(0)))
    try:
        async with asyncio.timeout(PATIENCE_S):
            await quiet.discord.gateway.until_connected()
        yield quiet
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def discord_setup(quiet: DiscordSetup) -> AsyncIterator[DiscordSetup]:
    async with listening(quiet, BUTTONS):
        yield quiet


def fields(message: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in message["embeds"][0]["fields"]}


async def test_the_embed_says_what_to_whom_why_and_until_when(quiet: DiscordSetup) -> None:
    id, message_id = await quiet.asked("forward", {"to": "boss@example.com", "note": "look"})
    message = quiet.discord.messages[message_id]
    shown = fields(message)
    assert shown["What"] == "`forward`"
    assert shown["Goes to"] == "`boss@example.com`"
    assert shown["Mail"] == "From `a@example.com`\nSubject `Hello`"
    assert shown["With"] == "```\nlook\n```"
    assert "`it is old`\n`agents propose, people approve`" in shown["Why"]
    assert shown["Expires"].startswith("<t:")
    assert message["embeds"][0]["footer"]["text"] == f"Action {id}"
    assert message["allowed_mentions"] == {"parse": []}
    assert quiet.discord.button(message_id, "Open")["url"] == "https://mail.example.com/"


async def test_what_mail_says_stays_in_its_quotes(quiet: DiscordSetup) -> None:
    hostile = "`[click](https://evil.example)` @everyone <@1> ```\n**x**"
    _, message_id = await quiet.asked("auto_reply", {"text": hostile * 40, "subject": hostile.replace("\n", "")})
    shown = fields(quiet.discord.messages[message_id])
    assert shown["With"].count("`") == 6
    assert shown["With"].endswith("\n```")


async def test_an_approver_who_presses_approve_has_it_done(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    assert await discord_setup.press(message_id, "Approve") == "Approved: it is being done."
    found = await discord_setup.setup.shown(id)
    assert (found.state, found.approved_by) == ("queued", f"discord:{APPROVER}")


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("auto_reply", {"text": "x" * 701}),
        ("auto_reply", {"text": "Yes.", "html": "<p>No.</p>"}),
        ("forward", {"to": [f"r{number}@example.com" for number in range(11)]}),
    ],
)
async def test_what_is_not_shown_whole_can_be_rejected_there_but_not_approved(
    discord_setup: DiscordSetup, action: ActionType, parameters: dict[str, Any]
) -> None:
    id, message_id = await discord_setup.asked(action, parameters)
    message = discord_setup.discord.messages[message_id]
    assert [button["label"] for row in message["components"] for button in row["components"]] == ["Reject", "Open"]
    assert f"`postroom approvals approve {id}`" in fields(message)["Not all of it is shown here"]
    approve = BUTTONS.sign("approve", await discord_setup.setup.shown(id))
    assert (await discord_setup.press(message_id, approve)).startswith("Refused: not all of it is shown here")
    assert await discord_setup.setup.state(id) == approvals.WAITING
    assert [each[:2] for each in await discord_setup.setup.refused()] == [(f"discord:{APPROVER}", str(id))]
    assert await discord_setup.press(message_id, "Reject") == "Rejected: it is not done."


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyMissing("there is no key"), "Not done: there is no key."),
        (RuntimeError("a secret"), "Not done, because of an unexpected error; answer with `postroom approvals`."),
    ],
)
async def test_whoever_presses_gets_an_answer_whatever_goes_wrong(
    quiet: DiscordSetup, error: Exception, words: str
) -> None:
    def keys() -> list[bytes]:
        raise error

    id, message_id = await quiet.asked()
    async with listening(quiet, ButtonIds(keys)):
        assert await quiet.press(message_id, "Approve") == words
    assert await quiet.setup.state(id) == approvals.WAITING


async def test_an_approver_who_presses_reject_has_it_left(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    assert await discord_setup.press(message_id, "Reject") == "Rejected: it is not done."
    assert await discord_setup.setup.state(id) == "rejected"


async def test_a_stranger_is_refused_in_private_and_audited_once_a_minute(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    for button in ("Approve", "Reject"):
        assert (await discord_setup.press(message_id, button, STRANGER)).startswith("Refused: you may not answer")
    assert await discord_setup.setup.state(id) == approvals.WAITING
    assert [each[:2] for each in await discord_setup.setup.refused()] == [(f"discord:{STRANGER}", str(id))]
    discord_setup.setup.clock.forward(60)
    await discord_setup.press(message_id, "Approve", STRANGER)
    assert len(await discord_setup.setup.refused()) == 2


async def test_a_forged_button_is_refused_and_audited(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    real = discord_setup.discord.button(message_id, "Reject")["custom_id"]
    other = await pending(discord_setup.setup, "delete", actor="rule")
    foreign = ButtonIds(lambda: [b"x" * 32]).sign("approve", await discord_setup.setup.shown(other))
    content, _, signature = real.rpartition(":")
    changed = f"{content}:{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"
    for forged in (real.replace(":r:", ":a:"), changed, foreign, "postroom:a:x:9999999999:y:z"):
        assert (await discord_setup.press(message_id, forged)).startswith("Refused: this button is not signed")
    assert await discord_setup.setup.state(id) == await discord_setup.setup.state(other) == approvals.WAITING
    assert {each[1] for each in await discord_setup.setup.refused()} == {str(id), str(other), "unknown"}


async def test_a_press_that_is_replayed_after_the_answer_is_refused(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    kept = discord_setup.discord.button(message_id, "Approve")["custom_id"]
    await discord_setup.press(message_id, "Reject")
    assert "any more: rejected by discord:" in await discord_setup.press(message_id, kept)
    assert await discord_setup.setup.state(id) == "rejected"
    assert len(await discord_setup.setup.refused()) == 1


async def test_a_press_after_the_expiry_is_refused(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    discord_setup.setup.clock.forward(24 * 3600)
    assert "this button has expired" in await discord_setup.press(message_id, "Approve")
    assert await discord_setup.setup.state(id) == approvals.WAITING
    assert await discord_setup.setup.database.run(approvals.expire_approvals(discord_setup.setup.clock())) == 1


async def test_the_approval_of_an_action_that_was_changed_afterwards_is_refused(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked("forward", {"to": "boss@example.com"})
    change = """parameters_json = '{"to":"thief@example.net"}'"""
    await discord_setup.setup.database.run(tamper(change, id))
    assert "was changed after it was decided on" in await discord_setup.press(message_id, "Approve")
    assert await discord_setup.setup.state(id) == approvals.WAITING


async def test_a_bot_that_is_asked_to_reconnect_goes_on_listening(discord_setup: DiscordSetup) -> None:
    id, message_id = await discord_setup.asked()
    await discord_setup.discord.gateway.ask_to_reconnect()
    async with asyncio.timeout(PATIENCE_S):
        await discord_setup.discord.gateway.until_connected(sessions=2)
    assert discord_setup.discord.gateway.resumed == 1
    await discord_setup.press(message_id, "Approve")
    assert await discord_setup.setup.state(id) == "queued"


async def test_an_answered_notice_is_edited_once_with_its_buttons_out_of_use(quiet: DiscordSetup) -> None:
    id, message_id = await quiet.asked()
    await quiet.setup.reject(id)
    await quiet.setup.notify(id, [quiet.channel])
    await quiet.setup.notify(id, [quiet.channel])
    (edited,) = quiet.discord.edits
    assert fields(edited)["Answer"] == "`rejected: rejected by cli:ada`"
    assert "Expires" not in fields(edited)
    assert [quiet.discord.button(message_id, label)["disabled"] for label in ("Approve", "Reject")] == [True, True]
    assert [notice.is_open for notice in await quiet.setup.notices(id)] == [False]


async def test_a_notice_that_somebody_deleted_needs_no_closing(quiet: DiscordSetup) -> None:
    id, message_id = await quiet.asked()
    del quiet.discord.messages[message_id]
    await quiet.setup.reject(id)
    await quiet.setup.notify(id, [quiet.channel])
    assert [notice.is_open for notice in await quiet.setup.notices(id)] == [False]


@pytest.mark.parametrize("minutes_later", [False, True])
async def test_a_retry_after_a_lost_answer_does_not_post_twice(quiet: DiscordSetup, minutes_later: bool) -> None:
    id = await pending(quiet.setup)
    quiet.discord.refusals.append(Refusal(503, after_taking=True))
    with pytest.raises(Retryable):
        await quiet.setup.notify(id, [quiet.channel])
    if minutes_later:
        quiet.discord.forget_nonces()
    await quiet.setup.notify(id, [quiet.channel], attempts=2 if minutes_later else 1)
    assert list(quiet.discord.messages) == [notice.reference for notice in await quiet.setup.notices(id)]


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Refusal(503), Retryable),
        (Refusal(403, 50013), Fatal),
        (Refusal(404, 10003), Fatal),
        (Refusal(400, 50035), Fatal),
        (Refusal(429, retry_after=45.0), Retryable),
    ],
)
async def test_what_discord_refuses_is_tried_again_only_when_that_may_help(
    quiet: DiscordSetup, refusal: Refusal, kind: type[Exception]
) -> None:
    id = await pending(quiet.setup)
    quiet.discord.refusals.append(refusal)
    with pytest.raises(kind) as raised:
        await quiet.setup.notify(id, [quiet.channel])
    if isinstance(raised.value, Retryable) and refusal.retry_after is not None:
        assert raised.value.after == timedelta(seconds=refusal.retry_after)
    assert await quiet.setup.notices(id) == []


async def test_a_wrong_token_names_the_setting(quiet: DiscordSetup) -> None:
    id = await pending(quiet.setup)
    channel = DiscordChannel(DiscordTerms("wrong", int(CHANNEL_ID)), BUTTONS)
    with pytest.raises(Fatal, match=r"discord\.token"):
        await quiet.setup.notify(id, [channel])


async def test_a_channel_that_fails_does_not_keep_the_others_from_asking(quiet: DiscordSetup) -> None:
    id = await pending(quiet.setup)
    with pytest.raises(Fatal, match="broken"):
        await quiet.setup.notify(id, [Broken(Fatal("broken")), quiet.channel])
    assert [notice.channel for notice in await quiet.setup.notices(id)] == ["discord"]


async def test_a_channel_that_breaks_in_an_unforeseen_way_is_tried_again_and_silences_no_other(
    quiet: DiscordSetup,
) -> None:
    id = await pending(quiet.setup)
    with pytest.raises(Retryable, match="webhook failed unexpectedly \\(KeyMissing\\)") as raised:
        await quiet.setup.notify(id, [Broken(KeyMissing("a secret")), quiet.channel])
    assert "secret" not in str(raised.value)
    assert [notice.channel for notice in await quiet.setup.notices(id)] == ["discord"]


async def test_a_notice_posted_while_the_answer_arrives_is_closed_at_once(quiet: DiscordSetup) -> None:
    id = await pending(quiet.setup)

    class AnsweredMeanwhile(Broken):
        """Somebody answers while it asks."""

        async def post(self, approval: approvals.Approval, *, again: bool) -> str:
            await quiet.setup.reject(id)
            return "x"

        async def close(self, approval: approvals.Approval, reference: str) -> None:
            closed.append(approval.state)

    closed: list[str] = []
    await quiet.setup.notify(id, [AnsweredMeanwhile(Fatal("unused"))])
    assert closed == ["rejected"]
    assert [notice.is_open for notice in await quiet.setup.notices(id)] == [False]


async def test_without_a_channel_the_job_is_done_and_the_action_waits(quiet: DiscordSetup) -> None:
    id = await pending(quiet.setup)
    await quiet.setup.notify(id, [])
    assert await quiet.setup.state(id) == approvals.WAITING


async def test_what_was_answered_before_anybody_was_asked_is_not_asked(quiet: DiscordSetup) -> None:
    id = await pending(quiet.setup)
    await quiet.setup.reject(id)
    await quiet.setup.notify(id, [quiet.channel])
    assert quiet.discord.messages == {}


@pytest.mark.parametrize("error", [Retryable("later"), RuntimeError("unforeseen")])
async def test_a_notice_that_cannot_be_closed_is_given_up_with_the_last_attempt(
    quiet: DiscordSetup, error: Exception
) -> None:
    id = await pending(quiet.setup)
    await quiet.setup.database.run(approvals.keep_notice(id, "webhook", "x", quiet.setup.clock()))
    await quiet.setup.reject(id)
    broken = Broken(error)
    for attempt, is_open in ((1, True), (5, False)):
        with pytest.raises(Retryable):
            await quiet.setup.notify(id, [broken], attempts=attempt)
        assert [notice.is_open for notice in await quiet.setup.notices(id)] == [is_open]


async def test_a_digest_is_one_message_also_when_it_is_tried_again(quiet: DiscordSetup) -> None:
    id, text = new_id(), "9 more actions wait for your answer (9 apply_label)."
    for _ in range(2):
        await quiet.channel.post_digest(id, text)
    (posted,) = quiet.discord.messages.values()
    assert (posted["content"], posted["components"]) == (text, [])
    await quiet.channel.post_digest(new_id(), text)
    assert len(quiet.discord.messages) == 2
