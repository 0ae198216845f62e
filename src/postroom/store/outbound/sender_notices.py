"""Mail that Postroom itself sends, from a tenant of its own: no other sender can hold it back.

Notices go to the operator. Reports about the mail of a tenant have a sender for each tenant: those of one whose mail
bounces by the thousand wait for their turn beside those of the others.
"""

from datetime import datetime

from postroom.core.jobs.job import Job
from postroom.core.outbound.priority import NEW_FOR
from postroom.store.engine.database import Script, transaction
from postroom.store.jobs.jobs import completing_one
from postroom.store.outbound.outbound import MailSender, NewMail, queueing_mail
from postroom.store.outbound.senders import sender_for

SYSTEM = "system"
"""The name of the tenant, its domain and its sender. No domain of a mail address has it."""


def system_sender(address: str) -> MailSender:
    return MailSender(SYSTEM, SYSTEM, SYSTEM, address)


def report_sender(tenant: str) -> MailSender:
    """On whose behalf the tenant's senders are told what became of their mail. Nobody can log in by such a name."""
    return MailSender(SYSTEM, SYSTEM, f"reports for {tenant}", "")


@transaction
def queue_notice(job: Job, new: NewMail, now: datetime) -> Script[None]:
    """Let the notice wait to be sent, and end its job."""
    yield from completing_one(job, now)
    yield from sender_for(SYSTEM, SYSTEM, SYSTEM, now, since=now - NEW_FOR)
    yield from queueing_mail(new, now)
