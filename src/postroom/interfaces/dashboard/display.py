"""Make a stranger's text safe to show: one line, bounded, and readable as what it is.

Jinja always escapes HTML. This is about what escaping does not change: control characters, marks that reverse the
direction of the text ("gpj.exe" shown as "exe.jpg"), invisible padding, stacks of combining marks that cover the lines
above, and subjects of ten kilobytes.
"""

import unicodedata
from datetime import UTC, date, datetime, timedelta, tzinfo
from uuid import UUID

import orjson

from postroom.core.short_ids import short_id

MARKS_PER_LETTER = 4
# Not those of the process's locale: pages are in English.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
TIER_KINDS = {
    **{"high_priority": "high", "interactive": "int", "default": "def", "history": "hist"},
    **{"p0": "high", "p1": "int", "p2": "def", "p3": "hist", "P0": "high", "P1": "int", "P2": "def", "P3": "hist"},
}
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
# Joiners shape letters and emoji, so they stay. The silent ones (soft hyphen, zero-width space, harmless direction
# marks) are common in honest mail and mean nothing in one line of text, so they are removed.
_JOINERS = frozenset("\u200c\u200d")
_SILENT = dict.fromkeys(map(ord, "\u00ad\u061c\u180e\u200b\u200e\u200f\u2060\ufeff"))
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
# Letters and marks by their category, but nothing is to be seen of them, and a line cannot break between them.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def shown(text: str | None, limit: int = 200) -> str:
    """Return the text as one line of at most `limit` characters; spell out what is invisible, as `[U+202E]`."""
    # Enough for any honest text of that length; the rest is never read, however long it is.
    head = (text or "")[: limit * 4]
    parts: list[str] = []
    length = marks = 0
    for char in " ".join(head.translate(_SILENT).split()):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > MARKS_PER_LETTER:
            continue
        part = _spell(char) if category in _UNSEEN or char in _BLANKS else char
        if length + len(part) > limit - 1:
            return "".join(parts).rstrip() + "…"
        parts.append(part)
        length += len(part)
    return "".join(parts) + ("…" if len(head) < len(text or "") else "")


def _spell(char: str) -> str:
    code = ord(char)
    if char in _JOINERS:
        return char
    return _PICTURES.get(code) or f"[U+{code:04X}]"


def several_lines(text: str | None, longest: int = 2_000, most: int = 5_000) -> str:
    """Return a text of several lines, each as `shown` shows it; several blank lines become one."""
    found: list[str] = []
    for line in (text or "").splitlines()[:most]:
        clean = shown(line, longest)
        if clean or (found and found[-1]):
            found.append(clean)
    return "\n".join(found)


def words(name: str | None) -> str:
    """Return a name from the code, such as `high_priority`, as words."""
    return shown((name or "").replace("_", " "), 60)


def verdict(decision: str) -> str:
    """Return a decision such as `apply_label Tax_2026`: the verb as words, its object unchanged."""
    verb, _, rest = decision.partition(" ")
    return f"{words(verb)} {shown(rest, 80)}".rstrip()


def tier_kind(tier: str | None) -> str:
    """Return the kind that gives a tier of mail, or a level of events, its colour and its bars."""
    return TIER_KINDS.get(tier or "", "def")


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def clock(moment: datetime, zone: tzinfo, now: datetime) -> str:
    """Format a time in a zone: `21:48:07` today, `4 Mar, 21:48` this year, `4 Mar 2025, 21:48` before or after."""
    local, today = moment.astimezone(zone), now.astimezone(zone)
    if local.date() == today.date():
        return f"{local:%H:%M:%S}"
    return f"{day(local)}{'' if local.year == today.year else f' {local.year}'}, {local:%H:%M}"


def exact(moment: datetime, zone: tzinfo) -> str:
    """Format a time so that nothing is open: `Wednesday, 4 March 2026, 21:48:07 CET`."""
    local = moment.astimezone(zone)
    weekday, month = WEEKDAYS[local.weekday()], MONTHS[local.month - 1]
    return f"{weekday}, {local.day} {month} {local.year}, {local:%H:%M:%S} {zone_letters(local)}"


def day(local: date) -> str:
    """Format a day: `4 Mar`."""
    return f"{local.day} {MONTHS[local.month - 1][:3]}"


def zone_letters(local: datetime) -> str:
    """Return how a zone is called at a time of its own: `CET`, `UTC`, or `UTC+0530` where it has no letters."""
    letters = local.tzname() or "UTC"
    return letters if letters[:1].isalpha() else f"UTC{letters}"


def span(length: timedelta | float) -> str:
    """Format a length of time, or seconds, by its largest unit: `40 ms`, `1.4 s`, `3 min`, `2.5 h`, `6 d`."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{max(1, round(seconds * 1000)) if seconds > 0 else 0} ms"


def cents(amount: float) -> str:
    """Format US cents as dollars."""
    return f"${amount / 100:,.2f}"


def json_shown(value: object) -> str:
    """Format settings and states, such as those of the audit log, as one bounded line."""
    return shown(orjson.dumps(value, default=str).decode(), 600)


def brief(id: str) -> str:
    """Return an id as people read it: the short form of our own, any other as it is."""
    try:
        return short_id(UUID(id))
    except ValueError:
        return id


def grouped(number: int) -> str:
    return f"{number:,}"
