"""Words for what a restore brings back, and what to look at after it."""

from collections.abc import Mapping

RESTORED: Mapping[str, str] = {
    "pauses": "pauses",
    "protected": "protected senders and labels",
    "shadows": "shadows",
    "tokens": "revoked tokens",
    "accounts": "accounts that are paused or removed",
    "rules": "rules that are disabled",
}
TO_LOOK_AT: Mapping[str, str] = {
    "protect list": "protected senders and labels",
    "rules list": "enabled rules",
    "account list": "connected accounts",
    "token list": "valid tokens",
    "approvals list": "what waits for your approval",
    "jobs list": "what will run when you resume",
    "outbound list --state unknown": "mail that may already have been sent, after the comparison",
}
