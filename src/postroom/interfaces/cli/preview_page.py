"""A preview as one page to look at: no scripts, nothing loaded, light and dark.

Everything in it that comes from mail was written by strangers: the template escapes it, and strips it of control
characters. Should anything slip through, the page's own policy lets no script run and nothing be loaded.
"""

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from markupsafe import Markup

from postroom.core.errors import BadInput
from postroom.interfaces.cli.preview_output import Shown, cost_line, headline, outcome
from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.rendering import make_environment, style_of
from postroom.operations.preview.preview import Previewed
from postroom.operations.preview.preview_summary import FateTally, Summary

MOST_ROWS = 2_000
MOST_BARS = 12
COLUMNS = 60
BEGINNING = b'<!doctype html><html lang="en"><head><meta charset="utf-8">'
STYLE = ("Tokens", "Ground", "Layout", "Panel", "Badge (tier, kind) and pill (state)", "Table and list row", "Charts")


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
    style = style_of(*STYLE, "Preview in a file")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    moments, series = _over_time(shown.rows)
    template = make_environment().get_template("preview.html")
    return template.render(
        style=Markup(style),  # noqa: S704
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        summary=summary,
        headline=headline(summary),
        about=_about(shown),
        numbers=_numbers(summary),
        shares=_shares(summary),
        moments=moments,
        series=series,
        cost=cost_line(summary.model),
        rows=shown.rows,
        fates=_fates,
        outcome=outcome,
        mood=_mood,
        most_bars=MOST_BARS,
        most_rows=MOST_ROWS,
    )


def _about(shown: Shown) -> str:
    summary = shown.summary
    span = "" if summary.since is None else f" · {summary.since:%Y-%m-%d} to {summary.until:%Y-%m-%d}"
    return f"{shown.user}{span} · rules: {shown.rules} · filters: {shown.filters}"


def _numbers(summary: Summary) -> Sequence[tuple[str, int]]:
    return (
        ("would leave the inbox", summary.leave_inbox),
        ("would need your approval", summary.wait),
        ("you would see first", summary.see_first),
        ("get a label or the like", summary.changed),
        ("stay as they are", summary.untouched),
    )


def _shares(summary: Summary) -> list[Part]:
    found = (
        ("leave the inbox", summary.leave_inbox, "acc"),
        ("would need your approval", summary.wait, "ask"),
        ("get a label or the like", summary.changed, "good"),
        ("stay as they are", summary.untouched + summary.refused, "dim"),
        ("your own, or skipped by a filter", summary.own + summary.skipped, "hist"),
    )
    return [Part(f"{name}: {count:,}", count, colour) for name, count, colour in found if count]


def _fates(tally: FateTally) -> list[Part]:
    return [
        Part("leave the inbox", tally.leave, "acc"),
        Part("would need your approval", tally.wait, "ask"),
        Part("stay", tally.stay, "good"),
    ]


def _over_time(rows: Sequence[Previewed]) -> tuple[list[datetime], list[Series]]:
    """Return the beginnings of equal spans of time, and how many messages of each would leave the inbox or stay."""
    dated = [(row.sent_at.astimezone(UTC), row.leaves_inbox) for row in rows if row.sent_at is not None]
    if not dated:
        return [], []
    first, last = min(at for at, _ in dated), max(at for at, _ in dated)
    step = max((last - first) / COLUMNS, timedelta(seconds=1))
    leave, stay = [0] * COLUMNS, [0] * COLUMNS
    for at, leaves in dated:
        (leave if leaves else stay)[min(int((at - first) / step), COLUMNS - 1)] += 1
    return [first + index * step for index in range(COLUMNS)], [
        Series("leave the inbox", leave, "acc"),
        Series("stay", stay, "dim"),
    ]


def _mood(row: Previewed) -> str:
    return "busy" if row.leaves_inbox else {"waits": "ask", "done": "good"}.get(row.result, "")
