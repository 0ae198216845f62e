"""What no text of a stranger may do to a page in a browser: run, ask another server, lie outside, turn the text around.

One script looks at the whole document and names the first few that it finds.
"""

from urllib.parse import urlsplit

from playwright.async_api import Page, Request

WIDTHS = (1280, 768, 390)
_FOUND = """() => {
  const found = [];
  const say = (what, node) => found.push(`${what}: ${node.outerHTML.slice(0, 160)}`);
  const board = document.getElementById("board") ?? document.body;

  // Elements, attributes and addresses that only a stranger's markup has.
  const foreign = "script, style, base, meta, link, object, embed, plaintext, dialog, template, [style], #board h1";
  for (const each of board.querySelectorAll(foreign)) say("foreign", each);
  for (const each of board.querySelectorAll("img, iframe, video, audio, source, input[type=image], use"))
    if (!(each.getAttribute("src") ?? each.getAttribute("href") ?? "").startsWith("/")) say("foreign", each);
  for (const each of board.querySelectorAll("*"))
    for (const { name, value } of each.attributes)
      if (/^(data-)?(on|hx-on)/.test(name) || (/hx-(get|post|sse)/.test(name) && !value.startsWith("/")))
        say(`attribute ${name}`, each);
  // A link of ours that leads away says so.
  for (const each of document.querySelectorAll("a:not([rel~=external]), form, [formaction]"))
    for (const name of ["href", "action", "formaction"])
      if (each.hasAttribute(name) && new URL(each.getAttribute(name), location.href).origin !== location.origin)
        say("leads away", each);

  // Nothing is beyond the edge, unless something that scrolls or cuts holds it; and no row is endless.
  if (document.documentElement.scrollWidth > innerWidth)
    found.push(`the document is ${document.documentElement.scrollWidth} wide in ${innerWidth}`);
  const held = (node) => {
    for (let up = node.parentElement; up && up !== document.body; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  for (const each of board.querySelectorAll(":not(svg *)")) {
    const box = each.getBoundingClientRect();
    if (box.width && (box.right > innerWidth + 1 || box.left < -1) && !held(each)) { say("outside", each); break; }
  }
  for (const each of board.querySelectorAll(":is(tr, li, p, h2):not(:has(tr, li, form, .content))"))
    if (each.getBoundingClientRect().height > 900) say("endless", each);

  // Signs that turn the text around are spelled out; letters that run to the left stay in an element of their own.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const marks = /[\\u202a-\\u202e\\u2066-\\u2069\\u0000-\\u0008\\u000e-\\u001f\\u007f]/;
  const leftward = /[\\u0591-\\u08ff\\ufb1d-\\ufdfd\\ufe70-\\ufefc]/;
  const alone = "bdi, [dir], option, textarea, title, svg";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const within = node.parentElement;
    if (within.matches("script")) continue;
    if (marks.test(node.data) && !within.closest("textarea, option")) say("mark", within);
    if (leftward.test(node.data) && !within.closest(alone) && getComputedStyle(within).unicodeBidi !== "isolate")
      say("leaks", within);
  }
  return [...new Set(found)].slice(0, 6);
}"""
_SHOW = """async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const other = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of [".top", "#board"])
    document.querySelector(part).innerHTML = other.querySelector(part).innerHTML;
}"""


class Requests(list[str]):
    """Every address that a page asks for which is not its own server's."""

    def watch(self, page: Page) -> None:
        page.on("request", self._note)

    def _note(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.hostname != "127.0.0.1" and address.scheme not in ("data", "about", "blob"):
            self.append(request.url)


async def problems_on(page: Page) -> list[str]:
    """Return what is wrong with the page as it is now."""
    return await page.evaluate(_FOUND)


async def show_board(page: Page, address: str) -> None:
    """Put the head and the board of another page into this one: as good to look at, and cheaper than to open it."""
    await page.evaluate(_SHOW, address)


async def problems_at_every_width(page: Page) -> list[str]:
    found: list[str] = []
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        found += [f"{width}: {each}" for each in await problems_on(page)]
    return found
