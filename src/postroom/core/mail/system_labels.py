"""Gmail's labels that exist in every mailbox: their names are not a user's words."""

from collections.abc import Iterable

CATEGORIES = frozenset(f"CATEGORY_{name}" for name in ("PERSONAL", "SOCIAL", "PROMOTIONS", "UPDATES", "FORUMS"))
SYSTEM_LABELS = CATEGORIES | {
    "INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED", "IMPORTANT", "CHAT",
}  # fmt: skip


def split_labels(labels: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the labels of every mailbox, and those that the user named."""
    known = list(labels)
    return [each for each in known if each in SYSTEM_LABELS], [each for each in known if each not in SYSTEM_LABELS]
