"""How patient the sender is: the waits between attempts, when it gives up, and what no further attempt would mend."""

from dataclasses import dataclass
from datetime import timedelta

from postroom.core.errors import BadInput, Fatal, MailboxLater, RequestRefused, Retryable


@dataclass(frozen=True, slots=True)
class Pace:
    """`lease` is how long a delivery is one sender's own; it is renewed every `renew` while the sender is at it.

    No call to the mailbox may take longer than `longest_call`, and no question, which may take many, than
    `longest_question`. `looks` are the waits, in seconds, before each look for a sent message whose draft is gone.
    """

    first: timedelta = timedelta(minutes=1)
    longest: timedelta = timedelta(hours=4)
    give_up: timedelta = timedelta(days=5)
    lease: timedelta = timedelta(seconds=60)
    renew: timedelta = timedelta(seconds=20)
    longest_call: timedelta = timedelta(minutes=3)
    longest_question: timedelta = timedelta(minutes=10)
    poll: timedelta = timedelta(seconds=1)
    looks: tuple[float, ...] = (0.0, 2.0, 10.0, 30.0)
    at_once: int = 4

    def usable_until(self, started: float) -> float:
        """Until when mail may leave under a lease whose transaction began then: a request is on its way for a while."""
        return started + 0.9 * self.lease.total_seconds()


def wait_after(attempts: int, pace: Pace, asked_for: timedelta | None = None) -> timedelta:
    """Twice as long each time, up to the longest; and never shorter than the server asks for."""
    doubled = pace.first * 2 ** min(max(attempts, 1) - 1, 30)
    return max(min(doubled, pace.longest), asked_for or timedelta(0))


def asked_to_wait(error: BaseException) -> timedelta | None:
    """The waiting time that came with a refusal."""
    match error:
        case MailboxLater():
            return error.retry_after
        case Retryable():
            return error.after
        case _:
            return None


def is_refusal(error: BaseException) -> bool:
    """Whether the mail itself was not accepted, so that trying again would not help."""
    return isinstance(error, RequestRefused | BadInput | Fatal)
