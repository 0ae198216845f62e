"""A preview as one page to look at: no scripts, nothing loaded, light and dark.

Everything in it that comes from mail was written by strangers: it is escaped, stripped of control characters, and
isolated from the direction of the text around it. Should anything slip through, the page's own policy lets no script
run and nothing be loaded.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from postroom.core.errors import BadInput
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.preview_charts import Bar, Share, bars, over_time, shares
from postroom.interfaces.cli.preview_output import Shown, cost_line, headline, outcome
from postroom.interfaces.cli.preview_style import STYLE
from postroom.operations.preview.preview import Previewed
from postroom.operations.preview.preview_summary import Summary, Tally

MOST_ROWS = 2_000
MOST_BARS = 12
LONGEST_TEXT = 300
BEGINNING = b'<!doctype html><html lang="en"><head><meta charset="utf-8">'


def write_page(path: Path, shown: Shown) -> None:
    """Write the page to a file that only its owner can read: it has senders and subjects in it. Only an earlier page
    is replaced, never a mailbox whose name was given by mistake.
    """
    text = page(shown).encode("utf-8", "replace")
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to read it.
        with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600), "r+b") as file:
            if not _may_be_replaced(file):
                raise BadInput("--html", f"{str(path)!r} exists and is no page of a preview", "give another path")
            os.fchmod(file.fileno(), 0o600)
            file.truncate(0)
            file.write(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput("--html", f"{str(path)!r} cannot be written ({reason})", "give another path") from None


def _may_be_replaced(file: BinaryIO) -> bool:
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        return False
    start = file.read(len(BEGINNING))
    file.seek(0)
    return start in (b"", BEGINNING)


def page(shown: Shown) -> str:
    """The whole page as HTML."""
    summary = shown.summary
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = [
        f"<header><h1>{text(headline(summary))}</h1><p>{text(_under(shown))}</p></header>",
        _numbers(summary),
        _panel("All of it", shares(_shares(summary))),
        _panel("Over time", over_time(shown.rows)) if summary.since is not None else "",
        _panel("By rule", _tallies(summary.by_rule)),
        _panel("By sender", _tallies(summary.by_sender)),
        _panel("The most doubtful decisions", _doubtful(summary.doubtful)),
        _panel("What a model would cost", f"<p>{text(cost_line(summary.model))}.</p>"),
        _panel("Each message", _messages(shown.rows)),
        "<footer>Nothing was changed, stored or sent. This page loads nothing and runs no script.</footer>",
    ]
    return "\n".join(
        [
            BEGINNING.decode(),
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">',
            f"<title>Postroom preview of {summary.messages:,} messages</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *filter(None, body),
            "</main></body></html>\n",
        ]
    )


def text(value: object, longest: int = LONGEST_TEXT) -> str:
    """Text from anywhere, safe inside an element and inside an attribute in quotation marks."""
    shown = cell(value)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def theirs(value: object) -> str:
    """Text that a stranger wrote, isolated from the direction of what surrounds it."""
    return f"<bdi>{text(value)}</bdi>"


def _under(shown: Shown) -> str:
    summary = shown.summary
    span = "" if summary.since is None else f" · {summary.since:%Y-%m-%d} to {summary.until:%Y-%m-%d}"
    return f"{shown.user}{span} · rules: {shown.rules} · filters: {shown.filters}"


def _numbers(summary: Summary) -> str:
    found = (
        ("leave", summary.leave_inbox, "would leave the inbox"),
        ("ask", summary.wait, "wait for your yes"),
        ("first", summary.see_first, "you would see first"),
        ("label", summary.changed, "get a label or the like"),
        ("stay", summary.untouched, "stay as they are"),
    )
    tiles = [f'<li class="{name}"><b>{count:,}</b> {words}</li>' for name, count, words in found]
    return f'<ul class="tiles">{"".join(tiles)}</ul>'


def _shares(summary: Summary) -> list[Share]:
    return [
        Share("leave", "leave the inbox", summary.leave_inbox),
        Share("ask", "wait for your yes", summary.wait),
        Share("label", "get a label or the like", summary.changed),
        Share("stay", "stay as they are", summary.untouched + summary.refused),
        Share("none", "your own, or not taken in", summary.own + summary.skipped),
    ]


def _tallies(tallies: Sequence[Tally]) -> str:
    if not tallies:
        return "<p>None.</p>"
    return bars([Bar(text(each.name, 60), text(each.action, 60), each) for each in tallies[:MOST_BARS]])


def _doubtful(rows: Sequence[Previewed]) -> str:
    if not rows:
        return "<p>None.</p>"
    items = [
        f"<li><b>{theirs(row.subject)}</b> from {theirs(row.sender)}<br>{text(outcome(row))}, by "
        f"{text(' + '.join(row.rules))}: <em>{text('; '.join(row.doubts))}</em></li>"
        for row in rows
    ]
    return f'<ol class="doubts">{"".join(items)}</ol>'


def _messages(rows: Sequence[Previewed]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("From", "Subject", "Would be done", "By", "Tier", "Why this tier"))
    more = f"<p>The first {MOST_ROWS:,} of {len(rows):,}.</p>" if len(rows) > MOST_ROWS else ""
    lines = "\n".join(map(_row, rows[:MOST_ROWS]))
    return f'{more}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _row(row: Previewed) -> str:
    style = "leave" if row.leaves_inbox else {"waits": "ask", "done": "label"}.get(row.result, "stay")
    cells: Iterable[str] = (
        theirs(row.sender),
        theirs(row.subject),
        f'<span class="{style}">{text(outcome(row))}</span>',
        text(" + ".join(row.rules)),
        text(row.policy_tier),
        text(row.assignment_rule),
    )
    return f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _panel(title: str, inner: str) -> str:
    return f"<section><h2>{title}</h2>{inner}</section>"
