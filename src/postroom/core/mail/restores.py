"""Guards against sending twice after a restore: the database cannot know of mail sent after the backup.

The backup was made at `since`, and the database restored at `restored_at`. Mail that Postroom sent in between is only
in the mailbox's sent mail, unless it was deleted there.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

AUTOMATIC = frozenset({"rule", "model"})


class Doubt(Enum):
    """How likely it is that a mail was sent after the backup."""

    NONE = "none"
    """It cannot have been sent: the message arrived, or a person asked for it, after the restore."""
    POSSIBLE = "possible"
    """If it is found in sent mail, it was sent; otherwise it is sent now."""
    LIKELY = "likely"
    """If it is not found in sent mail, a person must decide: the copy there may have been deleted."""


@dataclass(frozen=True, slots=True)
class RestoredWindow:
    """The time span about which the database knows nothing."""

    since: datetime
    restored_at: datetime


@dataclass(frozen=True, slots=True)
class SendRequest:
    """The known facts about an action that sends mail."""

    actor: str
    asked_at: datetime
    is_first_decision: bool
    received_at: datetime
    """When the message that is answered or forwarded arrived."""


def doubt_about(request: SendRequest, window: RestoredWindow) -> Doubt:
    """How likely it is that the mail was sent in the window.

    Mail unsent in the backup may have been sent since. A message that arrived before the restore, and whose first known
    decision came after it, may have been decided the same way before. A person's request after the restore is always
    new.
    """
    if request.asked_at <= window.restored_at:
        return Doubt.LIKELY
    if request.actor == "user" or request.received_at > window.restored_at:
        return Doubt.NONE
    if request.actor in AUTOMATIC and request.is_first_decision:
        return Doubt.LIKELY
    return Doubt.LIKELY if request.received_at >= window.since else Doubt.POSSIBLE


def source_key(instance_id: UUID, endpoint: str, provider_message_id: str, kind: str, recipients: Iterable[str]) -> str:
    """A key for a mail to send, derived from its purpose, so that the same mail gets the same key when decided again.

    The first part names the installation: mail that another one sent from the same mailbox says nothing about ours.
    """
    parts = (endpoint, provider_message_id, kind, *sorted({each.lower() for each in recipients}))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    return f"{instance_id.hex[:12]}-{digest}"


def is_from(instance_id: UUID, key: str | None) -> bool:
    """Whether the mail with this source key was sent by the installation with this id."""
    return key is not None and key.startswith(f"{instance_id.hex[:12]}-")
