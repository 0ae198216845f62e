"""The page of a preview in a real browser: whatever strangers wrote, no script runs, nothing is asked for, and the
layout holds.
"""

import subprocess
import sys
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Request

from support.chromium import BrowserErrors

OWNER = "mara@lindqvist.example"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=http://127.0.0.1:9/x onerror=alert(1)>',
    "</title></style></svg><svg onload=alert(1)>",
    "<style>@import 'http://127.0.0.1:9/x'</style><link rel=stylesheet href=//127.0.0.1:9/y>",
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/"><base href=http://127.0.0.1:9/>',
    "' onmouseover='alert(1)' style='position:fixed;inset:0",
    "&lt;script&gt;alert(1)&lt;/script&gt;&#60;b&#62;",
    "\u202egnp.exe\u202c \u2066isolate \u200f\u061c",
    "javascript:alert(1) data:text/html,<script>alert(1)</script>",
    "W" * 900,
    "\u0301" * 500,
    "\ufdfd" * 80,
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= 7*7 %>",
)


def write_mail(folder: Path) -> None:
    for number, text in enumerate(HOSTILE):
        message = EmailMessage()
        message["From"] = f'"{text[:300].replace(chr(92), "").replace(chr(34), "")}" <a{number}@shop.example>'
        message["To"], message["Subject"] = OWNER, text
        message["Date"] = "Tue, 17 Nov 2026 08:00:00 +0000"
        message.set_content(text)
        message.add_attachment(b"x", "application", "pdf", filename=text[:100])
        (folder / f"{number}.eml").write_bytes(message.as_bytes())


def write_page(folder: Path) -> Path:
    mail, html, rules = folder / "mail", folder / "page.html", folder / "rules.json"
    mail.mkdir()
    write_mail(mail)
    rules.write_text('[{"name": "<img src=x onerror=alert(1)>", "if": {"has_attachment": true}, "then": "archive"}]')
    code = "from postroom.app import main; main()"
    command = [sys.executable, "-c", code, "preview", str(mail), "--user", OWNER, "--rules", str(rules)]
    subprocess.run(
        [*command, "--html", str(html), "--data-dir", str(folder / "data")], check=True, capture_output=True, cwd=folder
    )
    return html


@pytest.mark.parametrize("width", [360, 1280])
async def test_no_script_runs_nothing_is_asked_for_and_the_layout_holds(
    page: Page, complaints: BrowserErrors, tmp_path: Path, width: int
) -> None:
    html = write_page(tmp_path)
    asked: list[str] = []
    page.on("request", lambda request: _note(request, asked))
    await page.set_viewport_size({"width": width, "height": 900})
    await page.goto(html.as_uri())
    await page.wait_for_load_state("networkidle")
    found: dict[str, Any] = await page.evaluate(_MEASURED)
    assert (asked, list(complaints)) == ([html.as_uri()], [])
    assert found["active"] == []
    assert found["rows"] == len(HOSTILE)
    assert found["width"] <= width, "the page is wider than the window"
    assert found["spilling"] == [], "text leaves its panel"


def _note(request: Request, asked: list[str]) -> None:
    asked.append(request.url)


_MEASURED = """() => {
  const kinds = "script, img, iframe, link, object, embed, base, form, a, [onload], [onerror], [onmouseover]";
  const active = [...document.querySelectorAll(kinds)];
  const spilling = [...document.querySelectorAll("section, header, footer")].filter((panel) => {
    const edge = panel.getBoundingClientRect().right + 1;
    return [...panel.querySelectorAll("p, li, h1, h2, svg text")].some((each) =>
      !each.closest(".wide") && each.getBoundingClientRect().right > edge);
  });
  return {
    active: active.map((each) => each.outerHTML.slice(0, 80)),
    rows: document.querySelectorAll("tbody tr").length,
    width: document.documentElement.scrollWidth,
    spilling: spilling.map((each) => each.textContent.slice(0, 120)),
  };
}"""
