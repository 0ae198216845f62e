"""Decides which reports the sender of a mail gets about one attempt, and builds them: one for each kind.

A report is stored in the transaction that stores what it is about, so there is exactly one. Nobody is told about a mail
with an empty envelope sender: it is a report itself.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from postroom.core.outbound.destinations import smtp_address
from postroom.core.outbound.replies import Reply
from postroom.core.submission.envelope import Recipient
from postroom.outbound.queue.dsn import Action, ReportedMail, ReportedRecipient, delivery_report, wants_report
from postroom.store.engine.ids import new_id
from postroom.store.outbound.outbound import MailSender, NewMail
from postroom.store.outbound.outbound_recipients import LeasedRecipient, OutgoingContent, RecipientChange
from postroom.store.outbound.sender_notices import report_sender
from postroom.words.outbound import REPORT_SUBJECTS


def reports_about(
    mail: OutgoingContent,
    recipients: Mapping[int, LeasedRecipient],
    changes: Sequence[tuple[RecipientChange, Reply]],
    hostname: str,
    tried_until: datetime,
    now: datetime,
    told_there: Collection[int] = (),
) -> list[NewMail]:
    """The reports to the sender of the mail, as mail of the system itself.

    Servers that took it for the recipients at `told_there` report success themselves (RFC 3461, 5.2.1): there is one
    report of it, and the better one.
    """
    if not mail.envelope_sender or smtp_address(mail.envelope_sender) is None:
        return []
    told: dict[Action, list[ReportedRecipient]] = {}
    for change, reply in changes:
        action, recipient = action_of(change), recipients[change.position]
        if action == "relayed" and change.position in told_there:
            continue
        if action is not None and wants_report(recipient.notify, action):
            until = tried_until if action == "delayed" else None
            told.setdefault(action, []).append(
                ReportedRecipient(change.address, action, reply, until, recipient.original)
            )
    asked = mail.options.envelope_id, mail.options.return_full
    reported = ReportedMail(mail.id, mail.envelope_sender, mail.content, mail.admitted_at, *asked)
    sender = report_sender(mail.tenant)
    return [_report(sender, reported, action, those, hostname, now) for action, those in told.items()]


def action_of(change: RecipientChange) -> Action | None:
    """The lines of a report about the recipient, if there is something to say."""
    match change.state:
        case "bounced" | "rejected" | "expired":
            return "failed"
        case "sent":
            return "relayed"
        case "deferred" if change.reports_delay:
            return "delayed"
        case _:
            return None


def _report(
    sender: MailSender,
    mail: ReportedMail,
    action: Action,
    recipients: Sequence[ReportedRecipient],
    hostname: str,
    now: datetime,
) -> NewMail:
    id = new_id()
    content = delivery_report(id, hostname, mail, recipients, now)
    to = (Recipient(mail.envelope_sender, ("never",)),)
    return NewMail(id, None, None, sender, "report", to, REPORT_SUBJECTS[action], content)
