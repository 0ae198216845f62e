"""The pages of mail and of one message: what they show and do, over a real database."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import Alternative, ModelDecision
from postroom.core.short_ids import short_id
from postroom.interfaces.dashboard.display import shown
from postroom.operations.mail.mail_lines import PAGE
from postroom.operations.people.form_tokens import masked_form_token
from postroom.store.actions import actions, decisions
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from postroom.store.mail.mail import StoredMessage
from postroom.store.people.audit import list_audit
from postroom.store.rules.proposals import list_proposals
from postroom.system.wall_clock import wall_clock
from postroom.triage.decide.engine import Advice
from support.clocks import ManualClock
from support.mail import keep_mail, story_of
from support.page_forms import submit
from support.page_setup import (
    ARCHIVED,
    ATTACKS,
    browsing,
    carry_out_undo,
    claim_undos,
    end_undo,
    filled_mailbox,
    new_mailbox,
    visitor,
)
from support.store.mail_setup import MailSetup, Sample


@pytest.fixture
async def box(sqlite: Database) -> MailSetup:
    return await filled_mailbox(sqlite)


@pytest.fixture
async def page(sqlite: Database, box: MailSetup) -> AsyncIterator[httpx2.AsyncClient]:
    async with browsing(sqlite) as client:
        yield client


async def rows(page: httpx2.AsyncClient, address: str = "/mail") -> list[str]:
    """The subjects in the list at this address."""
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return re.findall(r'<bdi class="subject" dir="auto">(.*?)</bdi>', answer.text)


def row(text: str, subject: str) -> str:
    return next(each for each in text.split("<li id=") if f">{subject}</bdi>" in each).split("</li>")[0]


async def test_the_list_says_what_was_decided_why_and_what_became_of_it(page: httpx2.AsyncClient) -> None:
    text = (await page.get("/mail")).text
    assert await rows(page) == ["Build 2214 failed on main", "Lunch", "Bill", "Parcel"]
    parcel = row(text, "Parcel")
    for words in ("Ida Shop", "archive it", "rule “shops”", "done", "tier: everything else", "Undo"):
        assert words in parcel
    assert "needs approval" in row(text, "Bill")
    assert "kept" in row(text, "Lunch")
    assert "P1" in row(text, "Build 2214 failed on main")
    assert 'value="1" hidden' in text, "the number that waits"


async def test_each_filter_stands_in_the_address(page: httpx2.AsyncClient) -> None:
    assert await rows(page, "/mail?q=parcel") == ["Parcel"]
    assert await rows(page, "/mail?q=parcel&state=asking") == []
    assert await rows(page, "/mail?state=asking") == ["Bill"]
    assert await rows(page, "/mail?state=done") == ["Parcel"]
    assert await rows(page, "/mail?by=rule") == ["Bill", "Parcel"]
    assert await rows(page, "/mail?by=model") == []
    assert await rows(page, "/mail?tier=P1") == ["Build 2214 failed on main"]
    assert await rows(page, "/mail?kind=event") == ["Build 2214 failed on main"]
    assert await rows(page, "/mail?kind=mail") == ["Lunch", "Bill", "Parcel"]
    assert await rows(page, "/mail?tier=default&account=mara@lindqvist.example&since=24h") == [
        "Lunch",
        "Bill",
        "Parcel",
    ]
    assert await rows(page, "/mail?since=2020-01-01&by=rule") == ["Bill", "Parcel"]
    assert await rows(page, "/mail?since=2999-01-01") == []
    assert await rows(page, "/mail?category=travel") == []
    assert '<option value="travel" selected>Travel</option>' in (await page.get("/mail?category=travel")).text
    assert "Nothing fits." in (await page.get("/mail?by=model")).text


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/mail?tier=P9", "choose one of"),
        ("/mail?category=gossip", "use finance, health"),
        ("/mail?kind=event&category=finance", "remove one of these filters"),
        ("/mail?state=lost", "choose one of"),
        ("/mail?by=nobody", "choose one of"),
        ("/mail?since=yesterday", "is no time"),
        ("/mail?before=7", "not a valid cursor"),
        ("/mail?kind=event&by=rule", "remove one of these filters"),
        ("/mail?q=offer&state=hidden", "hidden mail is not searched"),
        ("/mail?q=%22", "such as label:Receipts"),
        ("/mail?q=" + "w" * 600, "shorten it"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused_in_words(
    page: httpx2.AsyncClient, address: str, words: str
) -> None:
    answer = await page.get(address)
    assert answer.status_code == 400
    assert words in answer.text


class Archives:
    """A model that archives everything."""

    async def advise(self, message: StoredMessage) -> Advice:
        return Advice(ModelDecision("archive", {}, 0.97, "it looks unimportant"), "a model", "1")


async def hidden_mailbox(box: MailSetup) -> None:
    """Two messages that the model has archived, beside what the rules did."""
    box.adviser = Archives()
    for number in (1, 2):
        await box.acted(Sample(f"h{number}", f"s{number}@strange.example", f"Offer {number}"), ARCHIVED)


async def test_what_the_model_has_hidden_is_listed_and_brought_back_by_one_button(
    page: httpx2.AsyncClient, box: MailSetup
) -> None:
    assert "Hidden today" not in (await page.get("/")).text
    assert await rows(page, "/mail?state=hidden&since=today") == []
    await hidden_mailbox(box)
    overview = (await page.get("/")).text
    assert "2 messages, by the model or an agent, without your approval" in overview
    assert "Offer 2" in overview
    for address in ("/", "/mail?state=hidden", "/mail?state=hidden&since=today"):
        assert "Undo all 2" in (await page.get(address)).text
    assert await rows(page, "/mail?state=hidden&since=today") == ["Offer 2", "Offer 1"]
    assert await rows(page, "/mail?state=hidden&since=2999-01-01") == []
    answer = await submit(page, "/mail/bring-back", {"since": "today"}, back="/mail")
    assert answer.status_code == 303
    assert "Bringing back 2 messages." in (await page.get("/mail")).text
    assert ("actions.undo", "person:owner") in await audited(box.setup.database)
    undos = await claim_undos(box)
    assert len(undos) == 2
    for job in undos:
        await end_undo(box, job)
    assert await rows(page, "/mail?state=hidden&since=today") == []
    assert "Hidden today" not in (await page.get("/")).text


async def test_an_unknown_account_or_message_is_not_found(page: httpx2.AsyncClient) -> None:
    for address in ("/mail?account=nobody@example.org", "/mail/00000000-0000-0000-0000-000000000000", "/mail/nothing"):
        assert (await page.get(address)).status_code == 404


async def test_older_mail_is_on_the_next_page(sqlite: Database) -> None:
    clock = ManualClock(wall_clock())
    for number in range(PAGE + 3):
        await keep_mail(sqlite, clock, number, subject=f"Number {number}")
        clock.forward(1)
    async with browsing(sqlite) as page:
        first = (await page.get("/mail")).text
        older = re.search(r'href="([^"]+)" rel="next"', first)
        assert older is not None
        assert len(await rows(page)) == PAGE
        assert await rows(page, older[1].replace("&amp;", "&")) == ["Number 2", "Number 1", "Number 0"]


async def test_a_message_has_its_facts_reason_actions_and_story(page: httpx2.AsyncClient, box: MailSetup) -> None:
    text = (await page.get(f"/mail/{box.ids['done']}")).text
    for words in ("ida@shop.example", "archive it", "rule “shops”", "Your parcel comes today.", "It was archived."):
        assert words in text
    assert "Wrong: undo and learn" in text
    assert f'href="/rules/new?message={box.ids["done"]}" data-panel="/rules/about/' in text
    asked = (await page.get(f"/mail/{box.ids['asked']}")).text
    assert "the rule asks for approval" in asked
    assert "Approve" in asked
    kept = (await page.get(f"/mail/{box.ids['kept']}")).text
    assert "Nothing was done with it." in kept


async def test_any_id_that_the_command_accepts_opens_a_message(page: httpx2.AsyncClient, box: MailSetup) -> None:
    id = box.ids["done"]
    [action] = await box.setup.database.run(actions.list_actions(1, message_id=id))
    for name in (str(id), short_id(id), short_id(action.id), str(action.id), str(action.decision_id), "done"):
        answer = await page.get(f"/mail/{name}")
        assert answer.status_code == 200, name
        assert ">Parcel</bdi>" in answer.text


async def test_an_event_has_a_page_of_its_own(page: httpx2.AsyncClient) -> None:
    found = re.search(r'<li id="m-([0-9a-f-]+)"', (await page.get("/mail?kind=event")).text)
    assert found is not None
    address = f"/mail/{found[1]}"
    text = (await page.get(address)).text
    for words in ("deploy-watch", "deploy.failed", "Build 2214 failed on main", "waiting"):
        assert words in text


async def audited(database: Database) -> list[tuple[str, str]]:
    return [
        (each.action, each.actor) for each in await database.run(list_audit(20)) if each.actor.startswith("person:")
    ]


async def test_undo_is_queued_and_audited_with_the_person(page: httpx2.AsyncClient, box: MailSetup) -> None:
    id = box.ids["done"]
    [action] = await box.setup.database.run(actions.list_actions(1, message_id=id))
    answer = await submit(page, f"/mail/{id}/undo", {"action": str(action.id)}, back=f"/mail/{id}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/mail/{id}")
    assert "undo.action" in [each.type for each in await box.setup.database.run(jobs.list_jobs())]
    assert await audited(box.setup.database) == [("action.undo", "person:owner")]
    again = await page.get(f"/mail/{id}")
    assert "It is being undone." in again.text


async def test_what_was_undone_is_never_called_done(page: httpx2.AsyncClient, box: MailSetup) -> None:
    id = box.ids["done"]
    [action] = await box.setup.database.run(actions.list_actions(1, message_id=id))
    await submit(page, f"/mail/{id}/undo", {"action": str(action.id)})
    await carry_out_undo(box, action.id)
    parcel = row((await page.get("/mail")).text, "Parcel")
    assert "undone" in parcel
    assert "done</span>" not in parcel.replace("undone</span>", "")
    assert await rows(page, "/mail?state=undone") == ["Parcel"]
    assert await rows(page, "/mail?state=done") == []
    text = (await page.get(f"/mail/{id}")).text
    assert "Wrong: undo and learn" not in text
    assert '<span class="void"><bdi dir="auto">It was archived.</bdi>' in text
    assert "That was undone" in text


@pytest.mark.parametrize(
    ("fields", "action_type"),
    [
        ({"action": "archive"}, "archive"),
        ({"action": "star"}, "star"),
        ({"action": "apply_label", "label": "Receipts"}, "apply_label"),
        ({"action": "snooze 1d"}, "snooze"),
        ({"action": "trash"}, "trash"),
    ],
)
async def test_another_action_is_requested_in_the_persons_name(
    page: httpx2.AsyncClient, box: MailSetup, fields: dict[str, str], action_type: str
) -> None:
    id = box.ids["kept"]
    assert (await submit(page, f"/mail/{id}/do", fields)).status_code == 303
    [action] = await box.setup.database.run(actions.list_actions(1, message_id=id))
    assert (action.action_type, action.actor, action.asked_by) == (action_type, "user", "person:owner")
    assert action.state == "queued"
    assert await audited(box.setup.database) == [("action.ask", "person:owner")]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Choose what to do"),
        ({"action": "apply_label"}, "Name the label"),
        ({"action": "explode"}, "explode"),
        ({"action": "archive all"}, "archive takes no"),
    ],
)
async def test_an_action_that_makes_no_sense_is_said_and_not_done(
    page: httpx2.AsyncClient, box: MailSetup, fields: dict[str, str], words: str
) -> None:
    id = box.ids["kept"]
    await submit(page, f"/mail/{id}/do", fields, back=f"/mail/{id}")
    assert words in (await page.get(f"/mail/{id}")).text
    assert await box.setup.database.run(actions.list_actions(1, message_id=id)) == []


async def test_wrong_undoes_and_proposes_a_rule(page: httpx2.AsyncClient, box: MailSetup) -> None:
    id = box.ids["done"]
    [action] = await box.setup.database.run(actions.list_actions(1, message_id=id))
    await submit(page, f"/mail/{id}/wrong", {"action": str(action.id)}, back=f"/mail/{id}")
    text = (await page.get(f"/mail/{id}")).text
    assert "No archive for mail from ida@shop.example" in text
    assert "called it wrong" in text
    [proposed] = await box.setup.database.run(list_proposals("open", 9))
    assert proposed.draft.name == "No archive for mail from ida@shop.example"
    expected = [("action.undo", "person:owner"), ("decision.wrong", "person:owner")]
    assert await audited(box.setup.database) == expected


async def test_deciding_again_is_queued(page: httpx2.AsyncClient, box: MailSetup) -> None:
    id = box.ids["kept"]
    await submit(page, f"/mail/{id}/reclassify", back=f"/mail/{id}")
    assert await audited(box.setup.database) == [("messages.reclassify", "person:owner")]
    await box.work()
    assert await box.setup.database.run(decisions.latest_generation(id)) == 2


async def test_a_viewer_sees_everything_and_may_do_nothing(sqlite: Database, box: MailSetup) -> None:
    id, viewer = box.ids["done"], visitor("viewer")
    async with browsing(sqlite, viewer) as page:
        for address in ("/mail", f"/mail/{id}"):
            text = (await page.get(address)).text
            assert "Parcel" in text
            assert '<form class="act"' not in text
            for offered in ("data-acts", "data-panel", "Pause or resume", "Make a rule"):
                assert offered not in text
        for act in ("do", "undo", "wrong", "reclassify"):
            fields = {"form_token": masked_form_token(viewer), "action": "archive"}
            assert (await submit(page, f"/mail/{id}/{act}", fields)).status_code == 403
    assert await audited(sqlite) == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda each: each[:12])
async def test_a_strangers_text_stays_text(sqlite: Database, attack: str) -> None:
    box = await new_mailbox(sqlite)
    await box.rules(RuleDraft(attack[:200], {"sender_domain": "shop.example"}, "archive"))
    files: tuple[dict[str, Any], ...] = ({"filename": attack},)
    name = attack[:100].replace('"', "'")
    sender = f'"{name}" <ida@shop.example>'
    await box.acted(Sample("bad", sender, attack, attack, headers={"Cc": attack}, files=files), ARCHIVED)
    async with browsing(sqlite) as page:
        for address in ("/mail", f"/mail/{box.ids['bad']}"):
            board = (await page.get(address)).text.partition('id="board"')[2].partition("<p id=")[0]
            for raw in ("<script>", "<img", "onmouseover='", "<h1>", "<div hx-get", "\u202e"):
                assert raw not in board
            assert "W" * 1_000 not in board.replace(shown("W" * 3_000, 2_000), "")


async def test_what_else_the_model_weighed_stands_beside_its_decision(sqlite: Database) -> None:
    box = await new_mailbox(sqlite)

    class Weighing:
        async def advise(self, message: StoredMessage) -> Advice:
            others = (Alternative("apply_label", "Travel", 0.2), Alternative("none", None, 0.06))
            return Advice(ModelDecision("archive", {}, 0.74, "a notice", alternatives=others), "stub", "1-a")

    box.adviser = Weighing()
    await box.decide(Sample("m1"))
    async with browsing(sqlite) as page:
        text = (await page.get(f"/mail/{box.ids['m1']}")).text
    odds = text.split('<ul class="odds"')[1].split("</ul>")[0]
    assert re.findall(r"<bdi>(.*?)</bdi>", odds) == ["archive it", "label it “Travel”", "leave it as it is"]
    assert re.findall(r'class="num">(.*?)<', odds) == ["0.74", "0.20", "0.06"]
    story = " ".join(each.text for each in await story_of(sqlite, str(box.ids["m1"])))
    assert "(74% sure). It also weighed: label it “Travel” (20%); leave it as it is (6%). Its reason: a notice" in story


async def test_a_message_is_opened_beside_the_list_by_its_address(page: httpx2.AsyncClient, box: MailSetup) -> None:
    listed = (await page.get("/mail?state=done")).text
    address = f"/mail?open={box.ids['done']}&amp;state=done#m-{box.ids['done']}"
    assert f'href="{address}"' in listed
    assert 'id="opened"' not in listed
    shown = (await page.get(f"/mail?open={box.ids['done']}")).text
    assert await rows(page, f"/mail?open={box.ids['done']}") == ["Build 2214 failed on main", "Lunch", "Bill", "Parcel"]
    assert f'<li id="m-{box.ids["done"]}" data-row class="on" data-chosen aria-current="true">' in shown
    opened = shown.split('id="opened"')[1]
    assert "Your parcel comes today." in opened
    assert "From arrival to now" in opened
    assert f'name="back" value="/mail?open={box.ids["done"]}"' in opened, "forms come back to where they are"
    event = re.search(
        r'id="m-([0-9a-f-]+)"[^>]*>(?:(?!</li>).)*Build 2214', listed_all := (await page.get("/mail")).text, re.S
    )
    assert event is not None, listed_all
    assert "deploy.failed" in (await page.get(f"/mail?open={event[1]}")).text.split('id="opened"')[1]
    for wrong in ("nonsense", "01a1e979-b98a-7b92-a62b-8e940ef8f082"):
        answer = await page.get(f"/mail?open={wrong}")
        assert answer.status_code == 200
        assert "It cannot be shown." in answer.text
