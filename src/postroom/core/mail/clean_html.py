"""HTML of a stranger as a document that shows nothing but its own text, tables, styles and enclosed images.

The output contains only elements and attributes from a list, with all text escaped, so that a browser reads it exactly
as we do. There are no scripts, forms, frames, foreign elements, addresses to load from and links to follow; the title
of a link has its address. It takes linear time for any input, since no tree is built. The document that shows it has a
policy that loads and runs nothing (`interfaces/dashboard/mail_frame.py`).
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

LONGEST_HTML = 500_000
LONGEST_VALUE = 2_000
LONGEST_STYLE = 100_000
MOST_ATTRIBUTES = 40
LARGEST_IMAGES = 8 * 1_048_576
"""The characters of all enclosed images together, each counted as often as it is shown."""

_ELEMENTS = """
a abbr address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del details dfn div dl
dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section
small span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr
"""
_ATTRIBUTES = """
abbr align alt bgcolor border cellpadding cellspacing class clear color colspan dir face height hspace id lang noshade
nowrap open reversed role rowspan rules scope size span start style title type valign value vspace width
"""
ELEMENTS = frozenset(_ELEMENTS.split())
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
# The text between their tags is invisible to readers.
_UNSEEN = ("script", "style", "title", "template", "iframe", "noembed", "noframes", "xmp", "textarea", "select")
_CLOSING = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSEEN}
_NAME = re.compile(r"[a-zA-Z][^\s/>\x00]*+")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+|))?""")
_TAG_END = re.compile(r"[^>]*+>")
# Python refuses to parse numbers with thousands of digits; no character has such a number.
_ABSURD_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ENCLOSED = re.compile(r"data:image/(?:png|jpe?g|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]*+", re.IGNORECASE)
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*)", re.DOTALL)
_LOADING = re.compile(r"@(?:import|namespace|charset)[^;{}]*+;?|<!--|-->", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:url(?:-prefix)?|(?:-webkit-)?image-set|(?:-webkit-)?cross-fade|image|src|expression|element)\s*+\(",
    re.IGNORECASE,
)
_LINK = re.compile(r"(?:https?://|mailto:|tel:)", re.IGNORECASE)


class CleanHtml(NamedTuple):
    """The body of a document, and the omissions."""

    body: str
    remote_images: int
    is_cut: bool


def clean_html(source: str, images: Mapping[str, str] | None = None) -> CleanHtml:
    """Clean the first half a million characters. `images` are `data:` addresses by the ids that the HTML uses."""
    cleaning = _Cleaning(_CONTROL.sub("\ufffd", source[:LONGEST_HTML]), images or {})
    return CleanHtml("".join(cleaning.pieces()), cleaning.remote_images, len(source) > LONGEST_HTML)


class _Cleaning:
    def __init__(self, source: str, images: Mapping[str, str]) -> None:
        self._source = source
        self._images = images
        self._image_room = LARGEST_IMAGES
        self.remote_images = 0

    def pieces(self) -> Iterator[str]:
        source, at = self._source, 0
        while (start := source.find("<", at)) >= 0:
            yield _text(source[at:start])
            if source.startswith("<!--", start):
                end = source.find("-->", start + 4)
                at = len(source) if end < 0 else end + 3
            elif source[start + 1 : start + 2] in ("!", "?"):
                at = self._end_of_tag(start + 1)
            elif source.startswith("/", start + 1):
                name = _NAME.match(source, start + 2)
                at = self._end_of_tag(start + 2)
                yield _closing(name.group().lower()) if name else ""
            elif name := _NAME.match(source, start + 1):
                written, at = self._start_tag(name.group().lower(), name.end())
                yield written
            else:
                yield "&lt;"
                at = start + 1
        yield _text(source[at:])

    def _start_tag(self, name: str, at: int) -> tuple[str, int]:
        """The cleaned tag, and the position after it and its content."""
        given, at = self._attributes(at)
        if name in _CLOSING:
            closing = _CLOSING[name].search(self._source, at)
            end = len(self._source) if closing is None else closing.start()
            content = self._source[at : min(end, at + LONGEST_STYLE)] if name == "style" else ""
            return (f"<style>{_style(content)}</style>" if content else ""), end
        if name == "body":
            name = "div"
        if name not in ELEMENTS:
            return "", at
        kept = {key: _attribute(key, value) for key, value in given.items() if key in ATTRIBUTES}
        if name == "img":
            kept["src"] = self._image(given.get("src", ""))
        elif name == "a" and _LINK.match(given.get("href", "").strip()):
            kept |= {"title": given["href"].strip(), "class": "postroom-link"}
        written = "".join(f' {key}="{html.escape(value[: _longest(key)])}"' for key, value in kept.items() if value)
        return f"<{name}{written}>", at

    def _attributes(self, at: int) -> tuple[dict[str, str], int]:
        """The first attributes of the tag at this position, the first of each name, and the position after the tag."""
        given: dict[str, str] = {}
        while found := _ATTRIBUTE.match(self._source, at):
            at = found.end()
            if len(given) < MOST_ATTRIBUTES:
                value = found[2] or ""
                value = value[1:-1] if value[:1] in ('"', "'") else value
                given.setdefault(found[1].lower(), _unescape(value))
        return given, self._end_of_tag(at)

    def _end_of_tag(self, at: int) -> int:
        end = _TAG_END.match(self._source, at)
        return len(self._source) if end is None else end.end()

    def _image(self, source: str) -> str:
        source = source.strip()
        if source[:4].lower() == "cid:":
            return self._enclosed_image(unquote(source[4:]))
        if _ENCLOSED.fullmatch(source):
            return source
        self.remote_images += bool(source)
        return ""

    def _enclosed_image(self, id: str) -> str:
        """The image of this id; a message that repeats one image thousands of times gets it a few times."""
        found = self._images.get(id, "")
        if len(found) > self._image_room:
            return ""
        self._image_room -= len(found)
        return found


def _longest(name: str) -> int:
    return LARGEST_IMAGES if name == "src" else LONGEST_VALUE


def _closing(name: str) -> str:
    name = "div" if name == "body" else name
    return f"</{name}>" if name in ELEMENTS else ""


def _attribute(name: str, value: str) -> str:
    return _style(value) if name == "style" else value


def _style(css: str) -> str:
    """The styles without what could name an address. Escapes could hide one, so with them nothing is kept."""
    if "\\" in css:
        return ""
    css = _LOADING.sub(" ", _COMMENT.sub(" ", css))
    return _ADDRESS.sub("none(", css).replace("<", " ")


def _unescape(text: str) -> str:
    if "&" not in text:
        return text
    return _CONTROL.sub("\ufffd", html.unescape(_ABSURD_REFERENCE.sub("\ufffd", text)))


def _text(text: str) -> str:
    return html.escape(_unescape(text), quote=False)
