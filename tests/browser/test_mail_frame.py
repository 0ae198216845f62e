"""HTML of strangers in a real browser: whatever it contains, nothing leaves the machine, runs, or reaches the page."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from postroom.core.mail.mailbox import Mailbox
from postroom.interfaces.dashboard.mail_frame import HEADERS
from postroom.interfaces.http.serve import serving
from postroom.store.engine.opening import open_database
from postroom.system.http_server.listening import open_listener
from postroom.system.http_server.serving import serving_on
from support.axe import violations
from support.chromium import BrowserErrors
from support.folder_mailbox import FolderMailbox, Folders
from support.gates import OpenGate
from support.page_setup import mail_application, new_mailbox
from support.store.mail_setup import Sample

PIXEL = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOADING = """
<link rel="stylesheet" href="{trap}/css"><link rel="preload" as="image" href="{trap}/preload">
<link rel="prefetch" href="{trap}/prefetch"><link rel="icon" href="{trap}/icon">
<style>@import url({trap}/import1); @import "{trap}/import2"; @font-face {{ font-family: f; src: url({trap}/font) }}
body {{ background: url({trap}/body); font-family: f }} p::after {{ content: url({trap}/content) }}
ul {{ list-style-image: url({trap}/list) }} p {{ background: image-set("{trap}/set" 1x);
  cursor: url({trap}/cursor), auto }}</style>
<p style="background: u\\72l({trap}/escape)">a</p><p style="background: url({trap}/inline)">b</p><ul><li>c</ul>
<img src="{trap}/img" srcset="{trap}/srcset 1x">
<picture><source srcset="{trap}/source"><img src="{trap}/img2"></picture>
<input type="image" src="{trap}/input"><table background="{trap}/table"><tr><td background="{trap}/td">d</table>
<svg width="9" height="9"><image href="{trap}/svg" width="9" height="9"/><use href="{trap}/use#a"/></svg>
<video src="{trap}/video" poster="{trap}/poster" autoplay></video><audio src="{trap}/audio" autoplay></audio>
<object data="{trap}/object"></object><embed src="{trap}/embed"><iframe src="{trap}/iframe"></iframe>
<frameset><frame src="{trap}/frame"></frameset><body background="{trap}/background">
<script src="{trap}/script"></script><script>new Image().src = "{trap}/ran"; document.title = "ran";</script>
<img src="x:" onerror="new Image().src='{trap}/onerror'"><svg onload="new Image().src='{trap}/onload'"></svg>
<details open ontoggle="new Image().src='{trap}/toggle'"><summary>e</summary></details>
<iframe srcdoc="<script>new Image().src='{trap}/srcdoc'</script>"></iframe>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src={trap}/mutated&gt;">
"""
EXPECTED = {
    f"/{name}" for name in ("css", "import1", "import2", "body", "srcset", "script", "ran", "iframe", "svg", "onerror")
}
LEAVING = """
<base href="{trap}/base/"><meta http-equiv="refresh" content="0; url={trap}/refresh"><img src="relative">
<form action="{trap}/form" method="get"><input name="q" autofocus><button id="send">Send</button></form>
"""
# No policy forbids these: only that the HTML is written anew without them.
AHEAD = '<link rel="preconnect" href="{trap}"><link rel="dns-prefetch" href="{trap}">'
LINKS = """
<a id="top" href="{trap}/top" target="_top">top</a> <a id="own" href="{trap}/own">own</a>
<a id="new" href="{trap}/new" target="_blank">new</a> <a id="code" href="javascript:top.location='{trap}/code'">code</a>
<p style="position: fixed; inset: 0; z-index: 99999; background: red">covers everything</p>
<style>:root, body, .shell, #board {{ display: block; position: fixed; inset: 0; background: red }}</style>
"""


class Trap:
    """A server that counts who connects; nobody should."""

    def __init__(self) -> None:
        self.connections = 0
        self.lines: list[str] = []

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.lines.append((await reader.readline()).decode("latin-1").strip())
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()


@asynccontextmanager
async def trapping() -> AsyncGenerator[tuple[Trap, str]]:
    trap = Trap()
    server = await asyncio.start_server(trap.met, "127.0.0.1", 0)
    async with server:
        yield trap, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def served_html(document: str, headers: Mapping[str, str]) -> AsyncGenerator[str]:
    """The document as it is, with these headers."""

    async def shown(_request: Request) -> Response:
        return HTMLResponse(document, headers=dict(headers))

    app = Starlette(routes=[Route("/", shown)])
    async with serving_on(open_listener("127.0.0.1", 0, allow_exposed=False), app, host="127.0.0.1") as address:
        yield address


def letter(document: str) -> bytes:
    head = b"Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n"
    image = b"\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <pixel>\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    return head + document.encode() + image + PIXEL + b"\r\n--b--\r\n"


@asynccontextmanager
async def mail_served(tmp_path: Path, document: str) -> AsyncGenerator[str]:
    """The address of the page of a message with this HTML."""
    folders = Folders()
    folders.put(letter(document), id="m1")

    async def mailbox(_account_id: UUID) -> Mailbox:
        return FolderMailbox(folders, OpenGate())

    database = await open_database(tmp_path)
    try:
        box = await new_mailbox(database)
        await box.decide(Sample("m1"))
        async with serving(mail_application(database, mailbox), host="127.0.0.1", port=0) as address:
            yield f"{address}/mail/{box.ids['m1']}"
    finally:
        await database.close()


async def test_the_policy_alone_lets_nothing_out_of_html_that_calls_home_without_it(page: Page) -> None:
    """Also if the cleaning missed something, the headers of the frame's document hold by themselves."""
    async with trapping() as (trap, home):
        async with served_html(LOADING.format(trap=home), {}) as address:
            await page.goto(address, wait_until="networkidle")
        wanted = {line.split(" ")[1] for line in trap.lines if line}
        assert wanted >= EXPECTED
        for attacks in (LOADING, LEAVING):
            trap.lines.clear()
            async with served_html(attacks.format(trap=home), HEADERS) as address:
                await page.goto(address, wait_until="networkidle")
                assert await page.title() != "ran"
                if await page.locator("#send").count():
                    await page.locator("#send").click()
                    await page.goto(address, wait_until="networkidle")
            assert trap.lines == []


