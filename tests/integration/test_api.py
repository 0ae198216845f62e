"""The JSON API: what is read and done over real HTTP, by programs and by people."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from postroom.core.mail.categories import CATEGORIES
from postroom.interfaces.cursors import sealed
from postroom.interfaces.http.api.operation import PREFIX
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.store.actions import pauses
from postroom.store.actions.mailbox_writers import register_writer
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import list_audit
from postroom.store.people.tokens import list_tokens
from postroom.store.rules.rules import enabled_rules
from support.api import TENANT_SENDER, RunningApi, TokenCaller, running_api
from support.clocks import ManualClock
from support.page_setup import ATTACKS
from support.patience import PATIENCE_S
from support.scale import SOAK
from support.signed_in import running_pages
from support.sqlite import new_sqlite
from support.store.mail_setup import Sample

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "api.md"
RULE = {"name": "news", "if": {"sender_domain": "news.example"}, "then": "archive"}


@pytest.fixture(params=["sqlite", "postgres"] if SOAK else ["sqlite"])
def url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("emptied_postgres_url") if request.param == "postgres" else None


@pytest.fixture
async def database(url: str | None, tmp_path: Path, migrated_sqlite: Path) -> AsyncIterator[Database]:
    opened = await (new_sqlite(tmp_path, migrated_sqlite) if url is None else open_database(tmp_path, url))
    yield opened
    await opened.close()


@pytest.fixture
async def api(database: Database, tmp_path: Path) -> AsyncIterator[RunningApi]:
    async with running_api(database, tmp_path) as running:
        yield running


async def audited(database: Database) -> list[tuple[str, str, str]]:
    return [(each.action, each.actor.partition(":")[0], each.role) for each in await database.run(list_audit(5))]


async def test_every_list_is_read(api: RunningApi) -> None:
    admin = await api.token("dashboard")
    for operation in OPERATIONS:
        if operation.is_safe and "{" not in operation.path and "dashboard" in operation.access.tokens:
            given = {"stage": "failed"} if operation.path == "/jobs/selection" else {}
            answer = await admin.get(operation.path, **given)
            assert answer.status_code == 200, (operation.path, answer.text)


async def test_a_list_goes_on_where_its_page_ended(api: RunningApi) -> None:
    admin = await api.token()
    for path, items in (("/mail", "lines"), ("/filters", "lines"), ("/rules", "lines"), ("/audit", "lines"),
                        ("/jobs", "lines"), ("/approvals", "lines")):  # fmt: skip
        whole = (await admin.get(path)).json()[items]
        pages, cursor = list[Any](), None
        while True:
            answer = (await admin.get(path, limit=1, **({} if cursor is None else {"next": cursor}))).json()
            pages += answer[items]
            if (cursor := answer["next"]) is None:
                break
        known = [each for each in whole if each in pages]
        assert len(whole) > 1, path
        assert known == whole, path


async def test_a_cursor_that_was_changed_or_is_of_another_list_is_refused(api: RunningApi) -> None:
    admin = await api.token()
    right = (await admin.get("/mail", limit=1)).json()["next"]
    forged = [sealed("mail", key) for key in ("nonsense", "2026-13-01/x", f"9999-99-99T00:00:00Z/{uuid4()}")]
    cut = [right[:-2], right[1:], right + "AAAA", "", "%00", "ä", "x" * 1_400]
    for wrong in (*cut, *forged, sealed("audit", 7), sealed("jobs", "1")):
        answer = await admin.get("/mail", next=wrong)
        assert answer.status_code == 400, (wrong, answer.text)
        assert answer.json()["error"].keys() == {"code", "message", "field", "remedy"}


WRONG_BODIES: tuple[tuple[bytes, int, str | None], ...] = (
    (b"{", 400, "body"),
    (b"[]", 400, "body"),
    (b'{"rule": {"name": "\\u0000"}}', 400, "body"),
    (b'{"rule": {"name": "\\ud800"}}', 400, "body"),
    (b'{"rule": {"a": 123456789012345678901234567890}}', 400, "body"),
    (b'{"rule": {"name": "deep", "then": "archive", "if": ' + b'{"not":' * 900 + b"1" + b"}" * 902, 400, None),
    (b'{"rule": 1}', 400, "rule"),
    (b'{"rules": {}}', 400, "rules"),
    (b"\xff\xfe", 400, "body"),
    (b" " * (1024 * 1024 + 1), 413, "body"),
)


async def test_a_body_that_makes_no_sense_is_refused(api: RunningApi) -> None:
    admin, json = await api.token(), {"Content-Type": "application/json"}
    for body, status, field in WRONG_BODIES:
        answer = await admin.call("POST", "/rules", None, json, content=body)
        assert answer.status_code == status, (body[:80], answer.text)
        assert field is None or answer.json()["error"]["field"] == field
    answer = await admin.call("POST", "/rules", None, {"Content-Type": "text/plain"}, content=b"{}")
    assert answer.status_code == 415


WRONG_QUERIES = (
    "limit=0",
    "limit=201",
    "limit=x",
    "limit=99999999999999999999",
    "limit=1&limit=2",
    "nonsense=1",
    "q=%00",
    "since=yesterday",
    "kind=fish",
    "tier=fish",
    "state=done&kind=event",
    "account=nobody@x.example",
    "next=x",
    "&".join(f"a{each}=1" for each in range(100)),
)


async def test_a_filter_that_makes_no_sense_is_refused(api: RunningApi) -> None:
    admin = await api.token()
    for query in WRONG_QUERIES:
        answer = await admin.call("GET", f"/mail?{query}")
        assert answer.status_code in (400, 404), (query, answer.text)
        assert answer.json()["error"].keys() == {"code", "message", "field", "remedy"}


async def test_a_time_without_an_offset_is_refused_by_the_name_of_its_argument(api: RunningApi) -> None:
    mara = await api.person()
    answer = await mara.call("POST", "/connectors/act", {"account": "x", "since": "2026-11-01T10:00:00"})
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (400, "since")
    assert "has no time zone" in error["message"]


async def test_a_time_that_does_not_exist_in_utc_is_refused_by_the_name_of_its_argument(api: RunningApi) -> None:
    mara = await api.person()
    for since in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"):
        answer = await mara.call("POST", "/connectors/act", {"account": "mara@lindqvist.example", "since": since})
        error = answer.json()["error"]
        assert (answer.status_code, error["field"], error["message"]) == (400, "since", "is out of range"), since


async def test_mail_is_listed_by_category(api: RunningApi) -> None:
    admin = await api.token()
    assert (await admin.call("GET", "/mail?category=gossip")).json()["error"]["field"] == "category"
    everything = (await admin.call("GET", "/mail?kind=mail")).json()["lines"]
    found = [(await admin.call("GET", f"/mail?category={name}")).json()["lines"] for name in CATEGORIES]
    ids = {line["id"] for lines in found for line in lines}
    assert ids <= {line["id"] for line in everything}
    assert (await admin.call("GET", "/mail?category=travel")).json()["lines"] == []


async def test_what_is_not_there_and_what_cannot_be_done_have_the_same_form(api: RunningApi) -> None:
    admin = await api.token()
    for method, path, status in (
        ("GET", "/nonsense", 404),
        ("DELETE", "/overview", 405),
        ("GET", f"/jobs/{uuid4()}", 404),
    ):
        answer = await admin.call(method, path)
        assert answer.status_code == status
        assert answer.json()["error"].keys() == {"code", "message", "field", "remedy"}


async def test_a_rule_is_written_changed_and_removed(api: RunningApi) -> None:
    admin = await api.token()
    assert (await admin.call("POST", "/rules/check", {"rule": RULE})).json()["matched"] == 0
    made = (await admin.call("POST", "/rules", {"rule": RULE})).json()
    id, version = made["rule"]["id"], made["rule"]["version"]
    assert made["rule"]["untrusted"]["document"] == RULE
    assert (await audited(api.pages.database))[0] == ("rules.add", "token", "admin")
    assert (await admin.call("POST", "/rules", {"rule": RULE})).status_code == 409
    edited = {"rule": {**RULE, "then": "star"}, "version": version}
    assert (await admin.call("PUT", f"/rules/{id}", edited)).json()["untrusted"]["does"] == "star it"
    assert (await admin.call("PUT", f"/rules/{id}", edited)).status_code == 409
    assert (await admin.call("POST", f"/rules/{id}/disable", {"reason": "too many"})).json()["rule"]["enabled"] is False
    assert (await admin.call("DELETE", f"/rules/{id}")).status_code == 200
    assert (await admin.get(f"/rules/{id}")).status_code == 404


async def test_a_request_with_a_key_is_done_once_however_often_it_is_sent(api: RunningApi) -> None:
    admin, other = await api.token(), await api.token()
    [event] = (await admin.get("/queues/gateway/waiting")).json()["lines"]
    key, body = {"Idempotency-Key": "again"}, {"messages": [event["message_id"]]}
    assert (await admin.call("POST", "/queues/gateway/dismiss", body)).json() == {"dismissed": 1}
    api.pages.clock.forward(1)
    answers = await asyncio.gather(*(admin.call("POST", "/queues/gateway/replay", body, key) for _ in range(6)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409, 409, 409]
    refused = next(each for each in answers if each.status_code == 409).json()["error"]
    assert refused["code"] == "repeated"
    assert "queue.replay" in refused["message"]
    assert (await other.call("POST", "/queues/gateway/replay", body, key)).status_code == 200
    assert len((await admin.get("/queues/gateway/waiting")).json()["lines"]) == 2


async def test_a_person_answers_an_approval_and_acts_on_mail_with_their_session(api: RunningApi) -> None:
    mara, asked = await api.person(), api.asked
    path = f"/approvals/{asked.id}/approve"
    assert (await mara.call("POST", path, {"shown": "another"})).status_code == 409
    approved = await mara.call("POST", path, {"shown": asked.action_hash})
    assert approved.json()["state"] == "queued"
    assert ("approval.approve", "person", "admin") in await audited(api.pages.database)
    assert (await mara.call("POST", path, {"shown": asked.action_hash})).status_code == 409
    message, key = api.box.ids["kept"], {"Idempotency-Key": "star-it"}
    starred = await mara.call("POST", f"/mail/{message}/actions", {"actions": ["star"]}, key)
    assert starred.status_code == 202
    assert starred.json()["state"] == "queued"
    assert (await mara.call("POST", f"/mail/{message}/actions", {"actions": ["star"]}, key)).status_code == 409


async def test_a_message_is_shown_with_its_story_and_undone_by_a_program(api: RunningApi) -> None:
    program = await api.token("dashboard")
    shown = (await program.get(f"/mail/{api.box.ids['done']}")).json()["message"]
    assert shown["kind"] == "mail"
    assert shown["untrusted"]["subject"] == "Parcel"
    assert "Your parcel comes today." in shown["untrusted"]["text"]
    assert ("mail.read", "token", "dashboard") in await audited(api.pages.database)
    for _ in range(2):
        undone = await program.call("POST", f"/actions/{shown['actions'][0]['id']}/undo")
        assert undone.status_code == 202
    waiting = [each["type"] for each in (await program.get("/jobs", stage="ready")).json()["lines"]]
    assert len(waiting) == len(set(waiting)), "undone once"


async def test_words_of_strangers_stand_under_untrusted_and_act_on_nobody(api: RunningApi) -> None:
    evil = "kanarie \x1b[31m\u202e" + ATTACKS[0]
    await api.box.decide(Sample("evil", '"kanarie" <kanarie@evil.example>', evil, evil, headers={"List-Id": "kanarie"}))
    admin = await api.token()
    for path in ("/mail", "/mail?q=kanarie", f"/mail/{api.box.ids['evil']}", "/overview", "/jobs", "/audit"):
        answer = await admin.call("GET", path)
        assert answer.status_code == 200
        assert list(_leaks(answer.json())) == [], path
    assert "kanarie" in (await admin.get("/mail")).text


def _leaks(answer: object, path: str = "") -> list[str]:
    match answer:
        case str():
            is_leak = "kanarie" in answer and ".untrusted" not in path
            acts = any(each in answer for each in ("\x1b", "\u202e"))
            return [f"{path}: {answer!r}"] if is_leak or acts else []
        case dict():
            return [leak for name, each in answer.items() for leak in _leaks(each, f"{path}.{name}")]
        case list():
            return [leak for each in answer for leak in _leaks(each, path)]
        case _:
            return []


async def test_what_a_person_sees_by_session_is_not_cached_and_changes_need_their_page(api: RunningApi) -> None:
    mara = await api.person()
    answer = await mara.call("GET", "/session")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() | {"form_token": ""} == {
        "kind": "person", "name": "person:mara", "role": "admin", "is_fresh": True, "form_token": "",
    }  # fmt: skip
    assert (await mara.call("POST", "/pause", {}, {"X-Form-Token": "x" * 43})).json()["error"][
        "code"
    ] == "bad_form_token"
    assert (await mara.call("POST", "/pause", {}, {"Sec-Fetch-Site": "cross-site"})).json()["error"]["code"] == (
        "foreign_origin"
    )
    assert (await mara.call("POST", "/pause", {"reason": "holiday"})).status_code == 200
    assert (await mara.call("GET", "/overview")).json()["control"]["paused_because"] == "holiday"
    assert (await mara.call("POST", "/resume", {})).status_code == 200


async def test_a_rule_of_a_token_that_sends_waits_for_a_person(api: RunningApi) -> None:
    forward = {**RULE, "name": "to eve", "then": "forward", "parameters": {"to": "eve@example.net"}}
    admin, mara = await api.token(), await api.person()
    added = (await admin.call("POST", "/rules", {"rule": forward})).json()["rule"]
    assert added["awaits_confirmation"] is True
    assert "to eve" not in [each.name for each in await api.pages.database.run(enabled_rules())]
    confirm, shown = f"/rules/{added['id']}/confirm", {"shown": added["content_hash"]}
    assert (await admin.call("POST", confirm, shown)).status_code == 403
    assert (await admin.call("POST", f"/rules/{added['id']}/enable", {})).json()["rule"]["awaits_confirmation"]
    assert (await mara.call("POST", confirm, {"shown": "0" * 64})).status_code == 409
    assert (await mara.call("POST", confirm, shown)).json()["rule"]["awaits_confirmation"] is False
    assert "to eve" in [each.name for each in await api.pages.database.run(enabled_rules())]
    changed = {"rule": {**forward, "parameters": {"to": "mallory@example.net"}}, "version": 2}
    edited = (await admin.call("PUT", f"/rules/{added['id']}", changed)).json()["rule"]
    assert edited["awaits_confirmation"] is True


async def test_a_pause_says_how_many_requests_had_left_before_it(api: RunningApi) -> None:
    database, process, left = api.pages.database, new_id(), {str(api.box.account.id): 2}
    answering: list[asyncio.Task[int]] = []

    def answer(_message: str) -> None:
        """Stop, and say what had left: what every process does that may change mailboxes."""
        answering.append(asyncio.ensure_future(database.run(register_writer(process, "host", left, None, clock()))))

    clock = api.pages.clock
    await database.run(register_writer(process, "host", left, None, clock()))
    with contextlib.closing(database.subscribe(pauses.CHANNEL, answer)):
        paused = (await (await api.token("dashboard")).call("POST", "/pause", {})).json()
    await asyncio.gather(*answering)
    assert (paused["on_wire"], paused["silent_processes"]) == (2, 0)
    assert "2 requests had left before and may still take effect" in paused["done"]


async def test_an_admin_lets_somebody_in_and_out_again(api: RunningApi) -> None:
    mara = await api.person()
    made = await mara.call("POST", "/settings/people", {"name": "nils", "role": "viewer"})
    assert made.status_code == 201
    assert "/sign-in/once#" in made.json()["link"]
    assert (await mara.call("POST", "/settings/people/nils/role", {"role": "operator"})).json() == {"changed": True}
    people = (await mara.call("GET", "/settings/people")).json()["lines"]
    assert {each["name"]: each["role"] for each in people} == {"mara": "admin", "nils": "operator"}
    assert (await mara.call("DELETE", "/settings/people/nils")).status_code == 200
    assert (await mara.call("DELETE", "/settings/people/nils")).status_code == 404
    made = await mara.call("POST", "/settings/tokens", {"role": "dashboard", "name": "a screen"})
    program = TokenCaller(api.pages, made.json()["text"])
    assert (await program.get("/overview")).status_code == 200
    revoked = (await mara.call("POST", f"/settings/tokens/{made.json()['token']['id']}/revoke")).json()
    assert revoked == {"revoked": True, "withdrawn": 0, "canceled": 0, "stopping": 0}
    api.pages.clock.forward(2)
    assert (await program.get("/overview")).json()["error"]["code"] == "revoked"


async def test_tokens_of_senders_are_made_on_the_command_line_alone(api: RunningApi) -> None:
    mara = await api.person()
    answer = await mara.call("POST", "/settings/tokens", {"role": "sender", "sender": TENANT_SENDER})
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (400, "role")
    assert "postroom token create --role sender" in error["remedy"]
    assert not await api.pages.database.run(list_tokens())


async def test_without_sign_in_everybody_is_the_owner_and_other_sites_still_change_nothing(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_pages(database, clock, tmp_path, sign_in=False) as pages:
        anybody, path = pages.visitor(), f"{PREFIX}/pause"
        who = (await anybody.request("GET", f"{PREFIX}/session", {})).json()
        assert (who["name"], who["role"]) == ("person:owner", "admin")
        proof = {"X-Form-Token": who["form_token"]}
        assert (await anybody.request("POST", path, {})).status_code == 403
        assert (await anybody.request("POST", path, {**proof, "Sec-Fetch-Site": "cross-site"})).status_code == 403
        assert (await anybody.request("POST", path, proof)).status_code == 200
        assert (await anybody.request("GET", path, {"Authorization": "Bearer nonsense"})).status_code == 405
        wrong = await anybody.request("GET", f"{PREFIX}/mail", {"Authorization": "Bearer nonsense"})
        assert wrong.status_code == 401


async def test_the_examples_of_the_how_to_work_as_they_stand(api: RunningApi, tmp_path: Path) -> None:
    admin: TokenCaller = await api.token()
    blocks = re.findall(r"```sh\n(.*?)```", HOW_TO.read_text("utf-8"), re.S)
    ran = [each for each in blocks if "curl" in each]
    assert len(ran) >= 5
    shell = f"set -euo pipefail\nexport TOKEN={admin.text} API={api.pages.address}{PREFIX}\n"
    for block in ran:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", shell + block, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 0, (block, out, err)


async def test_an_estimate_is_the_same_on_the_page_and_in_the_api(api: RunningApi) -> None:
    """No connector runs, so it is in progress until somebody cancels it."""
    person, program = await api.person(), await api.token("dashboard")
    asked = {
        "endpoint_identity": api.box.endpoint,
        "category": "finance",
        "date_from": "2026-01-01",
        "date_to": "2026-10-31",
        "rate": "100",
        "cap": "5.00",
        "form_token": await person.form_token(),
    }
    begun = await person.visiting.post("/backfill/estimate", None, **asked)
    run = begun.headers["location"].rpartition("=")[2]
    assert (await program.get(f"/backfill/estimates/runs/{run}")).json()["state"] == "running"
    assert (await program.call("POST", f"/backfill/estimates/runs/{run}/cancel", {})).json()["canceled"]
    assert "Canceled." in (await person.visiting.get(f"/backfill/new?run={run}")).text
