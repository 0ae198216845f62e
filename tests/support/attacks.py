"""Texts of strangers that try to become markup, and what a page must not contain because of them."""

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


class _Board(HTMLParser):
    """Notes what no text of a stranger may make."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if any(name.startswith(("on", "hx-on")) for name in names) or "hx-get" in names:
            self.found.append(f"<{tag} {' '.join(sorted(names))}>")
        if tag == "img" and ("src", "x") in attrs:
            self.found.append("<img src=x>")
        if tag == "script" and "src" not in names:
            self.found.append("<script>")

    def handle_data(self, data: str) -> None:
        if "\u202e" in data or "\x1b" in data:
            self.found.append(repr(data))


def assert_harmless(page: str) -> None:
    board = _Board()
    board.feed(page)
    assert board.found == []
    assert page.count("<h1>") == 1
    assert "W" * 1_000 not in page
