"""What a restored database cannot know: whether mail that it wants to send was sent after the backup was made. Pure.

The backup was made at `since`, and the database restored at `restored_at`. Whatever Postroom sent in between is in the
mailbox's sent mail, unless somebody deleted it there, and nowhere else.
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
    """It cannot have been: the message came after the restore, or a person asked for it after the restore."""
    POSSIBLE = "possible"
    """If it is found in sent mail it was; otherwise it is sent."""
    LIKELY = "likely"
    """If it is not found in sent mail, only a person can tell: the copy there may have been deleted."""


@dataclass(frozen=True, slots=True)
class RestoredWindow:
    """The time about which the database knows nothing."""

    since: datetime
    restored_at: datetime


@dataclass(frozen=True, slots=True)
class SendRequest:
    """What is known of an action that sends mail."""

    actor: str
    asked_at: datetime
    is_first_decision: bool
    received_at: datetime
    """When the message that is answered or forwarded came."""


def doubt_about(request: SendRequest, window: RestoredWindow) -> Doubt:
    """Whether the mail may have been sent in the window.

    What the backup holds as unsent may have been sent since. A message that came before the restore and is decided on
    for the first time after it may have been decided on, in the same way, before. A person's request made after the
    restore stands for itself.
    """
    if request.asked_at <= window.restored_at:
        return Doubt.LIKELY
    if request.actor == "user" or request.received_at > window.restored_at:
        return Doubt.NONE
    if request.actor in AUTOMATIC and request.is_first_decision:
        return Doubt.LIKELY
    return Doubt.LIKELY if request.received_at >= window.since else Doubt.POSSIBLE


def source_key(instance_id: UUID, endpoint: str, provider_message_id: str, kind: str, recipients: Iterable[str]) -> str:
    """Names what is sent by what it is about, so that the same mail has the same name when it is decided on again.

    The first part names the installation: mail that another one sent from the same mailbox says nothing about ours.
    """
    parts = (endpoint, provider_message_id, kind, *sorted({each.lower() for each in recipients}))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    return f"{instance_id.hex[:12]}-{digest}"


def is_from(instance_id: UUID, key: str | None) -> bool:
    """Whether the installation with this id has sent the mail with this source key."""
    return key is not None and key.startswith(f"{instance_id.hex[:12]}-")
