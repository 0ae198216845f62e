"""The port of a transport: the dispatcher's call, and the outcome for each recipient.

                 before `leaving` has returned     after it, before the final dot is sent    after the final dot
    a reply      decides                           decides                                   decides
    no reply     deferred                          deferred                                  unknown

`held` is no attempt: nothing was said to the destination about this recipient, or `leaving` did not let the mail go.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.replies import Reply, verdict

MessageClass = Literal["transactional", "bulk"]
Notify = Literal["never", "success", "failure", "delay"]
Result = Literal["sent", "deferred", "bounced", "rejected", "unknown", "held"]


@dataclass(frozen=True, slots=True)
class MailOptions:
    """Options that the submitter of a mail may ask for: REQUIRETLS, SMTPUTF8, BODY=8BITMIME, ENVID and RET=FULL."""

    require_tls: bool = False
    smtputf8: bool = False
    body_8bit: bool = False
    envelope_id: str | None = None
    return_full: bool = False


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """A mail as it was accepted. An empty `envelope_sender` is that of a report, which gets no answer."""

    id: UUID
    envelope_sender: str
    content: bytes = field(repr=False)
    message_class: MessageClass = "transactional"
    options: MailOptions = MailOptions()


class OutgoingRecipient(NamedTuple):
    """`position` is the recipient's place in the mail; `notify` are the reports that were asked for, and `original` the
    address as the sender gave it (RFC 3461)."""

    position: int
    address: str
    notify: tuple[Notify, ...] = ()
    original: str | None = None


class RecipientOutcome(NamedTuple):
    """The outcome for one recipient. `retry_after` is how long the destination asks us to wait, if it does.

    `tls` is the version that protected the connection; None in the clear, or without one. `reported_there`: the server
    that took the mail knows which reports the sender wants, and sends those of success.
    """

    position: int
    result: Result
    reply: Reply
    bounce_class: BounceClass | None = None
    retry_after: timedelta | None = None
    reported_there: bool = False
    tls: str | None = None


def decided(position: int, reply: Reply) -> RecipientOutcome:
    """The outcome that follows from the reply."""
    found = verdict(reply)
    return RecipientOutcome(position, found.result, reply, found.bounce_class, found.retry_after)


Leaving = Callable[[Sequence[int]], Awaitable[None]]
"""Called with the positions of the accepted recipients, immediately before the first byte of content leaves.

It stores that they are on their way, or raises if they may not leave; then the outcome of each is `held`.
"""


class Transport(Protocol):
    async def deliver(
        self, mail: OutgoingMail, recipients: Sequence[OutgoingRecipient], leaving: Leaving
    ) -> Sequence[RecipientOutcome]:
        """One outcome for each recipient, in the order of their positions. Raises nothing but cancellation."""
        ...
