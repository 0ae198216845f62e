"""The messages of the switchboard's claims: mail as a connector hands it in, events as a producer does; 1 KB each."""

from typing import Any

IDENTITY = "bench"
_RAW = {"threadId": "t", "snippet": "Dear all, " * 10, "body": "The quarterly report is attached. " * 12}
_TEXT = "Dear all, the quarterly report is attached; please read it before Thursday. " * 3
_TIERS = ("high_priority", "interactive", "default")


def mail(number: int | str, tier: str | None = None) -> dict[str, Any]:
    """A full message with a key of its own."""
    policy_tier = tier or _TIERS[int(number) % len(_TIERS)]
    return _envelope(
        {"channel": "email", "provider": "gmail", "endpoint_identity": IDENTITY},
        {"external_event_id": f"m{number}", "external_thread_id": "t", "observed_at": "2026-11-15T08:00:00Z"},
        f"{number}: {_TEXT}",
        {"policy_tier": policy_tier, "idempotency_key": f"gmail:{number}"},
    )


def event(number: int) -> dict[str, Any]:
    """An event of which the words are compared too: the gateway drops what was said a moment before."""
    return _envelope(
        {"channel": "webhook", "provider": "webhook", "endpoint_identity": IDENTITY},
        {"external_event_id": f"e{number}", "observed_at": "2026-11-15T08:00:00Z", "kind": "deploy.done"},
        f"{number}: {_TEXT}",
        {},
    )


def _envelope(source: dict[str, str], happened: dict[str, str], text: str, control: dict[str, str]) -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": source,
        "event": happened,
        "sender": {"identity": "ada@example.com"},
        "payload": {"raw": _RAW, "normalized_text": text},
        "control": control,
    }
