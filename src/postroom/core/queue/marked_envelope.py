"""An envelope as consumers of a queue get it: the text of strangers apart from values that Postroom checked."""

import re
from collections.abc import Mapping
from typing import Any, cast

_PARTS = ("source", "event", "control")


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


def is_plain(kind: object) -> bool:
    """Whether the kind of an event is an identifier, such as `deploy.failed`, and not a sentence in disguise."""
    return isinstance(kind, str) and re.fullmatch(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+){0,3}", kind) is not None
