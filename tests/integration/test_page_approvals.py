"""The page of approvals: exactly what would happen, and answers that hold for what was shown."""

import base64
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from uuid import UUID

import httpx2
import orjson
import pytest

from postroom.core.actions.safety import Policy
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Role
from postroom.operations.actions.approvals import PAGE
from postroom.operations.people.form_tokens import masked_form_token
from postroom.store.actions import approvals
from postroom.store.actions.approvals import Approval
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.people.audit import Signature, list_audit
from postroom.store.people.tokens import create_token, mint
from postroom.store.rules import rules
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.mail import keep_mail
from support.page_forms import submit
from support.page_setup import ATTACKS, ask, browsing, new_mailbox, visitor
from support.store.mail_setup import MailSetup, Sample

LUNCH = Sample("m1", "Uta <uta@home.example>", "Lunch on Friday", "Shall we?")


@pytest.fixture
async def box(sqlite: Database) -> MailSetup:
    box = await new_mailbox(sqlite)
    await box.deliver(LUNCH)
    return box


@pytest.fixture
async def page(sqlite: Database, box: MailSetup) -> AsyncIterator[httpx2.AsyncClient]:
    async with browsing(sqlite) as client:
        yield client


async def state(box: MailSetup, id: UUID) -> str:
    return (await box.setup.database.run(approvals.show_approval(id))).state


async def audited(database: Database) -> list[tuple[str, str, str]]:
    entries = await database.run(list_audit(20))
    return [(each.action, each.actor, each.object_id) for each in entries if each.actor.startswith("person:")]


def chosen(*asked: Approval) -> list[str]:
    return [f"{each.id}:{each.action_hash}" for each in asked]


async def test_what_is_alike_is_rejected_together_and_the_agent_is_named(
    page: httpx2.AsyncClient, box: MailSetup
) -> None:
    database, clock = box.setup.database, box.setup.clock
    token = mint(Role.AGENT, name="assistant").token
    await database.run(create_token(token, Signature(new_id(), "cli:ada", "admin"), clock()))
    agents = Agents(ActionRequests(database, CATALOGUE, Policy(), clock))
    for number in range(3):
        message = await keep_mail(database, clock, number, sender="ida@shop.example")
        await agents.propose(message, "delete", {}, "old", Signature(new_id(), f"token:{token.id}", "agent"))
    text = unescape((await page.get("/approvals")).text)
    assert "Delete for good: 3 messages" in text.replace("</bdi>", "").replace('<bdi dir="auto">', "")
    assert text.count("the agent 'assistant'") == 1 + 3
    whole = text[text.index('action="/approvals/reject-several"') :]
    group = whole[: whole.index("</form>")]
    answers = re.findall(r'name="chosen" value="([^"]+)"', group)
    assert len(answers) == 3
    await submit(page, "/approvals/reject-several", {"chosen": answers})
    assert await database.run(approvals.count_waiting()) == 0


async def test_it_says_what_would_happen_to_whom_and_why_it_asks(page: httpx2.AsyncClient, box: MailSetup) -> None:
    reply = {"text": "Yes, Friday works.\nMara"}
    await ask(box, "auto_reply", reply, actor="model", why="asks for a time", reason="auto_reply cannot be undone")
    text = (await page.get("/approvals")).text
    for words in (
        *(
            "1 action needs your approval",
            "Answer",
            "uta@home.example",
            "auto_reply cannot be undone",
            "asks for a time",
        ),
        *("Yes, Friday works.", "None: mail that was sent stays sent", "Lunch on Friday", "expires"),
    ):
        assert words in text
    assert f'href="/mail/{box.ids["m1"]}"' in text


async def test_an_empty_page_says_what_would_be_asked(page: httpx2.AsyncClient) -> None:
    text = (await page.get("/approvals")).text
    assert "Nothing needs your approval." in text
    assert "No answers in the last 24 hours." in text


