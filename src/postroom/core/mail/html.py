"""The text of an HTML body, in linear time for any HTML.

No tree is built: plain text needs none, and hostile HTML (many attributes on one tag, deep nesting) makes every tree
builder slow. Tags are skipped, blocks become lines, scripts and styles are left out.
"""

import html
import re
from collections.abc import Iterator

LONGEST_HTML = 1_000_000

_NAME = re.compile(r"/?[a-z][a-z0-9]*", re.IGNORECASE)
_MANY_LINES = re.compile(r"\n{3,}")
# Python refuses to parse numbers with thousands of digits; no character has such a number.
_ABSURD_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_LEFT_OUT = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "title", "template")}
_BLOCKS = (
    *("address", "article", "aside", "blockquote", "body", "center", "dd", "div", "dl", "dt", "fieldset", "figure"),
    *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "main", "nav", "ol", "option"),
    *("pre", "section", "table", "tbody", "tfoot", "thead", "tr", "ul"),
)
_MARKS = {"br": "\n", "p": "\n\n", "/p": "\n\n", "li": "\n- ", "td": " ", "th": " ", "img": " "} | {
    mark: "\n" for name in _BLOCKS for mark in (name, f"/{name}")
}
_MOST_QUOTES = 8


def html_text(source: str) -> str:
    """The text that a reader would see, without images and links; only the first million characters are read."""
    text = "".join(_pieces(source[:LONGEST_HTML]))
    lines = "\n".join([line.strip(" ") for line in text.split("\n")])
    return _MANY_LINES.sub("\n\n", lines).strip()


def _pieces(source: str) -> Iterator[str]:
    at = 0
    while (start := source.find("<", at)) >= 0:
        yield _words(source[at:start])
        if source.startswith("<!--", start):
            end = source.find("-->", start + 4)
            at = end + 3
        elif source[start + 1 : start + 2] in "!?" or (name := _NAME.match(source, start + 1)):
            end = _end_of_tag(source, start)
            at = end + 1
        else:
            yield "<"
            at = start + 1
            continue
        if end < 0:
            return  # never closed: no mail client shows the rest
        if (name := _NAME.match(source, start + 1)) is None:
            continue
        tag = name.group().lower()
        yield _MARKS.get(tag, "")
        if tag in _LEFT_OUT:
            closing = _LEFT_OUT[tag].search(source, at)
            if closing is None:
                return
            at = closing.start()
    yield _words(source[at:])


def _end_of_tag(source: str, start: int) -> int:
    """The position of the next `>` outside a quoted attribute; -1 when there is none."""
    at, end = start, source.find(">", start)
    for _ in range(_MOST_QUOTES):
        if end < 0 or source.count('"', at, end) % 2 == 0:
            return end
        at = source.find('"', end)
        if at < 0:
            return end
        at += 1
        end = source.find(">", at)
    return end


def _words(text: str) -> str:
    """The text with its character references resolved, and one blank for each row of them."""
    if "&" in text:
        text = html.unescape(_ABSURD_REFERENCE.sub("\ufffd", text))
    if not text:
        return ""
    words = " ".join(text.split())
    if not words:
        return " "
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"
