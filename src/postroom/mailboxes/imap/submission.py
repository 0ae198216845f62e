"""Sends a mail through the submission server of a mailbox: one connection for each mail, signed in, over TLS.

All recipients or none: a server that refuses one of them gets no content. Whatever it answers becomes one of the errors
of the mailbox, by its code only: its text may quote the mail.
"""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import getaddresses
from typing import Protocol

from postroom.core.errors import RequestRefused
from postroom.core.outbound.destinations import Address, smtp_address
from postroom.core.outbound.replies import Reply, asks_to_slow_down
from postroom.core.outbound.transport import RecipientOutcome
from postroom.mailboxes.imap.account import CredentialsProvider
from postroom.mailboxes.imap.errors import (
    Busy,
    ImapError,
    ImapSignInRefused,
    NotOffered,
    NotSecure,
    ServerFailed,
    SignInCause,
    Unreachable,
)
from postroom.mailboxes.imap.wire import Endpoint, Security
from postroom.outbound.smtp.errors import ConnectionLost, HostFailed
from postroom.outbound.smtp.lines import dot_stuffed, with_whole_line_ends
from postroom.outbound.smtp.options import SmartHost, SmtpOptions, Timeouts, TlsContexts
from postroom.outbound.smtp.session import ServerPlace, SmtpClientSession, SmtpCredentials, Tls, open_session
from postroom.outbound.smtp.transaction import Envelope, EnvelopeRecipient

# How a program without a name of its own introduces itself (RFC 5321, 4.1.3).
HELLO = "[127.0.0.1]"
# Shorter than those between servers: a person's server is near, and a call has three minutes.
TIMEOUTS = Timeouts(connect=20, greeting=30, ehlo=30, tls=30, mail=30, rcpt=30, data=30, block=60, final=120, quit=5)
_TLS: dict[Security, Tls] = {"tls": "implicit", "starttls": "checked", "plain": "none"}

Leaving = Callable[[], Awaitable[None]]
"""Called right before the first byte of the content leaves; raises if it may not."""


Goodbye = Callable[[], Awaitable[None]]
"""Ends the conversation. It comes last: nothing that it does may keep a mail that was taken from being recorded so."""


class Submitter(Protocol):
    """A way out of a mailbox."""

    @property
    def files_copies(self) -> bool:
        """Whether the server puts a copy into sent mail by itself."""
        ...

    async def submit(self, mail: bytes, leaving: Leaving) -> Goodbye:
        """Send the mail to the recipients in its header; once this returns, it was taken. Raises an error: after
        NoReply it may have been taken; after any other it was not.
        """
        ...


class MailNotTaken(ImapError, RequestRefused):
    """The submission server does not take this mail, now or later."""

    def __init__(self, what: str, code: str) -> None:
        super().__init__(f"the submission server refused {what} ({code}); nothing was sent")
        self.code = code


class NoReply(ImapError):
    """The whole mail was sent, and no reply came: nobody can tell whether it was taken."""

    def __init__(self) -> None:
        super().__init__("the submission server took the whole mail and did not answer; it is looked for in sent mail")


