"""The notice that a sender was throttled: what is told, as a mail and as the body for a webhook."""

from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any
from uuid import UUID

from postroom.core.outbound.abuse import Score
from postroom.core.outbound.priority import Throttle
from postroom.core.submission.envelope import Recipient
from postroom.outbound.queue.mime import one_line
from postroom.store.outbound.outbound import NewMail
from postroom.store.outbound.sender_counts import ScoredSender
from postroom.store.outbound.sender_notices import system_sender


def throttle_notice(sender: ScoredSender, score: Score, throttle: Throttle) -> dict[str, Any]:
    """The notice, in words and numbers of our own: no mail is quoted."""
    return {
        "sender_id": sender.id,
        "username": sender.username,
        "tenant": sender.tenant,
        "score": score.points,
        "reason": throttle.reason,
        "until": throttle.until.isoformat(),
    }


def notice_mail(id: UUID, notice: Mapping[str, Any], to: str, own: str, now: datetime) -> NewMail:
    """The notice as a mail from `own` to `to`."""
    username = one_line(str(notice["username"]))
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"] = own, to
    message["Subject"] = subject = f"Sender throttled: {username}"
    message["Date"] = format_datetime(now)
    message["Message-ID"] = f"<{id}@{own.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        f"{username} (tenant {one_line(str(notice['tenant']))}) is throttled until {notice['until']}.\n\n"
        f"Abuse score: {notice['score']} of 100\n"
        f"Why: {notice['reason']}\n\n"
        f"Until then nothing is accepted from this sender, and mail that waits is kept. If this is a mistake:\n\n"
        f"    postroom sender release {username}\n"
    )
    return NewMail(id, None, None, system_sender(own), "submitted", (Recipient(to),), subject, message.as_bytes())
