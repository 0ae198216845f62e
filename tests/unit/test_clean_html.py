"""HTML of strangers, cleaned: what honest mail needs stays, and nothing that runs, loads, submits or leads away."""

import random
import re
from html.parser import HTMLParser

import pytest

from postroom.core.mail.clean_html import ATTRIBUTES, ELEMENTS, clean_html
from postroom.core.mail.html_message import html_message
from support.processor_time import MILLION, within_turns

PIXEL = "data:image/png;base64,iVBORw0KGgo="
LETTER = """<html><head><title>Sale</title><style>.price { color: red } @import url(//x.example/a.css);</style></head>
<body bgcolor="#eeeeee"><table width="600"><tr><td style="padding: 4px; background: url('http://x.example/b.png')">
<p class=price>Only &euro;5 &amp; up</p><a href="https://shop.example/buy?a=1&amp;b=2">Buy</a>
<img src="http://x.example/t.gif" alt="Shoe">
<img src="cid:logo@shop" alt="Logo"></td></tr></table></body></html>"""


class Written(HTMLParser):
    """All tags and attributes of a document, as another parser reads them."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def safe(document: str) -> bool:
    written = Written(document)
    addresses = [value for name, value in written.attributes if name == "src"]
    styles = " ".join(re.findall(r"<style>(.*?)</style>", document, re.DOTALL)).lower()
    styles += " ".join(value for name, value in written.attributes if name == "style").lower()
    return (
        written.tags <= ELEMENTS | {"style"}
        and {name for name, _ in written.attributes} <= ATTRIBUTES | {"src"}
        and all(address.startswith("data:image/") for address in addresses)
        and not any(word in styles for word in ("url(", "@import", "\\", "image-set("))
    )


def test_an_honest_letter_keeps_its_looks_and_loses_what_it_would_load() -> None:
    body, remote_images, is_cut = clean_html(LETTER, {"logo@shop": PIXEL})
    assert ".price { color: red }" in body
    assert '<p class="price">Only €5 &amp; up</p>' in body
    assert '<table width="600">' in body
    assert '<div bgcolor="#eeeeee">' in body
    assert '<a title="https://shop.example/buy?a=1&amp;b=2" class="postroom-link">Buy</a>' in body
    assert '<img alt="Shoe">' in body
    assert f'src="{PIXEL}"' in body
    assert "Sale" not in body
    assert "t.gif" not in body
    assert (remote_images, is_cut) == (1, False)
    assert safe(body)


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<scr<script>ipt>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<img """><script>alert(1)</script>">',
        "<svg><style><img src=x onerror=alert(1)></style></svg>",
        "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
        "<style></style/><img src=x onerror=alert(1)></style>",
        "<style><!--</style><script>alert(1)</script>--></style>",
        "<textarea></textarea/><script>alert(1)</script>",
        "<xmp></xmp\x0c><script>alert(1)</script>",
        "<a href='javascript:alert(1)'>x</a><a href=' https://x.example' onclick=alert(1)>y</a>",
        "<p style='background:u\\72l(http://x.example)'>x</p>",
        "<p style='background:ur/**/l(http://x.example)'>x</p>",
        "<p style='background: image-set(\"http://x.example/a.png\" 1x)'>x</p>",
        "<base href=//x.example><link rel=dns-prefetch href=//x.example><meta http-equiv=refresh content=0>",
        "<form action=//x.example><input name=a><button>b</button></form><object data=//x.example></object>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe><embed src=//x.example><video src=//x.example>",
        "<p title='&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;'>x</p>",
        "<p title=`><script>alert(1)</script>`>",
        "<img src='data:image/svg+xml;base64,PHN2Zz4='><img src='data:text/html,x'>",
        "<table background=//x.example><td background=//x.example>",
        "<p\x00onclick=alert(1)>\x00<\x00script>",
        "<!--><img src=x onerror=alert(1)>-->",
        "<plaintext><p onclick=x>",
    ],
)
def test_attacks_leave_nothing_that_runs_or_loads(attack: str) -> None:
    assert safe(clean_html(attack).body)


def test_any_mixture_of_pieces_is_written_safely() -> None:
    seed = random.randrange(2**32)
    chosen = random.Random(seed)
    pieces = "< > / ! - = ' \" ` & ; # a script style img svg onerror src href url( \\ @import /* */ <!-- --> </style> "
    pieces += (
        "<style> <script> </script> <p <a\x00 \n data:image/png;base64,AA cid:1 &lt; &#60; title ( ) { } <textarea>"
    )
    for _ in range(2_000):
        source = "".join(chosen.choices(pieces.split(" "), k=chosen.randint(1, 30)))
        assert safe(clean_html(source, {"1": PIXEL}).body), f"seed {seed}: {source!r}"


@pytest.mark.parametrize(
    "piece",
    ["<", "<b>", "<p a=1", "<!--", "<style>/*", "</", "<p a='\">", "<script>", "&", "<p style=url(", "<p " + "a " * 50],
)
def test_hostile_html_takes_linear_time(piece: str) -> None:
    source = (piece * 100_000)[:100_000]
    within_turns(15 * MILLION, lambda: clean_html(source))


def test_an_image_that_is_shown_a_thousand_times_is_written_a_few_times() -> None:
    large = "data:image/png;base64," + "A" * 1_000_000
    assert len(clean_html("<img src=cid:1>" * 1_000, {"1": large}).body) < 10_000_000


MIXED = b"""Content-Type: multipart/mixed; boundary=m

--m
Content-Type: multipart/related; boundary=r

--r
Content-Type: multipart/alternative; boundary=a

--a
Content-Type: text/plain

plain
--a
Content-Type: text/html; charset=utf-8

<p>rich <img src=cid:i@x></p>
--a--
--r
Content-Type: image/png; name=i.png
Content-ID: <i@x>
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--r--
--m
Content-Type: text/plain

-- list <footer>
--m
Content-Type: text/html; name=page.html
Content-Disposition: attachment

<p>attached</p>
--m--
"""


def test_of_alternatives_the_html_is_taken_with_its_images_and_the_footer_beside_it() -> None:
    shown = html_message(MIXED.replace(b"\n", b"\r\n"))
    assert shown is not None
    assert shown.body == f'<p>rich <img src="{PIXEL}"></p>\n<pre>-- list &lt;footer&gt;</pre>'
    assert html_message(b"Content-Type: text/plain\r\n\r\n<p>no HTML</p>\r\n") is None
