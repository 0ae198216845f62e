"""The patience of a sender: waits between attempts, when it gives up, and which errors no attempt would cure."""

from dataclasses import dataclass
from datetime import timedelta

from postroom.core.errors import BadInput, Fatal, MailboxLater, RequestRefused, Retryable

MOST_SLOW = 40


@dataclass(frozen=True, slots=True)
class Pace:
    """`lease` is how long a sender holds a mail; it renews the lease every `renew` while it works.

    No call to the mailbox may take longer than `longest_call`, and no question, which may take many calls, longer than
    `longest_question`. `looks` are the waits, in seconds, before each search for a sent message whose draft is gone.

    `at_once` mails are sent at the same time. One that takes longer than `slow`, since its destination does, no longer
    keeps the next one waiting; but no more than `room` are under way in all.
    """

    first: timedelta = timedelta(minutes=1)
    longest: timedelta = timedelta(hours=4)
    give_up: timedelta = timedelta(days=5)
    lease: timedelta = timedelta(seconds=60)
    renew: timedelta = timedelta(seconds=20)
    longest_call: timedelta = timedelta(minutes=3)
    longest_question: timedelta = timedelta(minutes=10)
    poll: timedelta = timedelta(seconds=1)
    idle: timedelta = timedelta(minutes=1)
    looks: tuple[float, ...] = (0.0, 2.0, 10.0, 30.0)
    at_once: int = 50
    slow: timedelta = timedelta(seconds=5)

    @property
    def room(self) -> int:
        return self.at_once + max(self.at_once, MOST_SLOW)

    def usable_until(self, started: float) -> float:
        """Until when mail may leave under a lease taken at `started`: a request needs some time to arrive."""
        return started + 0.9 * self.lease.total_seconds()


def wait_after(attempts: int, pace: Pace, asked_for: timedelta | None = None) -> timedelta:
    """The wait doubles with each attempt, up to the longest, and is never shorter than the server asks for."""
    doubled = pace.first * 2 ** min(max(attempts, 1) - 1, 30)
    return max(min(doubled, pace.longest), asked_for or timedelta(0))


def asked_to_wait(error: BaseException) -> timedelta | None:
    """The waiting time that the server asked for."""
    match error:
        case MailboxLater():
            return error.retry_after
        case Retryable():
            return error.after
        case _:
            return None


def is_refusal(error: BaseException) -> bool:
    """Whether the mail itself was refused, so that trying again would not help."""
    return isinstance(error, RequestRefused | BadInput | Fatal)
