"""Mail that Postroom itself sends to its operator, from a tenant of its own: no other sender can hold it back."""

from datetime import datetime

from postroom.core.jobs.job import Job
from postroom.core.outbound.priority import NEW_FOR
from postroom.store.engine.database import Script, transaction
from postroom.store.jobs import completing_one
from postroom.store.outbound import MailSender, NewMail, queueing_mail
from postroom.store.senders import sender_for

SYSTEM = "system"
"""The name of the tenant, its domain and its sender. No domain of a mail address has it."""


def system_sender(address: str) -> MailSender:
    return MailSender(SYSTEM, SYSTEM, SYSTEM, address)


@transaction
def queue_notice(job: Job, new: NewMail, now: datetime) -> Script[None]:
    """Let the notice wait to be sent, and end its job."""
    yield from completing_one(job, now)
    yield from sender_for(SYSTEM, SYSTEM, SYSTEM, now, since=now - NEW_FOR)
    yield from queueing_mail(new, now)
