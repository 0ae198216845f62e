"""A form that needs a fresh proof is carried out after the proof: once, by the same person, as if it were sent then."""

import base64
import html
import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx2
import orjson
import pyotp
import pytest

from postroom.operations.people.kept_forms import LARGEST_KEPT
from postroom.store.actions import approvals
from postroom.store.actions.approvals import Approval
from postroom.store.actions.protection import list_protected
from postroom.store.people.audit import list_audit
from postroom.store.people.people import change_role
from postroom.store.people.sessions import end_sessions
from postroom.store.people.tokens import list_tokens
from support.clocks import ManualClock
from support.page_setup import ask, new_mailbox
from support.signed_in import PASSWORD, Pages, Visiting, running_pages
from support.sqlite import new_sqlite
from support.store.fault_cases_registry import signed
from support.store.mail_setup import MailSetup, Sample

KEPT = re.compile(r'name="kept" value="([^"]+)"')
LATER_S = 11 * 60


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield running
    await database.close()


@pytest.fixture
async def box(pages: Pages) -> MailSetup:
    box = await new_mailbox(pages.database)
    await box.deliver(Sample("m1", "Uta <uta@home.example>", "Lunch on Friday", "Shall we?"))
    return box


async def state(pages: Pages, id: UUID) -> str:
    return (await pages.database.run(approvals.show_approval(id))).state


async def send(person: Visiting, path: str, **fields: str | list[str]) -> httpx2.Response:
    data = {"form_token": await person.form_token(), **fields}
    return await person.request("POST", path, {}, data=data)


async def sent_later(person: Visiting, path: str, **fields: str | list[str]) -> str:
    """Send a form when the proof is old; return it as the page to prove who one is keeps it."""
    person.pages.clock.forward(LATER_S)
    answer = await send(person, path, **fields)
    assert (answer.status_code, "This is hard to undo." in answer.text) == (200, True)
    found = KEPT.search(answer.text)
    assert found is not None
    return found[1]


async def prove(person: Visiting, kept: str, to: str = "/", **more: str) -> httpx2.Response:
    return await person.submit("/sign-in/again", **{"password": PASSWORD, "kept": kept, "to": to, **more})


def said(person: Visiting) -> str:
    return orjson.loads(base64.urlsafe_b64decode(person.cookies["postroom-said"]))[0]


def chosen(*asked: Approval) -> list[str]:
    return [f"{each.id}:{each.action_hash}" for each in asked]


async def test_three_approvals_are_given_after_the_proof_and_the_page_says_so(pages: Pages, box: MailSetup) -> None:
    mara = await pages.signed_in(role="operator")
    asked = [await ask(box, name) for name in ("trash", "archive", "star")]
    kept = await sent_later(mara, "/approvals/approve-several", chosen=chosen(*asked), back="/approvals")
    assert [await state(pages, each.id) for each in asked] == ["approved_pending"] * 3
    wrong = await prove(mara, kept, "/approvals", password="not the password at all")
    assert (wrong.status_code, KEPT.search(wrong.text) is not None) == (401, True)
    done = await prove(mara, kept, "/approvals")
    assert (done.status_code, done.headers["location"]) == (303, "/approvals")
    assert [await state(pages, each.id) for each in asked] == ["queued"] * 3
    assert "3 approved" in (await mara.get("/approvals")).text
    acts = [each.actor for each in await pages.database.run(list_audit(20)) if each.action == "approval.approve"]
    assert acts == ["person:mara"] * 3


async def test_an_approval_that_changed_meanwhile_does_not_count_and_that_is_said(pages: Pages, box: MailSetup) -> None:
    mara = await pages.signed_in(role="operator")
    first, second = await ask(box, "trash"), await ask(box, "archive")
    kept = await sent_later(mara, "/approvals/approve-several", chosen=chosen(first, second), back="/approvals")
    await pages.database.run(approvals.reject_action(second.id, signed(), box.setup.clock()))
    await prove(mara, kept, "/approvals")
    assert (await state(pages, first.id), await state(pages, second.id)) == ("queued", "rejected")
    assert "1 approved" in said(mara)
    assert "1 did not count" in said(mara)


async def test_a_kept_form_is_carried_out_once(pages: Pages) -> None:
    mara = await pages.signed_in()
    kept = await sent_later(mara, "/settings/tokens", role="agent", name="helper", back="/settings")
    shown = await prove(mara, kept)
    assert shown.status_code == 200
    assert "helper" in shown.text
    assert await prove(mara, kept, "/settings") is not None
    assert "sent before" in said(mara)
    assert len(await pages.database.run(list_tokens())) == 1


