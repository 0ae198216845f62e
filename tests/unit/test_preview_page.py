"""The page of a preview: complete, and safe whatever strangers wrote."""

import base64
import hashlib
import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

from postroom.core.actions.safety import Policy
from postroom.core.mail.files import MailFile
from postroom.core.mail.tiers import Known
from postroom.core.rules.starter import drafts_of, starters
from postroom.interfaces.cli.preview_output import Shown
from postroom.interfaces.cli.preview_page import page
from postroom.operations.preview.arrivals import Recipient
from postroom.operations.preview.preview import Previewed, PreviewRules, preview_mail
from postroom.operations.preview.preview_rules import rules_of
from postroom.operations.preview.preview_summary import summarise
from postroom.settings.sections import ModelSettings
from support.written_mail import MESSAGES, OWNER

NOW = datetime(2026, 11, 17, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    "</style><script src=//x.example></script>",
    "\"><img src=x onerror=alert(1)> '",
    "</bdi></td></table><iframe src=https://x.example>",
    "&lt;b&gt; &amp; <svg onload=alert(1)>",
    "\u202egnp.exe \x1b[2J \x00 \u2028",
    "javascript:alert(1) {{7*7}} ]]> <!-- -->",
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "h1", "h2", "p", "ul"),
    *("ol", "li", "b", "em", "br", "bdi", "span", "div", "table", "thead", "tbody", "tr", "th", "td"),
    *("dl", "dt", "dd", "svg", "rect", "text", "path"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "viewbox", "role", "aria-label"),
    *("x", "y", "width", "height", "text-anchor", "d", "preserveaspectratio", "aria-hidden", "data-mood"),
}


class Elements(HTMLParser):
    """Collects the elements of a page, their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def rows() -> list[Previewed]:
    files = [MailFile(str(number), mail.raw(number)) for number, mail in enumerate(MESSAGES)]
    chosen = PreviewRules(rules_of(drafts_of(starters())), Policy())
    return preview_mail(files, chosen, Recipient(OWNER, Known.of([OWNER])), NOW)


def shown(found: list[Previewed]) -> Shown:
    return Shown(found, summarise(found, ModelSettings.model_validate({})), "all", "the default ones", OWNER)


def test_the_page_has_every_message_and_the_summary() -> None:
    text = "".join(Elements(page(shown(rows()))).text)
    assert f"Of {len(MESSAGES)} messages: 9 would leave the inbox" in text
    for mail in MESSAGES:
        assert mail.subject in text


def test_nothing_that_a_stranger_writes_becomes_part_of_the_page() -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(20):
        found = [
            replace(row, sender=rng.choice(HOSTILE), subject=rng.choice(HOSTILE), sender_name=rng.choice(HOSTILE))
            for row in rows()
        ]
        found = [replace(row, rules=[rng.choice(HOSTILE)], doubts=[rng.choice(HOSTILE)], doubt=1) for row in found]
        written = page(shown(found))
        elements = Elements(written)
        assert elements.tags <= ALLOWED
        assert elements.names <= ATTRIBUTES
        assert not re.search("[\x00\x1b\u202e\u2028]", written)


def test_the_pages_own_policy_allows_its_style_and_nothing_else() -> None:
    written = page(shown(rows()))
    style = written.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src &#39;none&#39;; style-src &#39;sha256-{digest}&#39;; "
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}' in written
    assert " style=" not in written
    assert "http://" not in written + style
    assert "https://" not in written + style
    assert "url(" not in style


def test_a_preview_of_one_undated_message_has_a_page_too() -> None:
    [row] = [replace(row, sent_at=None) for row in rows()[:1]]
    assert "Of 1 message: 0 would leave" in page(shown([row]))
