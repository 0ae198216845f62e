"""The dashboard's answers: headers, hosts, escaping, errors, files."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Route

from postroom.core.errors import NotFound
from postroom.interfaces.dashboard.assets import load_assets
from postroom.interfaces.dashboard.pages.overview import OverviewPage
from postroom.interfaces.dashboard.rendering import TEMPLATES
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.operations.accounts.account_status import AccountLine
from postroom_simulator.page import TEMPLATES as OF_THE_SIMULATOR
from support.scripted_feed import NOON, ScriptedFeed, line, overview_application, parts_with

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "manifest-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PATHS = ("/", "/healthz", "/nowhere", "/static/0/live.js")


@asynccontextmanager
async def visiting(feed: ScriptedFeed, host: str = "postroom.test") -> AsyncGenerator[httpx2.AsyncClient]:
    hosts = ["postroom.test", "127.0.0.1", "::1"]
    app = overview_application(feed, allowed_hosts=hosts, account="<owner@example.org>")
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
        yield client


async def test_every_answer_carries_the_strict_headers() -> None:
    feed = ScriptedFeed()
    async with visiting(feed) as client:
        answers = [await client.get(path) for path in PATHS]
        feed.failure = OSError()
        answers.append(await client.get("/"))
        answers.append(await client.get("/", headers={"Host": "evil.example"}))
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404, 503, 421]
    for answer in answers:
        assert answer.headers.get_list("content-security-policy") == [CSP]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


async def test_nothing_on_the_page_is_inline() -> None:
    async with visiting(ScriptedFeed(line(1))) as client:
        page = (await client.get("/")).text
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", page) == []
    assert "hx-on" not in page
    assert "js:" not in page


@pytest.mark.parametrize(
    "host", ["postroom.test", "POSTROOM.test:8025", "postroom.test.", "127.0.0.1:80", "[::1]:8025", "[::1]"]
)
async def test_its_own_names_are_answered_with_any_port(host: str) -> None:
    async with visiting(ScriptedFeed()) as client:
        assert (await client.get("/", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "postroom.test.evil.example", "127.0.0.1.evil.example:80", "", "postroom.test:80:80", "::1"],
)
async def test_another_name_is_refused_with_a_plain_text(host: str) -> None:
    feed = ScriptedFeed(line(1, subject="secret"))
    async with visiting(feed) as client:
        answers = [await client.get(path, headers={"Host": host}) for path in ("/", "/events", "/healthz")]
    for answer in answers:
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert f'does not answer to the host name "{host}"' in answer.text
    assert feed.reads == 0


async def test_two_host_headers_are_refused() -> None:
    async with visiting(ScriptedFeed()) as client:
        twice = [("Host", "postroom.test"), ("Host", "evil.example")]
        assert (await client.get("/", headers=twice)).status_code == 421


async def test_texts_of_mail_are_escaped_and_cut() -> None:
    attack = "<script>alert(1)</script>\"'>"
    feed = ScriptedFeed(
        line(1, sender=attack, subject=attack, tier=attack, why_tier=attack),
        line(2, what=attack, by=attack, why=attack),
        line(3, state=attack, error=attack),
        line(4, subject="W" * 10_000, sender="V" * 10_000, what="leave it", why="U" * 10_000),
        in_line={attack: 1},
        accounts=(
            AccountLine(
                attack, attack, attack, attack, attack, trouble=attack, remedy=attack, command=attack, retry=attack
            ),
        ),
    )
    async with visiting(feed) as client:
        page = (await client.get("/")).text
    assert "<script>alert" not in page
    assert "\"'>" not in page
    assert unescape(page).count("<script>alert(1)</script>\"'>") >= 19
    assert len(page) < 16_000


async def test_every_state_of_an_account_has_its_words_and_its_remedy() -> None:
    feed = ScriptedFeed(
        accounts=(
            AccountLine("new@x.example", "active", connector="online"),
            AccountLine(
                "fine@x.example",
                "active",
                level="organise",
                connector="online",
                heard_at=NOON,
                ingested=1234,
                acts_from=NOON,
            ),
            AccountLine(
                "late@x.example", "active", connector="stale", heard_at=NOON, trouble="quota", refused=2, acts_from=NOON
            ),
            AccountLine(
                "left@x.example", "active", set_aside=3, retry="postroom connector retry --all", acts_from=NOON
            ),
            AccountLine(
                "app@x.example",
                "needs_consent",
                "no app",
                remedy="check the app",
                command="postroom resume",
                acts_from=NOON,
            ),
            AccountLine(
                "off@x.example", "paused", "on holiday", command="postroom account resume off@x.example", acts_from=NOON
            ),
            AccountLine(
                "gone@x.example",
                "needs_consent",
                command="postroom account add gmail --email gone@x.example",
                acts_from=NOON,
            ),
            AccountLine(
                "pass@x.example",
                "needs_consent",
                command="postroom account add imap --email pass@x.example",
                sign_in="password",
                acts_from=NOON,
            ),
            AccountLine("soon@x.example", "active", dies_at=NOON, command="postroom account add gmail", acts_from=NOON),
        )
    )
    async with visiting(feed) as client:
        page = (await client.get("/")).text
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"(?s)<li>\n.*?</li>", page)]
    assert rows == [
        "new@x.example in use connector online not acting yet 0 ingested · 0 refused",
        "fine@x.example level organise in use connector online reported 4 Mar, 12:00 "
        "1,234 ingested · 0 refused by then",
        "late@x.example in use connector stale reported 4 Mar, 12:00 quota 0 ingested · 2 refused by then",
        "left@x.example in use no report yet 0 ingested · 0 refused · 3 set aside "
        "Some mail was not ingested. postroom connector refused lists it with the reason; to try again, run "
        "postroom connector retry --all",
        "app@x.example cannot be opened no app no report yet 0 ingested · 0 refused "
        "Its consent is valid. First, check the app, then run postroom resume",
        "off@x.example paused on holiday no report yet 0 ingested · 0 refused "
        "To use it again, run postroom account resume off@x.example",
        "gone@x.example needs your consent no report yet 0 ingested · 0 refused "
        "To consent again, run postroom account add gmail --email gone@x.example",
        "pass@x.example password refused no report yet 0 ingested · 0 refused "
        "To enter the password again, run postroom account add imap --email pass@x.example",
        "soon@x.example in use no report yet 0 ingested · 0 refused "
        "Its consent ends 4 Mar, 12:00 , because the app is in testing. "
        "Publish the app at Google, then run postroom account add gmail",
    ]


async def test_a_page_without_accounts_says_how_to_connect_one() -> None:
    async with visiting(ScriptedFeed()) as client:
        assert "postroom account add imap" in (await client.get("/")).text


async def test_a_page_without_mail_says_so() -> None:
    async with visiting(ScriptedFeed()) as client:
        assert "No messages yet." in (await client.get("/")).text


async def test_every_state_of_a_message_has_its_words() -> None:
    feed = ScriptedFeed(
        line(1, state="waiting"),
        line(2, state="failed", mood="bad", error="its headers cannot be read"),
        line(3, state="kept", what="leave it as it is", why="no rule matched"),
        line(4, state="undone", what="archive it", by="model 0.90", why="a newsletter"),
    )
    async with visiting(feed) as client:
        page = re.sub(r"<[^>]+>", "", (await client.get("/")).text)
    for wording in ("waiting", "failed", "its headers cannot be read", "no decision", "kept", "undone"):
        assert wording in page
    assert "\nno rule matched\n" in page
    assert "model 0.90: a newsletter" in page


async def test_errors_are_pages_that_name_nothing_of_the_inside() -> None:
    feed = ScriptedFeed()
    feed.failure = OSError("no such table: inbox in /var/lib/postroom.db")
    async with visiting(feed) as client:
        lost = await client.get("/nowhere")
        wrong = await client.post("/")
        away = await client.get("/")
    assert (lost.status_code, wrong.status_code, away.status_code) == (404, 405, 503)
    assert "There is no page at this address." in lost.text
    assert "Postroom cannot read its data at the moment." in away.text
    for answer in (lost, wrong, away):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert not re.search("table|/var|OSError|Traceback|detail", answer.text)


async def test_a_fault_of_our_own_is_a_plain_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    render = Site.render

    def broken(site: Site, template: str, /, **values: object) -> str:
        if template == "shell.html":
            raise ZeroDivisionError("in /var/lib")
        return render(site, template, **values)

    monkeypatch.setattr(Site, "render", broken)
    async with visiting(ScriptedFeed()) as client:
        answer = await client.get("/")
    assert answer.status_code == 500
    assert "Its log has the cause." in answer.text
    assert not re.search("Zero|/var", answer.text)
    assert answer.headers["content-security-policy"] == CSP


async def test_files_are_kept_for_a_year_under_an_address_that_carries_their_hash() -> None:
    async with visiting(ScriptedFeed()) as client:
        page = (await client.get("/")).text
        addresses = set(re.findall(r'(?:src|href)="(/static/[^"#]+)[#"]', page))
        answers = [await client.get(address) for address in addresses]
        assert (await client.head(min(addresses))).status_code == 200
    assert len(answers) == 14
    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.content


async def test_files_come_compressed_to_who_asks_for_that() -> None:
    asset = load_assets()["postroom.css"]
    async with visiting(ScriptedFeed()) as client:
        packed = await client.get(asset.address, headers={"Accept-Encoding": "br, gzip"})
        plain = await client.get(asset.address, headers={"Accept-Encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.content) == ("gzip", asset.body)
    assert int(packed.headers["content-length"]) < len(asset.body) / 3
    assert ("content-encoding" in plain.headers, plain.content) == (False, asset.body)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "site", "is_packed"),
    [
        ("gzip, deflate, br", "none", True), ("br;q=1.0, GZIP;q=0.5", "same-origin", True), ("gzip", None, True),
        ("gzip", "cross-site", False), ("gzip", "same-site", False), ("gzip;q=0", "none", False),
        ("gzip; q=0.000", "none", False), ("identity", "none", False), ("*", "none", False), ("", "none", False),
    ],
)  # fmt: skip
async def test_pages_come_compressed_to_our_own_pages_but_never_to_another_site(
    accepted: str, site: str | None, is_packed: bool
) -> None:
    headers = {"Accept-Encoding": accepted, **({"Sec-Fetch-Site": site} if site else {})}
    async with visiting(ScriptedFeed(line(1, subject="A long letter"))) as client:
        page, head = await client.get("/", headers=headers), await client.head("/", headers=headers)
    assert "A long letter" in page.text
    assert page.headers["vary"] == head.headers["vary"] == "Accept-Encoding, Sec-Fetch-Site"
    assert (page.headers.get("content-encoding") == "gzip") == is_packed
    assert page.headers.get("content-encoding") == head.headers.get("content-encoding")
    assert (int(page.headers["content-length"]) < len(page.content) / 3) == is_packed
    assert head.content == b""


async def test_two_answers_of_one_page_share_no_form_token() -> None:
    async with visiting(ScriptedFeed(line(1))) as client:
        tokens = [set(re.findall(r'name="form_token" value="([^"]+)"', (await client.get("/")).text)) for _ in range(2)]
    assert tokens[0]
    assert not tokens[0] & tokens[1]


@pytest.mark.parametrize("name", ["../web.py", "vendor/manifest.json", "live.js%00", "..%2f..%2fweb.py"])
async def test_no_other_file_can_be_had(name: str) -> None:
    digest = load_assets()["live.js"].digest
    async with visiting(ScriptedFeed()) as client:
        assert (await client.get(f"/static/{digest}/{name}")).status_code == 404


def test_a_missing_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"vendor/htmx\.min\.js is missing .* run `make setup`"):
        load_assets(tmp_path)


def test_only_the_rendered_board_and_html_that_was_written_anew_are_ever_trusted() -> None:
    trusting = [
        found
        for folder in (TEMPLATES, OF_THE_SIMULATOR)
        for template in folder.rglob("*.html")
        for found in re.findall(r"\{\{[^}]*\|\s*safe[^}]*\}\}|autoescape false", template.read_text(encoding="utf-8"))
    ]
    assert sorted(trusting) == ["{{ board | safe }}", "{{ html.body | safe }}"]


async def test_health_is_reported_without_reading_anything() -> None:
    feed = ScriptedFeed()
    async with visiting(feed) as client:
        answer = await client.get("/healthz")
    assert answer.json() == {"status": "ok"}
    assert feed.reads == 0


class SecondPage(OverviewPage):
    address, title = "/rules", "Rules"

    def actions(self) -> list[Route]:
        return []


async def test_a_second_page_has_its_own_address_and_stream_and_is_linked_from_the_first() -> None:
    site = Site(parts_with(ScriptedFeed(line(1))), "owner@example.org")
    app = create_application(site, [OverviewPage(site), SecondPage(site)], allowed_hosts=["postroom.test"])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://postroom.test") as client:
        first, second = (await client.get("/")).text, (await client.get("/rules")).text
    assert re.search(r'<a href="/rules" data-go="r">.*Rules</a>', first)
    assert re.search(r'<a href="/rules" data-go="r" aria-current="page">.*Rules</a>', second)
    assert 'hx-sse:connect="/events/rules"' in second
    assert "<title>Rules · Postroom</title>" in second