async def test_a_kept_form_of_ones_own_sign_in_is_carried_out_too(pages: Pages) -> None:
    mara, phone = await pages.signed_in(), pages.visitor()
    await phone.post("/sign-in", None, name="mara", password=PASSWORD)
    new = "another five unrelated words"
    kept = await sent_later(mara, "/settings/sign-in/password", password=new)
    done = await prove(mara, kept, "/settings/sign-in")
    assert done.headers["location"] == "/settings/sign-in?done=password"
    assert (await mara.get("/settings/sign-in")).status_code == 200
    assert (await phone.get("/settings/sign-in")).status_code == 303, "other sessions end"
    assert (await pages.visitor().post("/sign-in", None, name="mara", password=new)).status_code == 303


async def test_a_code_is_asked_for_before_a_kept_form_is_carried_out(pages: Pages) -> None:
    mara = await pages.signed_in()
    secret = pyotp.random_base32()
    app = pyotp.TOTP(secret)
    await mara.submit("/settings/sign-in/codes", secret=secret, code=app.at(pages.clock()))
    await send(mara, "/settings/protection", kind="sender", value="uta@home.example")
    kept = await sent_later(mara, "/settings/protection/remove", kind="sender", value="uta@home.example")
    assert (await prove(mara, kept)).status_code == 401
    assert len(await pages.database.run(list_protected())) == 1
    assert (await prove(mara, kept, code=app.at(pages.clock()))).status_code == 303
    assert await pages.database.run(list_protected()) == []


@pytest.mark.parametrize("change", ["too late", "altered", "of another session", "signed out"])
async def test_a_kept_form_that_cannot_be_carried_out_says_so(pages: Pages, change: str) -> None:
    mara = await pages.signed_in()
    kept = await sent_later(mara, "/settings/tokens", role="agent", name="helper", back="/settings")
    sender = mara
    match change:
        case "too late":
            pages.clock.forward(LATER_S)
        case "altered":
            kept = kept[:-8] + ("A" if kept[-8] != "A" else "B") + kept[-7:]
        case "of another session":
            sender = pages.visitor()
            await sender.post("/sign-in", None, name="mara", password=PASSWORD)
        case _:
            token = await mara.form_token()
            await pages.database.run(end_sessions("mara", None, signed(), pages.clock()))
            away = await mara.post(
                "/sign-in/again", None, form_token=token, kept=kept, password=PASSWORD, to="/settings"
            )
            assert away.headers["location"] == "/sign-in?to=/settings"
    if change != "signed out":
        answer = await prove(sender, kept, "/settings")
        told = said(sender)
        shown = html.unescape((await sender.get(answer.headers["location"])).text)
        assert ('name="name" maxlength="128" autocomplete="off" value="helper"' in shown) == (change == "too late")
        assert told in shown
        assert told.startswith("Nothing was done")
    assert await pages.database.run(list_tokens()) == []


async def test_a_role_that_was_taken_away_meanwhile_no_longer_allows_it(pages: Pages) -> None:
    mara = await pages.signed_in()
    await pages.signed_in("nils")
    kept = await sent_later(mara, "/settings/tokens", role="agent", name="helper", back="/settings")
    await pages.database.run(change_role("mara", "operator", signed(), pages.clock()))
    assert (await prove(mara, kept)).status_code == 403
    assert await pages.database.run(list_tokens()) == []


async def test_a_kept_form_needs_a_fresh_proof_and_the_token_of_the_page(pages: Pages) -> None:
    mara = await pages.signed_in()
    kept = await sent_later(mara, "/settings/tokens", role="agent", name="helper", back="/settings")
    asked = await mara.submit("/sign-in/again/carry-out", kept=kept, to="/settings")
    assert (asked.status_code, KEPT.search(asked.text) is not None) == (200, True)
    assert (await mara.post("/sign-in/again/carry-out", kept=kept, form_token="x")).status_code == 403
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert (await mara.post("/sign-in/again/carry-out", cross, kept=kept)).status_code == 403
    assert await pages.database.run(list_tokens()) == []


async def test_a_form_that_is_too_large_to_keep_says_that_it_must_be_sent_again(pages: Pages) -> None:
    mara = await pages.signed_in()
    for length, to in ((1_000, "/settings?refused="), (LARGEST_KEPT, "/settings")):
        refused = await send(mara, "/settings/protection", kind="sender", value="x" * length, back="/settings")
        assert refused.headers["location"].startswith(to)
        assert said(mara) == "This is longer than 500 characters. Shorten it."
    assert refused.headers["location"] == "/settings", "only small forms stay in memory to be filled in again"
    pages.clock.forward(LATER_S)
    answer = await send(mara, "/settings/tokens", role="agent", name="x" * LARGEST_KEPT, back="/settings")
    assert answer.headers["location"] == "/sign-in/again?to=/settings"
    assert said(mara) == "Nothing was done before you confirmed it's you. Send the form again."
