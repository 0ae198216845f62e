"""Text that tries to become part of a page, and a look at whether it did."""

from html.parser import HTMLParser

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
LONGEST_LINE = 2_000
_FORBIDDEN = frozenset({"style", "hx-get", "hx-trigger", "onerror", "onload", "onmouseover"})


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
        if "hx-sse:connect" not in values:
            self.found += [name for name in values if name in _FORBIDDEN or name.startswith(("on", "hx-on"))]

    def handle_data(self, data: str) -> None:
        if len(data) > LONGEST_LINE or any(char in data for char in "\0\x1b\u202e"):
            self.found.append(data[:40])


def smuggled(page: str) -> list[str]:
    """Find the parts of a page that are not its own: elements, attributes, control characters, endless text."""
    look = _Look()
    look.feed(page)
    return look.found + ["h1"] * (look.headings - 1)