async def test_a_yes_queues_exactly_what_was_shown(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = await ask(box)
    answer = await submit(page, f"/approvals/{asked.id}/approve", {"shown": asked.action_hash}, back="/approvals")
    assert (answer.status_code, answer.headers["location"]) == (303, "/approvals")
    assert await state(box, asked.id) == "queued"
    assert await audited(box.setup.database) == [("approval.approve", "person:owner", str(asked.id))]
    text = (await page.get("/approvals")).text
    assert "Approved: it is being done." in text
    assert "approved by person:owner" in text


async def test_a_yes_to_something_else_than_was_shown_does_not_count(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = await ask(box)
    for shown, refusal in (("0f" * 32, "look at it"), (asked.action_hash[:8], "look at it"), ("", "Fill it in")):
        await submit(page, f"/approvals/{asked.id}/approve", {"shown": shown}, back="/approvals")
        assert refusal in (await page.get("/approvals")).text
    assert await state(box, asked.id) == "approved_pending"
    assert [
        each.type for each in await box.setup.database.run(jobs.list_jobs()) if each.type.startswith("action")
    ] == []


async def test_a_no_ends_it(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = await ask(box)
    await submit(page, f"/approvals/{asked.id}/reject", back="/approvals")
    assert await state(box, asked.id) == "rejected"
    text = (await page.get("/approvals")).text
    assert "Rejected: it is not done." in text
    assert text.count('action="/approvals/take-back"') == 2, "in the toast, and beside the answer"
    assert await audited(box.setup.database) == [("approval.reject", "person:owner", str(asked.id))]


async def test_an_answer_that_comes_too_late_is_said(page: httpx2.AsyncClient, box: MailSetup) -> None:
    lapsed = await ask(box, life=timedelta(seconds=-1))
    text = (await page.get("/approvals")).text
    assert "expired: nothing is done" in text
    assert '/approve"' not in text
    await submit(page, f"/approvals/{lapsed.id}/approve", {"shown": lapsed.action_hash}, back="/approvals")
    assert "Too late: it has expired and is not done." in (await page.get("/approvals")).text
    assert await state(box, lapsed.id) == "expired"
    asked = await ask(box)
    for _ in range(2):
        await submit(page, f"/approvals/{asked.id}/approve", {"shown": asked.action_hash}, back="/approvals")
    text = (await page.get("/approvals")).text
    assert "the action is not waiting for an answer any more: approved by person:owner; nothing was changed" in text


async def test_several_are_answered_at_once_and_a_stale_one_holds_up_none(
    page: httpx2.AsyncClient, box: MailSetup
) -> None:
    first, second, stale = await ask(box), await ask(box, "archive"), await ask(box, "star")
    await submit(page, f"/approvals/{stale.id}/reject", back="/approvals")
    ticked = {"chosen": chosen(first, stale, second)}
    await submit(page, "/approvals/approve-several", ticked, back="/approvals")
    text = (await page.get("/approvals")).text
    assert "2 approved: being done. 1 did not count" in text
    assert [await state(box, each.id) for each in (first, second, stale)] == ["queued", "queued", "rejected"]
    assert len({entry.id for entry in await box.setup.database.run(list_audit(9))}) == 3


async def test_several_are_rejected_at_once(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = [await ask(box), await ask(box, "archive")]
    await submit(page, "/approvals/reject-several", {"chosen": chosen(*asked)}, back="/approvals")
    assert [await state(box, each.id) for each in asked] == ["rejected", "rejected"]
    assert "Undo all 2" in (await page.get("/approvals")).text
    taken_back = {"rejected": [str(each.id) for each in asked]}
    await submit(page, "/approvals/take-back", taken_back, back="/approvals")
    assert "2 need your approval again." in (await page.get("/approvals")).text
    assert [await state(box, each.id) for each in asked] == ["approved_pending", "approved_pending"]


async def test_a_rejection_is_not_taken_back_after_ten_seconds(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked, owner = await ask(box), Signature(new_id(), "person:owner", "admin")
    await box.setup.database.run(approvals.reject_action(asked.id, owner, wall_clock() - approvals.GRACE))
    assert "/approvals/take-back" not in (await page.get("/approvals")).text
    for named in (str(asked.id), "nothing", "", str(UUID(int=3))):
        await submit(page, "/approvals/take-back", {"rejected": named}, back="/approvals")
        assert 'class="toast" data-mood="bad"' in (await page.get("/approvals")).text
    assert await state(box, asked.id) == "rejected"


@pytest.mark.parametrize("ticked", [[], ["nothing"], ["nothing:abc"], [f"{UUID(int=3)}:{'0' * 64}"]], ids=str)
async def test_ticks_that_make_no_sense_answer_nothing(
    page: httpx2.AsyncClient, box: MailSetup, ticked: list[str]
) -> None:
    asked = await ask(box)
    await submit(page, "/approvals/approve-several", {"chosen": ticked}, back="/approvals")
    assert 'class="toast"' in (await page.get("/approvals")).text
    assert await state(box, asked.id) == "approved_pending"


async def test_answering_several_asks_people_who_they_are_again(sqlite: Database, box: MailSetup) -> None:
    asked, stale = await ask(box), visitor("operator", is_fresh=False)
    async with browsing(sqlite, stale) as page:
        for act in ("approve-several", "reject-several"):
            fields = {"form_token": masked_form_token(stale), "chosen": chosen(asked)}
            answer = await submit(page, f"/approvals/{act}", fields, back="/approvals")
            assert answer.headers["location"] == "/sign-in/again?to=/approvals"
        assert await state(box, asked.id) == "approved_pending"


async def test_an_operator_answers_and_a_viewer_does_not(sqlite: Database, box: MailSetup) -> None:
    asked, viewer, operator = await ask(box), visitor("viewer"), visitor("operator")
    fields = {"shown": asked.action_hash, "chosen": chosen(asked)}
    async with browsing(sqlite, viewer) as page:
        text = (await page.get("/approvals")).text
        assert "Move to the trash" in text
        assert "<form class=" not in text.partition('id="board"')[2]
        for act in (*(f"{asked.id}/{name}" for name in ("approve", "reject", "always")), "approve-several"):
            answer = await submit(page, f"/approvals/{act}", {**fields, "form_token": masked_form_token(viewer)})
            assert answer.status_code == 403
    assert await state(box, asked.id) == "approved_pending"
    async with browsing(sqlite, operator) as page:
        fields = {"shown": asked.action_hash, "form_token": masked_form_token(operator)}
        await submit(page, f"/approvals/{asked.id}/approve", fields)
    assert await state(box, asked.id) == "queued"
    assert await audited(sqlite) == [("approval.approve", "person:ida", str(asked.id))]


async def test_always_for_this_sender_drafts_a_rule_that_is_off(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = await ask(box, "apply_label", {"label": "Travel"})
    await submit(page, f"/approvals/{asked.id}/always", back="/approvals")
    [rule] = await box.setup.database.run(rules.list_rules())
    assert (rule.draft.enabled, rule.draft.action_type, rule.draft.parameters) == (
        *(False, "apply_label"),
        {"label": "Travel"},
    )
    assert rule.draft.conditions == {"sender_email": "uta@home.example"}
    assert await state(box, asked.id) == "approved_pending"
    assert "which is off until you switch it on" in (await page.get("/approvals")).text
    await submit(page, f"/approvals/{asked.id}/always", back="/approvals")
    assert len(await box.setup.database.run(rules.list_rules())) == 1


async def test_what_a_rule_decided_is_not_made_a_rule_again(page: httpx2.AsyncClient, box: MailSetup) -> None:
    asked = await ask(box, actor="rule")
    assert "Always for this sender" not in (await page.get("/approvals")).text
    await submit(page, f"/approvals/{asked.id}/always", back="/approvals")
    assert await box.setup.database.run(rules.list_rules()) == []


@pytest.mark.parametrize("id", ["nothing", str(UUID(int=9))])
async def test_an_unknown_action_is_said(page: httpx2.AsyncClient, id: str) -> None:
    for act, fields in (("approve", {"shown": "0" * 64}), ("reject", {}), ("always", {})):
        await submit(page, f"/approvals/{id}/{act}", fields, back="/approvals")
        assert "there is no" in (await page.get("/approvals")).text


async def test_those_that_lapse_later_are_on_the_next_page(page: httpx2.AsyncClient, box: MailSetup) -> None:
    for number in range(PAGE + 2):
        await ask(box, "apply_label", {"label": f"L{number}"}, life=timedelta(hours=1 + number))
    first = (await page.get("/approvals")).text
    assert f"{PAGE + 2} actions need your approval" in first
    later = re.search(r'href="([^"]+)" rel="next"', first)
    assert later is not None
    second = (await page.get(later[1].replace("&amp;", "&"))).text
    assert [f"L{number}”" in second for number in (PAGE - 1, PAGE, PAGE + 1)] == [False, True, True]
    assert (await page.get("/approvals?after=7")).status_code == 400


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each[:12])
async def test_a_strangers_text_stays_text(sqlite: Database, attack: str) -> None:
    box = await new_mailbox(sqlite)
    await box.deliver(Sample("m1", "uta@home.example", attack, attack))
    await ask(box, "auto_reply", {"text": attack}, why=attack, reason=attack)
    await ask(box, "apply_label", {"label": attack[:200]})
    async with browsing(sqlite) as page:
        board = (await page.get("/approvals")).text.partition('id="board"')[2].partition("<p id=")[0]
    for raw in ("<script>", "<img", "onmouseover='", "<h1>", "<div hx-get", "\u202e"):
        assert raw not in board


async def test_a_forged_sentence_leads_to_no_other_form(page: httpx2.AsyncClient, box: MailSetup) -> None:
    for action, is_shown in ((str(box.account.id), True), ("../today", False)):
        forged = base64.urlsafe_b64encode(orjson.dumps(["Look here.", "good", action, True, ""])).decode()
        text = (await page.get("/approvals", headers={"Cookie": f"postroom-said={forged}"})).text
        assert (f"/mail/{action}/undo" in text) is is_shown