async def stays_while_the_board_is_updated(page: Page) -> None:
    """A frame that loads again at every update would lose the reader's place."""
    loads: list[str] = []
    await page.get_by_role("button", name="Archive").click()
    await expect(page.get_by_role("region", name="Actions")).to_contain_text("archive it")
    await expect(page.locator("#link")).to_have_text("Live")
    await expect(page.frame_locator("#html").locator("#hello")).to_have_text("Hello")
    page.on("request", lambda request: loads.append(request.url) if request.url.endswith("/html") else None)
    async with page.expect_response("**/mail/**") as _:
        await page.get_by_role("button", name="Decide again").click()
    await expect(page.locator("#link")).to_have_text("Live")
    assert len(loads) <= 1, "only by the form"


async def test_in_the_frame_nothing_is_loaded_run_submitted_or_opened(
    page: Page, complaints: BrowserErrors, tmp_path: Path
) -> None:
    harmless = (
        '<h1 id="hello">Hello</h1><img id="pixel" src="cid:pixel" alt="a dot"><b style="color: rgb(1, 2, 3)">b</b>'
    )
    async with trapping() as (trap, home):
        document = (harmless + AHEAD + LOADING + LEAVING + LINKS).format(trap=home)
        async with mail_served(tmp_path, document) as address:
            await page.goto(f"{address}/html", wait_until="networkidle")
            await page.goto(address)
            await page.get_by_role("link", name="HTML", exact=True).click()
            frame = page.frame_locator("#html")
            await expect(frame.locator("#hello")).to_have_text("Hello")
            assert await frame.locator("#pixel").evaluate("image => image.naturalWidth") == 1
            assert await frame.locator("b").evaluate("b => getComputedStyle(b).color") == "rgb(1, 2, 3)"
            before = page.url
            for name in ("top", "own", "new", "code"):
                await frame.locator(f"#{name}").dispatch_event("click")
            assert await frame.locator("#send, form, script, iframe, svg, object, embed, base, link").count() == 0
            inner = next(each for each in page.frames if each.url.endswith("/html"))
            assert await inner.evaluate("self.origin") == "null"
            assert (page.url, inner.url, len(page.context.pages)) == (before, f"{address}/html", 1)
            board = await page.evaluate("getComputedStyle(document.getElementById('board')).position")
            assert board != "fixed", "styles of the mail end at the frame"
            box = await page.locator("#html").bounding_box()
            assert box is not None
            assert box["width"] < 1280, "what covers everything covers the frame only"
            assert await violations(page) == []
            await stays_while_the_board_is_updated(page)
    assert trap.connections == 0, trap.lines
    # The test's own script, which reports violations, is refused like any other.
    assert [each for each in complaints if not each.startswith("Blocked script execution")] == []
