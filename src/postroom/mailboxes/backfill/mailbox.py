"""The mailbox of a connector as backfill uses it: puts together what the walk of an assignment needs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from postroom.core.mail.categories import chosen_categories
from postroom.mailboxes.backfill.archive import Archive
from postroom.mailboxes.backfill.delivery import BackfillDelivery
from postroom.mailboxes.backfill.reporting import Reporting
from postroom.mailboxes.backfill.selection import Selection
from postroom.mailboxes.backfill.walk import LiveMail, Walk
from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.source import MailSource
from postroom.sources.switchboard_client import BackfillAssignment, BackfillSource


@dataclass(frozen=True)
class BackfillMailbox:
    """`progress_interval` is after how many messages progress is reported. `seconds` is a monotonic clock."""

    source: MailSource
    switchboard: BackfillSource
    ingester: MailIngester
    knowledge: Knowledge
    live: LiveMail
    email: str
    endpoint_identity: str
    progress_interval: int
    clock: Callable[[], datetime]
    seconds: Callable[[], float]

    def begin(self, assignment: BackfillAssignment) -> Walk:
        """The walk of an assignment. Raises BadInput if it has a category that is unknown here."""
        categories = chosen_categories(assignment.categories)
        return Walk(
            assignment,
            Archive(self.source, categories, self.email),
            Selection(
                assignment.job_id,
                categories,
                assignment.window,
                endpoint_identity=self.endpoint_identity,
                knowledge=self.knowledge,
                clock=self.clock,
            ),
            BackfillDelivery(self.ingester, assignment.message_cost_micros),
            Reporting(self.switchboard, assignment, self.progress_interval, self.seconds),
            self.live,
            clock=self.seconds,
        )
