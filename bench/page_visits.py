"""The visits that are measured: every page, and the filters that people use most, of a filled database."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from .page_fill import made_id, moment
from .page_history import BEGAN_MS, DAY_MS, Span
from .searching import word

COMMON, RARE = word(2), word(15_000)


class Visit(NamedTuple):
    name: str
    path: str


def visits(span: Span) -> list[Visit]:
    """Deep pages begin in the middle of the history, as if somebody had followed the link to older ones for long."""
    middle = span.count // 2
    at = span.start_ms + middle * span.step_ms
    deep = quote(f"{moment(at):%Y-%m-%dT%H:%M:%S.%f}Z/{made_id(3, at, middle)}")
    week_ago = quote(f"{moment(span.until_ms - 7 * DAY_MS):%Y-%m-%dT%H:%M:%S.%f}Z_999999999")
    pages: Mapping[str, Mapping[str, str]] = {
        "/": {"24 h": "/", "7 d": "/?window=7d", "30 d": "/?window=30d"},
        "/mail": {
            "newest": "/mail",
            "deep": f"/mail?before={deep}",
            "mail": "/mail?kind=mail",
            "events": "/mail?kind=event",
            "last hour": "/mail?since=1h",
            "7 d": "/mail?since=7d",
            "high priority": "/mail?tier=high_priority",
            "history": "/mail?tier=history",
            "needs approval": "/mail?state=asking",
            "failed": "/mail?state=failed",
            "undone": "/mail?state=undone",
            "done": "/mail?state=done",
            "done, deep": f"/mail?state=done&before={deep}",
            "by a rule": "/mail?by=rule",
            "by you": "/mail?by=you",
            "an account": "/mail?account=m3%40team.example",
            "search: a word of many": f"/mail?q={quote(COMMON)}",
            "search: a rare word": f"/mail?q={quote(RARE)}",
            "search: one message": f"/mail?q=ref{middle}",
            "search: a sender": "/mail?q=from%3Ap77",
            "search and a filter": f"/mail?q={quote(RARE)}&state=done",
        },
        "/mail/…": {
            "newest": f"/mail/{_message(span, span.count - 40)}",
            "old": f"/mail/{_message(span, middle)}",
        },
        "/approvals": {"first": "/approvals"},
        "/rules": {"all": "/rules", "one": f"/rules/{made_id(9, BEGAN_MS, 7)}", "new": "/rules/new"},
        "/filters": {"all": "/filters"},
        "/connectors": {
            "all": "/connectors",
            "one, 24 h": "/connectors/gmail/gmail%3Auser%3Am3%40team.example",
            "one, 7 d": "/connectors/gmail/gmail%3Auser%3Am3%40team.example?window=7d",
            "one, 30 d": "/connectors/gmail/gmail%3Auser%3Am3%40team.example?window=30d",
        },
        "/backfill": {"all": "/backfill", "one": f"/backfill/{made_id(14, BEGAN_MS, 7)}", "new": "/backfill/new"},
        "/queues": {
            "24 h": "/queues",
            "7 d": "/queues?window=7d",
            "30 d": "/queues?window=30d",
            "gateway": "/queues?queue=gateway",
            "gateway, 7 d": "/queues?queue=gateway&window=7d",
        },
        "/jobs": {
            "24 h": "/jobs",
            "1 h": "/jobs?window=1h",
            "7 d": "/jobs?window=7d",
            "30 d": "/jobs?window=30d",
            "deep": f"/jobs?before={middle}",
            "ready": "/jobs?stage=ready",
            "scheduled": "/jobs?stage=scheduled",
            "retrying": "/jobs?stage=retrying",
            "parked": "/jobs?stage=parked",
            "failed": "/jobs?stage=failed",
            "failed, deep": f"/jobs?stage=failed&before={week_ago}",
            "completed": "/jobs?stage=completed",
            "a type": "/jobs?type=approval.notify",
            "a type that none has": "/jobs?type=retention.prune",
            "failed, an account": "/jobs?stage=failed&account=m3%40team.example",
            "an error": "/jobs?error=timed",
            "failed, an error that none has": "/jobs?stage=failed&error=nothing+like+this",
        },
        "/jobs/…": {"one": f"/jobs/{made_id(11, at, middle)}"},
        "/outbound": {
            "1 h": "/outbound",
            "24 h": "/outbound?window=24h",
            "7 d": "/outbound?window=7d",
            "by wait": "/outbound?order=wait",
            "a tenant": "/outbound?tenant=tenant-77",
            "failed": "/outbound?state=failed",
            "deep": f"/outbound?before={middle // 2}",
            "simulate": "/outbound/simulate",
        },
        "/outbound/…": {"one": f"/outbound/{outgoing_id(span, middle // 2)}"},
        "/audit": {
            "newest": "/audit",
            "deep": f"/audit?before={middle // 10}",
            "of a person": "/audit?actor=mara",
            "of an act": "/audit?action=rule.edit",
            "of both": "/audit?actor=agent+9&action=rule.edit",
            "of both, none": "/audit?actor=nobody&action=rule.edit",
        },
        "/settings": {"all": "/settings", "sign-in": "/settings/sign-in"},
    }
    return [Visit(f"{page} {what}", path) for page, kinds in pages.items() for what, path in kinds.items()]


def _message(span: Span, number: int) -> object:
    return made_id(3, span.start_ms + number * span.step_ms, number)


def outgoing_id(span: Span, number: int) -> object:
    step = 35 * DAY_MS * 2 // span.count
    return made_id(16, span.start_ms + span.count * span.step_ms - (span.count // 2 - number) * step, number)
