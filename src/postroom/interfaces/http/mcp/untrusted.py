"""Separates text by strangers and models in the answers of tools, and removes characters that could act on a reader.

Answers go to agents, which follow instructions, and to terminals, which follow escape sequences. So text by strangers
and models is under `untrusted` and nowhere else, and answers contain no control characters, escape sequences, or
characters that hide or reorder text. Only connectors get text unchanged, since they need the exact bytes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from postroom.core.harmless import harmless

Answer = TypeVar("Answer")

# Labels that every mailbox has; nobody wrote their names.
SYSTEM_LABELS = frozenset(
    {
        "INBOX",
        "SENT",
        "DRAFT",
        "TRASH",
        "SPAM",
        "UNREAD",
        "STARRED",
        "IMPORTANT",
        "CHAT",
        "CATEGORY_PERSONAL",
        "CATEGORY_SOCIAL",
        "CATEGORY_PROMOTIONS",
        "CATEGORY_UPDATES",
        "CATEGORY_FORUMS",
    }
)


def cleaned(value: Answer) -> Answer:
    """The value with every text in it made harmless, including the keys of objects."""
    return cast("Answer", _cleaned(value))


def _cleaned(value: object) -> object:
    match value:
        case str():
            return harmless(value)
        case dict():
            members = cast("dict[Any, object]", value)
            return {_cleaned(name): _cleaned(each) for name, each in members.items()}
        case list() | tuple():
            return [_cleaned(each) for each in cast("Sequence[object]", value)]
        case _:
            return value


def marked_envelope(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope as consumers get it: values that Postroom checked against closed lists, and everything else, which
    strangers wrote, in the same form under `untrusted`."""
    source, event, control = (cast("Mapping[str, Any]", envelope.get(part) or {}) for part in _PARTS)
    kind = event.get("kind")
    trusted_event = {"observed_at": event.get("observed_at")} | ({"kind": kind} if is_plain(kind) else {})
    known = {"schema_version", *_PARTS}
    return {
        "schema_version": envelope.get("schema_version"),
        "source": {name: source.get(name) for name in ("channel", "provider", "endpoint_identity")},
        "event": trusted_event,
        "control": {name: control.get(name) for name in ("policy_tier", "ingestion_tier") if name in control},
        "untrusted": {
            "event": {name: value for name, value in event.items() if name != "observed_at"},
            "control": {
                name: value for name, value in control.items() if name not in ("policy_tier", "ingestion_tier")
            },
            **{name: value for name, value in envelope.items() if name not in known},
        },
    }


_PARTS = ("source", "event", "control")


def is_plain(kind: object) -> bool:
    """Whether the kind of an event is an identifier, such as `deploy.failed`, and not a sentence in disguise."""
    return isinstance(kind, str) and re.fullmatch(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+){0,3}", kind) is not None


def system_labels(labels: Sequence[str]) -> list[str]:
    return [label for label in labels if label in SYSTEM_LABELS]


def own_labels(labels: Sequence[str]) -> list[str]:
    return [label for label in labels if label not in SYSTEM_LABELS]
