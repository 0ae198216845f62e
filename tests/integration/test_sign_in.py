"""Sign-in over real HTTP: the first link, passwords and codes, waits, sessions and their ends, streams, tokens."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pyotp
import pytest
from starlette.routing import Route

from postroom.core.errors import SignInRefused
from postroom.core.roles import Role
from postroom.operations.caller import Caller
from postroom.operations.people.passkeys import Challenges
from postroom.operations.people.people import make_link
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import list_audit
from postroom.store.people.people import change_role, remove_person
from postroom.store.people.sessions import end_sessions
from postroom.store.people.tokens import create_token, mint, revoke_token
from postroom.vault.password_threads import PasswordThreads
from support.canaries import Canaries, watching
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.signed_in import PASSWORD, Pages, Visiting, running_pages, secret_in
from support.sqlite import new_sqlite
from support.store.fault_cases_registry import signed


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> AsyncIterator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, clock, tmp_path) as running:
        yield running
    await database.close()


async def acts(pages: Pages) -> list[str]:
    return [each.action for each in await pages.database.run(list_audit(100))][::-1]


async def sign_in(person: Visiting, name: str = "mara", password: str = PASSWORD, **more: str) -> httpx2.Response:
    return await person.post("/sign-in", None, name=name, password=password, **more)


async def test_the_first_link_opens_a_page_and_only_its_form_uses_it(pages: Pages) -> None:
    secret, person = await pages.first_link(), pages.visitor()
    for _ in range(2):
        assert (await person.get("/sign-in/once")).status_code == 200
        shown = await person.post("/sign-in/once", secret=secret)
        assert "You are the first here" in shown.text
    assert await acts(pages) == []
    weak = await person.post("/sign-in/once/password", secret=secret, name="mara", password="password1234")
    assert (weak.status_code, "would be guessed" in weak.text) == (400, True)
    done = await person.post("/sign-in/once/password", secret=secret, name=" MARA ", password=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert (await person.get("/")).status_code == 200
    again = await pages.visitor().post("/sign-in/once/password", secret=secret, name="nils", password=PASSWORD)
    assert (again.status_code, "used before" in again.text) == (401, True)
    assert await acts(pages) == ["person.add", "person.password", "sign_in"]


async def test_a_page_leads_to_sign_in_and_back_to_itself(pages: Pages) -> None:
    mara = await pages.signed_in()
    mara.cookies.clear()
    sent = await mara.get("/settings/sign-in?a=1&b=%2F")
    assert sent.status_code == 303
    shown = await mara.get(sent.headers["location"])
    assert 'name="to" value="/settings/sign-in?a=1&amp;b=%2F"' in shown.text
    done = await sign_in(mara, to="/settings/sign-in?a=1")
    assert done.headers["location"] == "/settings/sign-in?a=1"
    assert (await mara.get("/sign-in?to=/settings/sign-in")).headers["location"] == "/settings/sign-in"


ELSEWHERE = (
    *("https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example"),
    *("javascript:alert(1)", "evil.example", "", "/sign-in?to=/sign-in", "/sign-in/once", "/a\r\nSet-Cookie: x=1"),
)


async def test_nobody_is_led_to_another_site(pages: Pages) -> None:
    mara = await pages.signed_in()
    for to in ELSEWHERE:
        assert (await mara.request("GET", "/sign-in", {}, params={"to": to})).headers["location"] == "/", to
        again = await mara.submit("/sign-in/again", password=PASSWORD, to=to)
        assert again.headers["location"] == "/", to


async def test_a_wrong_name_looks_like_a_wrong_password_and_both_wait_longer_and_longer(pages: Pages) -> None:
    await pages.signed_in()
    sentences: dict[str, list[str]] = {}
    for name in ("mara", "nobody"):
        person = pages.visitor()
        answers = [await sign_in(person, name, "a wrong password") for _ in range(6)]
        assert [each.status_code for each in answers] == [401, 401, 401, 401, 429, 429]
        sentences[name] = [each.text.partition('role="alert"')[2].partition("</p>")[0] for each in answers]
        assert 0 < int(answers[4].headers["retry-after"]) <= 60
    assert sentences["mara"] == sentences["nobody"]
    assert "4 more tries" in sentences["mara"][0]
    right = await sign_in(pages.visitor())
    assert right.status_code == 429, "while the wait lasts, no password is tried"
    refused = await pages.database.run(list_audit(100, action="sign_in.refused"))
    assert len(refused) == 10
    assert {each.object_id == "unknown" for each in refused} == {True, False}


async def test_a_code_is_asked_for_besides_the_password_and_works_once(pages: Pages) -> None:
    mara = await pages.signed_in()
    secret = pyotp.random_base32()
    app = pyotp.TOTP(secret)
    wrong = await mara.submit("/settings/sign-in/codes", secret=secret, code="000000")
    assert (wrong.status_code, secret in wrong.text) == (400, True)
    code = app.at(pages.clock())
    assert (await mara.submit("/settings/sign-in/codes", secret=secret, code=code)).status_code == 303
    mara.cookies.clear()
    assert (await sign_in(mara)).status_code == 401
    assert (await sign_in(mara, code=code)).status_code == 401, "it was used to turn codes on"
    pages.clock.forward(30)
    code = app.at(pages.clock())
    assert (await sign_in(mara, code=f"{code[:3]} {code[3:]}")).status_code == 303
    assert (await sign_in(pages.visitor(), code=code)).status_code == 401
    made = await make_link(Caller(pages.database, signed(), pages.clock), pages.services.settings, "mara")
    back = pages.visitor()
    await back.post("/sign-in/once/password", secret=secret_in(made), name="mara", password=PASSWORD + "!")
    assert (await back.get("/settings/sign-in")).status_code == 200
    assert (await sign_in(pages.visitor(), password=PASSWORD + "!")).status_code == 303, "a link turns codes off"
    assert (await mara.get("/settings/sign-in")).status_code == 303, "and ends other sessions"


async def test_a_proof_is_fresh_for_ten_minutes_and_then_asked_for_again(pages: Pages) -> None:
    mara = await pages.signed_in()
    pages.clock.forward(10 * 60)
    sent = await mara.submit("/settings/sign-in/password", password="another five unrelated words")
    assert "Is it still you?" in sent.text
    assert "Is it still you?" in (await mara.get("/sign-in/again?to=/settings/sign-in")).text
    assert (await mara.submit("/sign-in/again", password="wrong wrong wrong")).status_code == 401
    old = dict(mara.cookies)
    proven = await mara.submit("/sign-in/again", password=PASSWORD, to="/settings/sign-in")
    assert proven.headers["location"] == "/settings/sign-in"
    assert mara.cookies != old, "the secret was replaced"
    done = await mara.submit("/settings/sign-in/password", password="another five unrelated words")
    assert done.headers["location"] == "/settings/sign-in?done=password"
    assert "sign_in.again" in await acts(pages)
    assert (await pages.visitor().get("/sign-in/again?to=/")).headers["location"] == "/sign-in?to=/"


async def test_a_new_password_signs_out_everywhere_else_and_replaces_the_secret_here(pages: Pages) -> None:
    mara, phone = await pages.signed_in(), pages.visitor()
    await sign_in(phone)
    before = dict(mara.cookies)
    await mara.submit("/settings/sign-in/password", password="another five unrelated words")
    assert (await phone.get("/settings/sign-in")).status_code == 303
    assert (await mara.get("/settings/sign-in")).status_code == 200
    assert mara.cookies != before
    assert (await sign_in(phone)).status_code == 401
    assert (await sign_in(phone, password="another five unrelated words")).status_code == 303


async def test_sessions_are_listed_and_ended_one_by_one_or_all_others(pages: Pages) -> None:
    mara, phone, tablet = await pages.signed_in(), pages.visitor(), pages.visitor()
    phone.headers["User-Agent"] = "Mozilla/5.0 (Android 16; Mobile; rv:144.0) Gecko/144.0 Firefox/144.0"
    await sign_in(phone)
    pages.clock.forward(61)
    await sign_in(tablet)
    shown = (await mara.get("/settings/sign-in")).text
    assert "Firefox on Android" in shown
    assert "this machine" in shown
    own = await pages.database.run(list_audit(10, action="sign_in"))
    phones = next(each.after["session"] for each in own if each.after and "Android" in each.after["browser"])
    await mara.submit("/settings/sign-in/sessions/end", id=phones)
    assert (await phone.get("/settings/sign-in")).status_code == 303
    assert (await tablet.get("/settings/sign-in")).status_code == 200
    await mara.submit("/settings/sign-in/sessions/end-others")
    assert (await tablet.get("/settings/sign-in")).status_code == 303
    gone = await mara.submit("/settings/sign-in/sessions/end", id=phones)
    assert (gone.status_code, "no such session" in gone.text) == (400, True)


async def test_signing_out_ends_the_session_and_forgets_the_cookie(pages: Pages) -> None:
    mara = await pages.signed_in()
    kept = dict(mara.cookies)
    assert (await mara.submit("/sign-out")).headers["location"] == "/sign-in"
    assert mara.cookies == {}
    mara.cookies |= kept
    assert (await mara.get("/settings/sign-in")).status_code == 303


async def test_a_session_ends_half_an_hour_after_the_last_click_and_after_twelve_hours(pages: Pages) -> None:
    mara = await pages.signed_in()
    for _ in range(12 * 60 // 29):
        pages.clock.forward(29 * 60)
        assert (await mara.get("/settings/sign-in")).status_code == 200
    pages.clock.forward(29 * 60)
    assert (await mara.get("/settings/sign-in")).status_code == 303
    await sign_in(mara)
    pages.clock.forward(31 * 60)
    assert (await mara.get("/settings/sign-in")).status_code == 303


async def test_the_secret_is_replaced_every_hour_and_forms_of_open_pages_still_work(pages: Pages) -> None:
    mara = await pages.signed_in()
    token, first = await mara.form_token(), dict(mara.cookies)
    for _ in range(3):
        pages.clock.forward(25 * 60)
        await mara.get("/settings/sign-in")
    assert mara.cookies != first
    other_tab = Visiting(pages, first)
    other_tab.headers = mara.headers
    assert (await Visiting(pages, dict(first)).get("/settings/sign-in")).status_code == 200, "until the new one arrives"
    assert (await mara.post("/pause", form_token=token)).status_code == 303
    pages.clock.forward(61)
    assert (await Visiting(pages, dict(first)).get("/settings/sign-in")).status_code == 303


async def test_tabs_that_come_back_together_after_an_hour_all_stay_signed_in(pages: Pages) -> None:
    mara = await pages.signed_in()
    for _ in range(2):
        pages.clock.forward(25 * 60)
        await mara.get("/settings/sign-in")
    pages.clock.forward(20 * 60)
    tabs = [Visiting(pages, dict(mara.cookies), mara.headers) for _ in range(6)]
    await asyncio.gather(*(tab.get("/settings/sign-in") for tab in tabs))
    # The browser keeps the cookie of the answer that arrives last, whichever that is.
    for tab in tabs:
        assert (await tab.get("/settings/sign-in")).status_code == 200
    assert len({tab.cookies[pages.cookie_name] for tab in tabs} - {mara.cookies[pages.cookie_name]}) == 1


async def test_a_change_of_role_replaces_the_secret_at_the_next_click(pages: Pages) -> None:
    await pages.signed_in()
    nils = await pages.signed_in("nils", "viewer")
    before = dict(nils.cookies)
    await pages.database.run(change_role("nils", "operator", signed(), pages.clock()))
    await nils.get("/settings/sign-in")
    assert nils.cookies != before


async def test_a_forged_cookie_opens_nothing(pages: Pages) -> None:
    mara = await pages.signed_in()
    own = mara.cookies[pages.cookie_name]
    for cookie in ("", "x", "." * 76, "A" * 32 + "." + "B" * 43, "A" * 5000, own[:-1], own.upper(), f"{own}x"):
        forger = Visiting(pages, {pages.cookie_name: cookie})
        assert (await forger.get("/settings/sign-in")).status_code == 303, cookie


async def test_the_secret_of_another_session_does_not_fit_the_key(pages: Pages) -> None:
    mara, nils = await pages.signed_in(), await pages.signed_in("nils")
    name = pages.cookie_name
    mixed = f"{mara.cookies[name].partition('.')[0]}.{nils.cookies[name].partition('.')[2]}"
    assert (await Visiting(pages, {name: mixed}).get("/settings/sign-in")).status_code == 303


async def test_the_cookie_is_for_this_host_only_and_out_of_reach_of_scripts(pages: Pages) -> None:
    await pages.signed_in()
    answer = await sign_in(pages.visitor())
    name, *parts = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"{pages.cookie_name}=")
    assert set(parts) == {"Path=/", "Secure", "HttpOnly", "SameSite=Lax", "Max-Age=43200"}


async def test_metrics_and_streams_take_a_session_or_a_token_of_the_right_role(pages: Pages) -> None:
    mara = await pages.signed_in()
    assert (await mara.get("/metrics")).text == "metrics"
    stranger = pages.visitor()
    assert (await stranger.get("/metrics")).status_code == 401
    for role, status in (("dashboard", 200), ("admin", 200), ("metrics", 200), ("agent", 401)):
        minted = mint(Role(role))
        await pages.database.run(create_token(minted.token, signed(), pages.clock()))
        assert (await stranger.get("/metrics", Authorization=f"Bearer {minted.text}")).status_code == status, role
        assert (await stranger.get("/", Authorization=f"Bearer {minted.text}")).status_code == 303, "pages take none"


async def test_a_token_for_metrics_reads_metrics_and_health_and_nothing_else(pages: Pages) -> None:
    minted = mint(Role.METRICS, name="prometheus")
    await pages.database.run(create_token(minted.token, signed(), pages.clock()))
    prometheus, proof = pages.visitor(), f"Bearer {minted.text}"
    readable = {"/metrics", "/healthz", "/readyz", "/sign-in", "/sign-in/once", "/static"}
    assert (await prometheus.get("/metrics", Authorization=proof)).status_code == 200
    read = [each for each in pages.app.routes if isinstance(each, Route) and "GET" in (each.methods or ())]
    for route in read:
        if route.path not in readable and not route.path.startswith("/static/"):
            path = re.sub(r"\{.*?\}", "00000000-0000-0000-0000-000000000000", route.path)
            answer = await prometheus.get(path, Authorization=proof)
            assert answer.status_code in (303, 401, 403), (path, answer.status_code)
            assert answer.status_code != 303 or answer.headers["location"].startswith("/sign-in"), path


async def test_readiness_is_told_to_anyone_and_its_reasons_to_people(pages: Pages) -> None:
    assert (await pages.visitor().get("/readyz")).json() == {"status": "ready"}
    assert "checks" in (await (await pages.signed_in()).get("/readyz")).json()


async def test_the_doors_of_programs_check_their_callers_themselves(pages: Pages) -> None:
    assert (await pages.visitor().post("/hooks/gmail")).text == "hook"
    assert (await pages.visitor().get("/hooksandmore")).status_code == 303


async def test_htmx_is_told_to_open_the_sign_in_page(pages: Pages) -> None:
    answer = await pages.visitor().get("/", HX_Request="true")
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/sign-in")
    answer = await pages.visitor().post("/rules/check", {"HX-Request": "true"}, text="do not lose me")
    assert (answer.status_code, "hx-redirect" in answer.headers) == (401, False), "what is being written stays"


async def test_a_form_of_somebody_who_was_signed_out_leads_to_the_sign_in_page_which_says_so(pages: Pages) -> None:
    mara = pages.visitor()
    await pages.signed_in()
    answer = await mara.post("/connectors/pause", None, form_token="old")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "Nothing was done. You are signed out." in (await mara.get("/sign-in")).text
    assert "Nothing was done." not in (await mara.get("/sign-in")).text


async def test_a_password_that_is_replaced_while_it_is_checked_opens_no_session(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    mara, thief, is_right = await pages.signed_in(), pages.visitor(), PasswordThreads.is_right

    async def replaced_meanwhile(threads: PasswordThreads, kept: str | None, password: str) -> bool:
        right = await is_right(threads, kept, password)
        assert (await mara.submit("/settings/sign-in/password", password=f"{PASSWORD}, but new")).status_code == 303
        return right

    monkeypatch.setattr(PasswordThreads, "is_right", replaced_meanwhile)
    assert (await sign_in(thief)).status_code == 401
    assert not thief.cookies


async def test_a_stream_ends_with_the_right_to_see_it_and_does_not_keep_it_alive(
    tmp_path: Path, migrated_sqlite: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.compose.sign_in.LOOK_EVERY_S", 0.05)
    database = await new_sqlite(tmp_path, migrated_sqlite)
    minted = mint(Role.DASHBOARD)
    await database.run(create_token(minted.token, signed(), clock()))
    async with running_pages(database, clock, tmp_path) as pages:
        for ending in ("revoked", "removed", "role", "idle", "token"):
            headers = {"Authorization": f"Bearer {minted.text}"}
            if ending != "token":
                person = await pages.signed_in(ending)
                headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items())}
            async with (
                httpx2.AsyncClient(timeout=PATIENCE_S) as http,
                http.stream("GET", f"{pages.address}/events", headers=headers) as stream,
            ):
                assert stream.status_code == 200
                parts = stream.aiter_raw()
                await anext(parts)
                match ending:
                    case "revoked":
                        await database.run(end_sessions(ending, None, signed(), clock()))
                    case "removed":
                        await database.run(remove_person(ending, signed(), clock()))
                    case "role":
                        await database.run(change_role(ending, "viewer", signed(), clock()))
                    case "idle":
                        clock.forward(31 * 60)
                    case _:
                        await database.run(revoke_token(minted.token.id, signed(), clock()))
                        clock.forward(2)
                async with asyncio.timeout(PATIENCE_S):
                    async for _ in parts:
                        pass
    await database.close()


async def test_asking_for_the_headers_of_a_stream_is_answered_at_once_and_is_no_click(pages: Pages) -> None:
    mara = await pages.signed_in()
    assert (await mara.request("HEAD", "/events", {})).status_code == 200
    pages.clock.forward(20 * 60)
    assert (await mara.request("HEAD", "/events", {})).status_code == 200
    pages.clock.forward(20 * 60)
    assert (await mara.request("HEAD", "/events", {})).status_code == 401


HOSTILE = (
    *({}, [], 1, None, "x", {"credential": {}}, {"credential": {"response": {}}}, {"credential": {"response": 1}}),
    {"credential": {"id": "x", "rawId": "x", "type": "public-key", "response": {"clientDataJSON": "e30"}}},
    {"credential": {"id": 1, "response": {"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoieCJ9"}}},
    {"secret": ["x"], "name": {"a": 1}, "to": 5, "form_token": 7, "credential": {"response": {"clientDataJSON": 3}}},
)


async def test_whatever_a_script_sends_is_refused_with_a_sentence(pages: Pages) -> None:
    mara = await pages.signed_in()
    mara.headers["Host"] = f"localhost:{pages.port}"
    token = await (await pages.signed_in("nils")).form_token()
    for path in ("/sign-in", "/sign-in/once", "/sign-in/again", "/settings/sign-in"):
        kinds = ("/passkey/options", "/passkey") if path != "/settings/sign-in" else ("/passkeys/options", "/passkeys")
        for kind in kinds:
            for content in HOSTILE:
                answer = await mara.script(path + kind, content)
                usual = path + kind == "/sign-in/passkey/options" and isinstance(content, dict)
                assert answer.status_code == 200 if usual else answer.status_code in (400, 401, 403, 429), (path, kind)
    assert (await mara.script("/settings/sign-in/passkeys", {"form_token": token})).status_code in (400, 403)


async def test_a_challenge_is_for_one_purpose_and_for_five_minutes(pages: Pages) -> None:
    challenges = Challenges(pages.database, pages.clock)
    first = await challenges.new("sign-in")
    await challenges.check(first, "sign-in")
    await Challenges(pages.database, pages.clock).check(first, "sign-in")
    for challenge, purpose in (
        (first, "again:1"),
        (first[:-1] + b"x", "sign-in"),
        (b"x" + first[1:], "sign-in"),
        (b"", ""),
    ):
        with pytest.raises(SignInRefused):
            await challenges.check(challenge, purpose)
    pages.clock.forward(300)
    with pytest.raises(SignInRefused, match="too long"):
        await challenges.check(first, "sign-in")


async def test_no_passkey_is_offered_where_browsers_make_none(pages: Pages) -> None:
    await pages.signed_in()
    assert "Browsers make no passkeys for 127.0.0.1" in (await pages.visitor().get("/sign-in")).text
    assert f'"http://localhost:{pages.port}/sign-in"' in (await pages.visitor().get("/sign-in")).text
    for host in ("127.0.0.1", "[::1]"):
        assert '"http://localhost/sign-in"' in (await pages.visitor().get("/sign-in", Host=host)).text, host
    assert (await pages.visitor().script("/sign-in/passkey/options", {})).status_code == 400


async def test_no_secret_is_logged(tmp_path: Path, migrated_sqlite: Path, clock: ManualClock) -> None:
    canaries = Canaries()
    database = await new_sqlite(tmp_path, migrated_sqlite)
    with watching(canaries) as watch:
        async with running_pages(database, clock, tmp_path) as pages:
            secret, person = canaries.note("link", await pages.first_link()), pages.visitor()
            await person.post("/sign-in/once", secret=secret)
            await person.post("/sign-in/once/password", secret=secret, name="mara", password=PASSWORD)
            canaries.note("password", PASSWORD)
            for value in person.cookies.values():
                for part in value.split("."):
                    canaries.note("cookie", part)
            wrong = canaries.word("password")
            await sign_in(pages.visitor(), wrong, wrong)
            await sign_in(person, password=wrong)
            await person.submit("/sign-out")
    assert watch.leaks() == {}
    stored = str(await database.run(list_audit(100)))
    assert canaries.found_in(stored) == set()
    await database.close()


async def test_the_side_bar_names_an_account_as_soon_as_it_is_connected(pages: Pages) -> None:
    mara = await pages.signed_in()
    assert "no account connected yet" in (await mara.get("/rules")).text
    await pages.database.run(
        keep_account(new_id(), "gmail", "gmail:user:ada@example.org", "ada@example.org", pages.clock())
    )
    shown = (await mara.get("/rules")).text
    assert "no account connected yet" not in shown
    assert "ada@example.org" in shown
