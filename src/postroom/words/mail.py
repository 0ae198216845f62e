"""Words for mail: where it is, the filters of its list, and what a preview says of it."""

from collections.abc import Mapping

PLACES = {"INBOX": "the inbox", "TRASH": "the trash", "SPAM": "spam", "SENT": "sent mail", "DRAFT": "the drafts"}
SPANS = {"today": "today", "1h": "last hour", "24h": "last 24 hours", "7d": "last 7 days", "30d": "last 30 days"}
LIST_STATES = {
    "asking": "needs approval",
    "failed": "failed",
    "undone": "undone",
    "done": "done",
    "hidden": "hidden",
}
DECIDERS = {"rule": "a rule", "model": "the model", "you": "you", "agent": "an agent"}
PREVIEWED: Mapping[str, str] = {
    "done": "",
    "waits": "needs your approval",
    "refused": "refused",
    "stays": "stays",
    "model": "ask the model",
    "own": "your own mail",
    "skipped": "skipped by a filter",
}
