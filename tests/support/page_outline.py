"""A page as a person meets it, in lines of text: headings, rows, links, buttons, forms with their fields.

Markup that shows nothing and asks for nothing is left out, so that a diff of two outlines is
what a visitor would notice.
"""

from html.parser import HTMLParser

Attributes = dict[str, str]

NESTING = frozenset(
    {"article", "details", "dialog", "dl", "fieldset", "form", "nav", "ol", "section", "select", "table", "ul"}
)
BLOCKS = NESTING | frozenset(
    {"address", "aside", "blockquote", "body", "caption", "dd", "div", "dt", "figcaption", "figure", "footer"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "legend", "li", "main", "option", "output", "p", "pre"}
    | {"summary", "tbody", "tfoot", "thead", "title", "tr"}
)
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
SILENT = frozenset({"script", "style", "head"})
SIGNS = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- ", "option": "option "}
CELLS = frozenset({"td", "th"})
APART = frozenset(["a", "bdi", "br", "button", "kbd", "label", "span", "text", "time"])
"""Elements that stand apart from the text around them."""
NAMED = ("title", "aria-label", "alt", "placeholder", "hx-get", "hx-post", "hx-sse:connect", "popovertarget")
"""Attributes that say something on whichever element they are."""
FIELD = ("type", "name", "value", "form", "formaction", "formmethod", "min", "max", "maxlength", "pattern", "list")
SWITCHES = ("checked", "selected", "disabled", "required", "readonly", "multiple", "hidden", "open")
FORM = ("method", "action", "enctype", "role")
FIELDS = frozenset({"input", "select", "textarea", "button", "option"})


def outline(html: str) -> str:
    """The outline of a document, or of a part of one."""
    parser = _Outline()
    parser.feed(html)
    parser.close()
    return "\n".join([*parser.lines, ""])


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line = ""
        self._depth = 0
        self._silent = 0
        self._addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in SILENT:
            self._silent += 1
        if tag in BLOCKS:
            self._end_line()
        if tag in CELLS and self._line:
            self._line += " | "
        if tag in APART:
            self._line += " "
        self._line += SIGNS.get(tag, "")
        if tag == "a":
            self._line += "["
            self._addresses.append(given.get("href", ""))
        self._line += _described(tag, given)
        if tag in NESTING:
            self._end_line()
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if tag in SILENT:
            self._silent -= 1
        if tag == "a" and self._addresses:
            self._line = f"{self._line.rstrip()}]({self._addresses.pop()})"
        if tag == "button":
            self._line = f"{self._line.rstrip()}}}"
        if tag in APART:
            self._line += " "
        if tag in BLOCKS:
            self._end_line()
        if tag in NESTING:
            self._depth -= 1

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._line += data

    def _end_line(self) -> None:
        if shown := " ".join(self._line.split()).replace("[ ", "["):
            self.lines.append(f"{'  ' * self._depth}{shown}")
        self._line = ""


def _described(tag: str, given: Attributes) -> str:
    """The part of an element that a visitor meets besides its text."""
    wanted = [*(FORM if tag == "form" else ()), *(FIELD if tag in FIELDS else ()), *NAMED]
    if tag == "input" and given.get("name") == "form_token":
        given = {**given, "value": ""}
    said = [f'{name}="{given[name]}"' for name in wanted if given.get(name)]
    said += [name for name in SWITCHES if name in given]
    match tag:
        case "form" | "select" | "input" | "textarea" | "dialog" | "details" | "table":
            return f"{{{' '.join([tag, *said])}}} " if said or tag != "table" else ""
        case "button":
            return f"{{{' '.join([tag, *said])}: "
        case _:
            return f"({' '.join(said)}) " if said else ""
