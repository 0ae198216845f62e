"""Accepts mail of senders, whichever way it comes: checks it, and queues it with what others submit at the same time.

Callers that wait at the same time share one transaction, and so one commit. Each is answered after it, or gets an
error: then nothing of its mail was taken.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NamedTuple

from postroom.core.errors import (
    Conflict,
    ConstraintBroken,
    IntakeRefused,
    NotAdmitted,
    PostroomError,
    SenderTooFast,
    SubmissionRefused,
)
from postroom.core.metrics import SUBMISSION_ACCEPTED, SUBMISSION_REFUSED
from postroom.core.outbound.limits import DailyLimits
from postroom.core.outbound.rollout import Rollout
from postroom.core.outbound.transport import MailOptions
from postroom.core.submission.envelope import MailFrom, Recipient
from postroom.core.submission.message import Trace, check_address, check_message
from postroom.core.submission.rates import Rates
from postroom.core.tally import Tally
from postroom.store.engine.batcher import Batcher
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.outbound.outbound import EVERYWHERE
from postroom.store.outbound.senders import SenderLogin
from postroom.store.outbound.submissions import Accepted, Answer, NewSubmission, SubmissionKey, submit_mails
from postroom.system.wall_clock import Clock, wall_clock

Door = Literal["smtp", "http", "mcp"]

MIB = 1024 * 1024
MOST_TOGETHER = 256
PATIENCE_S = 5.0
"""How long a client waits for a database that is away. Then it is told to try again, and nothing was taken."""
HEAVIEST = 8 * MIB


class SubmissionLimits(NamedTuple):
    """Limits of one mail, and the number that a sender may submit in a minute."""

    size: int = 25 * MIB
    recipients: int = 100
    per_minute: int = 600


@dataclass(frozen=True, slots=True)
class Submission:
    """A mail as it was submitted: by whom, its envelope, and the whole message with CRLF."""

    sender: SenderLogin
    mail: MailFrom
    recipients: tuple[Recipient, ...]
    content: bytes = field(repr=False)
    door: Door
    client: str = "unknown"
    protocol: str = "HTTP"
    bulk: bool = False
    key: SubmissionKey | None = None


@dataclass(frozen=True, slots=True)
class SubmissionOptions:
    """The name of this server in `Received` and `Message-ID`, and the limits."""

    host: str
    limits: SubmissionLimits = field(default_factory=SubmissionLimits)
    daily: DailyLimits = field(default_factory=DailyLimits)
    rollout: Rollout = EVERYWHERE
    patience_s: float = PATIENCE_S


class Submissions:
    """`check_room` raises IntakeRefused while nothing new may be taken, as when the disk is nearly full."""

    def __init__(
        self,
        database: Database,
        options: SubmissionOptions,
        *,
        check_room: Callable[[], None] = lambda: None,
        tally: Tally | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self.database = database
        self.options = options
        self.clock = clock
        self._check_room = check_room
        self._tally = tally or Tally()
        self._rates = Rates(options.limits.per_minute)
        self._submit = Batcher(self._flush, MOST_TOGETHER, lambda new: len(new.content), HEAVIEST, gathers=True)

    async def submit(self, given: Submission) -> Accepted:
        """Accept the mail durably. Raises SubmissionRefused, NotAdmitted, Conflict, IntakeRefused or a StoreError."""
        try:
            accepted = await self._accept(given)
        except PostroomError as error:
            self._tally.count(SUBMISSION_REFUSED, given.door, _reason(error))
            raise
        self._tally.count(SUBMISSION_ACCEPTED, given.door)
        return accepted

    async def _accept(self, given: Submission) -> Accepted:
        new = self._check(given)
        self._check_room()
        self._check_rate(given.sender)
        answer = await self._submit(new)
        if isinstance(answer, Accepted):
            return answer
        raise answer

    def check_envelope_sender(self, sender: SenderLogin, address: str) -> None:
        """Raise SubmissionRefused unless it is one of the sender's addresses, or empty."""
        if address:
            check_address("MAIL", address, sender.addresses)

    def _check(self, given: Submission) -> NewSubmission:
        limits, mail = self.options.limits, given.mail
        if len(given.content) > limits.size:
            remedy = f"send at most {limits.size // MIB} MiB"
            raise SubmissionRefused("message", "the message is too large", remedy, 552, "5.3.4")
        if not 1 <= len(given.recipients) <= limits.recipients:
            problem = f"there are {len(given.recipients)} recipients"
            raise SubmissionRefused("recipients", problem, f"give 1 to {limits.recipients}", 452, "4.5.3")
        self.check_envelope_sender(given.sender, mail.address)
        id, now = new_id(), self.clock()
        trace = Trace(given.client, self.options.host, given.protocol, now)
        checked = check_message(id, given.content, given.sender.addresses, trace, smtputf8=mail.smtputf8)
        return NewSubmission(
            id,
            given.sender.id,
            mail.address,
            tuple(given.recipients),
            checked.subject,
            checked.content,
            "bulk" if given.bulk else checked.message_class,
            mail.not_before or checked.not_before,
            MailOptions(mail.require_tls, mail.smtputf8, checked.is_8bit, mail.envelope_id, mail.return_full),
            given.key,
            checked.message_id,
        )

    def _check_rate(self, sender: SenderLogin) -> None:
        wait = self._rates.take(sender.id, asyncio.get_running_loop().time())
        if wait:
            message = f"{sender.username} has submitted more than {self.options.limits.per_minute} messages in a minute"
            raise SenderTooFast(message, self.clock() + timedelta(seconds=wait))

    async def _flush(self, news: Sequence[NewSubmission]) -> list[Answer | PostroomError]:
        try:
            return [*await self.database.run(self._submitting(news))]
        except ConstraintBroken:
            if len(news) == 1:
                raise
        return [await self._alone(new) for new in news]  # one of them is at fault, and must not cost the others theirs

    async def _alone(self, new: NewSubmission) -> Answer | PostroomError:
        try:
            (answer,) = await self.database.run(self._submitting([new]))
        except PostroomError as error:
            return error
        return answer

    def _submitting(self, news: Sequence[NewSubmission]) -> Transaction[list[Answer]]:
        submitting = submit_mails(news, self.clock(), self.options.daily, self.options.rollout)
        return submitting._replace(patience_s=self.options.patience_s)


def _reason(error: PostroomError) -> str:
    match error:
        case SubmissionRefused():
            return "content"
        case NotAdmitted():
            return "not_admitted"
        case Conflict():
            return "conflict"
        case IntakeRefused():
            return "no_room"
        case _:
            return "database"
