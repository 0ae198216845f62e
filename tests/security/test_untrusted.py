"""What strangers and models wrote stands under `untrusted` in every tool's answer, and nothing in it acts on a reader.

Every tool that anybody but a connector has is called, after its words were planted wherever a stranger or a model can
write. A new tool fails here until it is called too.
"""

import asyncio
import json
import unicodedata
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.harmless import harmless
from postroom.core.mail.accounts import endpoint_of
from postroom.core.queue.marked_envelope import marked_envelope
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.registry import ALL_TOOLS, TOOLS_BY_NAME
from postroom.interfaces.http.services import Services
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import Reply
from postroom.store.outbound.senders import sender_by_login
from support.agent_client import ADMIN, AGENT, client_of
from support.mail import OWNER
from support.strangers import ENDPOINT, EVIL, PLAIN, SENDER, leaks, plant, plant_backfill, plant_mail
from support.switchboard import Served, envelope


async def arguments(tool: str, message: UUID, action: UUID, services: Services) -> dict[str, Any] | None:
    """What makes the call answer with what was planted; None for tools that answer with ids and counts alone."""
    match tool:
        case "queue.next" | "queue.peek":
            return {"queue": "gateway"}
        case "mail.search":
            return {"query": PLAIN}
        case "mail.read":
            return {"message_id": str(message), "level": "text"}
        case "decisions.explain":
            return {"message_id": str(message)}
        case "actions.list" | "connector.list" | "queue.stats" | "mutations.status":
            return {}
        case "mail.propose_action":
            return {"message_id": str(message), "action": "archive", "why": "a test"}
        case "connector.request":
            asked = await services.parts.requests.ask(ENDPOINT, "sync_now", {})
            [leased] = await services.parts.requests.next(ENDPOINT)
            assert leased.id == asked.id
            await services.parts.requests.reply(leased.id, ENDPOINT, leased.lease_token, Reply({"said": EVIL}, None))
            return {"endpoint_identity": ENDPOINT}
        case "email_search_and_ingest":
            answering = asyncio.create_task(answer_searches(services))
            answering.add_done_callback(lambda done: done.cancelled() or done.result())
            return {"query": "words", "endpoint_identity": endpoint_of("gmail", OWNER)}
        case "actions.undo":
            return {"action_id": str(action)}
        case "queue.ack" | "queue.nack" | "queue.replay" | "ingest" | "ingest.batch" | "contacts.add":
            return None
        case "mutations.pause":
            return None
        case "backfill.list":
            await plant_backfill(services)
            return {}
        case "outbound.submit" | "outbound.cancel":
            return None
        case "outbound.status":
            return {"id": await plant_mail(services)}
        case "create_backfill_job" | "backfill.pause" | "backfill.resume" | "backfill.cancel" | "backfill.estimate":
            return None
        case _:
            raise AssertionError(f"{tool}: call it here, with words of strangers where it answers with them")


async def answer_searches(services: Services) -> None:
    """Answers for the mailbox's connector, one call of each role."""
    identity = endpoint_of("gmail", OWNER)
    found = {"id": "18c0", "date": EVIL, "from": EVIL, "subject": EVIL, "end": "skipped", "reason": EVIL}
    for reply in (
        Reply({"messages": [found, {**found, "id": EVIL}, EVIL], "more": EVIL}),
        Reply(error=EVIL),
        Reply({}),
    ):
        [leased] = await services.parts.requests.next(identity, 1, timedelta(seconds=60))
        await services.parts.requests.reply(leased.id, identity, leased.lease_token, reply)


@pytest.mark.parametrize("tool", sorted(tool.name for tool in ALL_TOOLS if tool.roles - {Role.CONNECTOR}))
async def test_words_of_others_stand_under_untrusted_in_the_answer_of(tool: str, switchboard: Served) -> None:
    services = switchboard.services
    message, action = await plant(services)
    given = await arguments(tool, message, action, services)
    if given is None:
        return
    sender = await services.database.run(sender_by_login(SENDER))
    caller = Principal(Role.SENDER, token_id=new_id(), sender_id=sender and sender.id)
    for principal in (AGENT, Principal(Role.DASHBOARD, token_id=new_id()), ADMIN, caller):
        if principal.role not in TOOLS_BY_NAME[tool].roles:
            continue
        async with client_of(services, principal) as client:
            result = await client.call_tool(tool, given)
        told = [json.loads(each.text) for each in result.content if each.text.startswith("{")]  # type: ignore[union-attr]
        for answer in (result.structured_content, *told):
            assert list(leaks(answer)) == []


async def test_what_is_told_of_planted_words_is_there(switchboard: Served) -> None:
    message, _ = await plant(switchboard.services)
    async with client_of(switchboard.services) as agent:
        for tool, given in (
            ("decisions.explain", {"message_id": str(message)}),
            ("actions.list", {}),
            ("queue.next", {"queue": "gateway"}),
        ):
            assert PLAIN in json.dumps((await agent.call_tool(tool, given)).structured_content)


async def test_errors_repeat_no_escape_sequences(switchboard: Served) -> None:
    async with client_of(switchboard.services) as agent:
        for tool, given in (("mail.search", {"query": f"label:{EVIL}", EVIL: 1}), ("queue.next", {"queue": EVIL})):
            result = await agent.call_tool(tool, given)
            assert result.is_error
            assert "control characters" not in str(list(leaks(result.structured_content, ".untrusted")))


@given(st.text())
def test_harmless_text_holds_nothing_that_acts(text: str) -> None:
    assert all(each in "\n\t" or unicodedata.category(each)[0] != "C" for each in harmless(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m b", "ared b"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x1bcb", "ab"),
        ("\u202eevil\u202c", "evil"),
        ("line\n\ttwo\r\x00", "line\n\ttwo"),
        ("ä中😀", "ä中😀"),
    ],
)
def test_escape_sequences_go_as_a_whole_and_text_stays(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_an_envelope_keeps_for_machines_what_was_checked() -> None:
    marked = marked_envelope(envelope(1, control={"idempotency_key": PLAIN, "policy_tier": "default"}))
    assert marked["source"] == {"channel": "webhook", "provider": "webhook", "endpoint_identity": ENDPOINT}
    assert marked["event"] == {"observed_at": "2026-11-15T08:00:00Z", "kind": "deploy.done"}
    assert marked["control"] == {"policy_tier": "default"}
    assert marked["untrusted"]["event"] == {"external_event_id": "event-1", "kind": "deploy.done"}
    assert set(marked["untrusted"]) == {"event", "control", "sender", "payload"}