@dataclass(frozen=True, slots=True)
class Submission:
    """The submission server of one mailbox. `files_copies` if it puts a copy into sent mail by itself."""

    endpoint: Endpoint
    credentials: CredentialsProvider
    context: ssl.SSLContext | None = None
    files_copies: bool = False
    timeouts: Timeouts = field(default=TIMEOUTS)

    async def submit(self, mail: bytes, leaving: Leaving) -> Goodbye:
        """See `Submitter`."""
        envelope, recipients = _envelope(mail)
        session = await self._open()
        try:
            failure = await _transact(session, envelope, recipients, leaving)
        except (HostFailed, ConnectionLost) as error:
            raise self._error(error.reply) from None
        except BaseException:
            # Canceled. Whether it was taken, only the server knows once it has all of the content.
            session.abort()
            if session.sent_whole:
                raise NoReply from None
            raise
        if failure is not None:
            session.abort()
            raise failure if isinstance(failure, BaseException) else self._failure(failure)
        return session.close

    async def check(self) -> None:
        """Connect and sign in, and leave again. Raises ImapError."""
        await (await self._open()).close()

    async def _open(self) -> SmtpClientSession:
        endpoint, given = self.endpoint, await self.credentials()
        plain = endpoint.security == "plain"
        options = SmtpOptions(HELLO, smart_host=SmartHost(endpoint.host, endpoint.port), timeouts=self.timeouts)
        context = self.context or ssl.create_default_context()
        place = ServerPlace(endpoint.host, endpoint.host, endpoint.port, _TLS[endpoint.security])
        credentials = SmtpCredentials(given.user, given.secret, given.kind, over_plain=plain)
        try:
            return await open_session(place, options, TlsContexts(context, context), credentials)
        except (HostFailed, ConnectionLost) as error:
            raise self._error(error.reply, "password" if given.kind == "password" else "token") from None

    def _error(self, reply: Reply, usual: SignInCause = "password") -> ImapError:
        """The error for a server that could not be used; nothing was sent to it."""
        host, code = self.endpoint.host, _code(reply)
        match reply.phase:
            case "auth" if reply.code is None:
                return NotOffered("the submission server cannot be signed in to", "AUTH for this kind of sign-in")
            case "auth" if reply.severity == 5:
                return ImapSignInRefused(host, code, usual)
            case "starttls" if reply.enhanced in ("4.7.4", "4.7.5") and reply.code is None:
                return NotSecure(host, reply.text)
            case "connect" | "greeting" | "ehlo" if reply.code is None:
                return Unreachable(host, reply.text)
            case _:
                return ServerFailed("sending", code) if reply.code else Unreachable(host, reply.text)

    def _failure(self, outcome: RecipientOutcome) -> ImapError:
        """The error for a mail that was not taken."""
        reply, code = outcome.reply, _code(outcome.reply)
        if outcome.result == "unknown":
            return NoReply()
        if reply.code is None and outcome.result == "deferred":
            return Unreachable(self.endpoint.host, reply.text)
        if reply.code == 530:
            return ImapSignInRefused(self.endpoint.host, code)
        if outcome.result in ("bounced", "rejected"):
            return MailNotTaken(_refused_part(reply), code)
        return Busy("sending", code) if asks_to_slow_down(reply) else ServerFailed("sending", code)


async def _transact(
    session: SmtpClientSession, envelope: Envelope, recipients: Sequence[EnvelopeRecipient], leaving: Leaving
) -> RecipientOutcome | Exception | None:
    """The outcome of the recipient that failed, or the reason why the mail may not leave; None if it was taken."""
    held: list[Exception] = []

    async def all_of_them(positions: Sequence[int]) -> None:
        if len(positions) < len(recipients):
            raise _NotForAll
        try:
            await leaving()
        except Exception as error:
            held.append(error)
            raise

    outcomes = await session.transact(envelope, recipients, all_of_them)
    if held:
        return held[0]
    failed = [each for each in outcomes if each.result not in ("sent", "held")]
    # A refusal for good says more than one for now.
    return min(failed, key=lambda each: ("rejected", "bounced", "unknown", "deferred").index(each.result), default=None)


class _NotForAll(Exception):
    """The server refuses some of the recipients."""


def _envelope(mail: bytes) -> tuple[Envelope, list[EnvelopeRecipient]]:
    """The sender and the recipients that its header names."""
    head = BytesHeaderParser().parsebytes(mail)
    from_ = next(iter(_addresses(head, "From")), None)
    to = {each if read is None else str(read): read for each, read in _read(head, "To", "Cc")}
    sender = None if from_ is None else smtp_address(from_)
    recipients = [each for each in to.values() if each is not None]
    if sender is None or not recipients or len(recipients) < len(to):
        raise MailNotTaken("its addresses", "5.1.3")
    content = with_whole_line_ends(mail)
    envelope = Envelope(
        str(sender),
        dot_stuffed(content),
        len(content),
        is_8bit=not content.isascii(),
        needs_utf8=not all(each.is_ascii for each in (sender, *recipients)),
        declared_8bit=not content.isascii(),
    )
    return envelope, [EnvelopeRecipient(number, each, ()) for number, each in enumerate(recipients)]


def _read(head: Message, *names: str) -> list[tuple[str, Address | None]]:
    return [(each, smtp_address(each)) for each in _addresses(head, *names)]


def _addresses(head: Message, *names: str) -> list[str]:
    values = [str(value) for name in names for value in head.get_all(name, [])]
    return [address for _, address in getaddresses(values)]


def _code(reply: Reply) -> str:
    return " ".join(str(each) for each in (reply.code, reply.enhanced) if each) or "no reply"


def _refused_part(reply: Reply) -> str:
    if reply.enhanced == "5.3.4" or reply.code == 552:
        return "the mail: it is too large for it"
    match reply.phase:
        case "mail":
            return "the sender: it does not let this account send under its address"
        case "rcpt":
            return "a recipient"
        case _:
            return "the mail"
