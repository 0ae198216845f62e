"""The ids of Discord buttons: what a press means and until when it counts, signed so that nobody else can make one.

    postroom:a:<action>:<expiry>:<hash>:<signature>        at most 100 characters, Discord's limit

`a` approves, `r` rejects; the action's id and the first 96 bits of its hash are in base64, the expiry is a Unix time.
The signature is HMAC-SHA256, cut to 192 bits, over everything before it. Keys come from the vault: someone with the
bot's token could send any button, but cannot sign one.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core import base64url
from postroom.core.errors import KeyMissing, Refused
from postroom.store.actions.approvals import Approval
from postroom.triage.act.approvals import Verdict

PREFIX = "postroom:"
PURPOSE = "approval buttons"
LONGEST = 100
HASH_BYTES = 12
SIGNATURE_BYTES = 24
_VERDICTS: dict[str, Verdict] = {"a": "approve", "r": "reject"}
_LETTERS = {verdict: letter for letter, verdict in _VERDICTS.items()}

Keys = Callable[[], Sequence[bytes]]
"""The valid keys, the signing one first."""


class ButtonPress(NamedTuple):
    """The meaning of a button."""

    verdict: Verdict
    action_id: UUID
    hash_beginning: str


@dataclass(frozen=True, slots=True)
class ButtonIds:
    """Create button ids, and read those of pressed buttons."""

    keys: Keys

    def sign(self, verdict: Verdict, approval: Approval) -> str:
        keys = self.keys()
        if not keys:
            raise KeyMissing("there is no key to sign buttons with; set secret_key, or restore the key file")
        expiry = 0 if approval.expires_at is None else int(approval.expires_at.timestamp())
        beginning = base64url.encode(bytes.fromhex(approval.action_hash)[:HASH_BYTES])
        content = f"{PREFIX}{_LETTERS[verdict]}:{base64url.encode(approval.id.bytes)}:{expiry}:{beginning}"
        return f"{content}:{base64url.encode(_signature(keys[0], content))}"

    def read(self, custom_id: str, now: datetime) -> ButtonPress:
        """Read an id. Raise Refused, which quotes nothing, if it is not ours, was changed, or has expired."""
        content, _, signature = custom_id.rpartition(":")
        given = _bytes(signature)
        if not any(hmac.compare_digest(_signature(key, content), given) for key in self.keys()):
            raise Refused("this button is not signed by this Postroom; answer with `postroom approvals`")
        letter, action, expiry, beginning = content.removeprefix(PREFIX).split(":")
        if int(expiry) <= now.timestamp():
            raise Refused("this button has expired, and so has the action, which is not done")
        return ButtonPress(_VERDICTS[letter], UUID(bytes=_bytes(action)), _bytes(beginning).hex())


def named_action(custom_id: str) -> str:
    """Return the action that an id names, signed or not, for the audit log, which should hold no signature."""
    parts = custom_id.removeprefix(PREFIX).split(":")
    try:
        return str(UUID(bytes=_bytes(parts[1])))
    except (IndexError, ValueError):
        return "unknown"


def _signature(key: bytes, content: str) -> bytes:
    return hmac.digest(key, content.encode("utf-8", "replace"), "sha256")[:SIGNATURE_BYTES]


def _bytes(text: str) -> bytes:
    """Decode base64; return nothing if it is invalid: that equals no signature."""
    try:
        return base64url.decode(text)
    except ValueError:
        return b""
