"""The commands of a sender's SMTP connection, from the greeting to the mail that is queued.

greeting ──EHLO──► ready ──AUTH──► logged in ──MAIL──► envelope ──RCPT──► recipients ──DATA──► content ──.──► 250
                     └─STARTTLS─► greeting again, encrypted
"""

import base64
import binascii
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from postroom.core.errors import StoreError, SubmissionRefused
from postroom.core.submission.envelope import LONGEST_HOLD, MailFrom, Recipient, read_mail, read_rcpt
from postroom.outbound.submission.logins import Logins
from postroom.outbound.submission.replies import reply_to
from postroom.outbound.submission.smtp_connection import (
    LONGEST_COMMAND,
    LONGEST_LOGIN,
    Room,
    SmtpConnection,
    SmtpSessionLimits,
)
from postroom.outbound.submission.submissions import Submission, Submissions
from postroom.store.outbound.senders import SenderLogin

_HELO = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,253}[A-Za-z0-9])?|\[[0-9A-Za-z:.]{1,60}\]")
# Another protocol that ends up here, such as a browser that a page has sent, must not go on until it finds a command.
_FOREIGN = frozenset({"GET", "POST", "PUT", "HEAD", "OPTIONS", "CONNECT", "HOST:", "USER-AGENT:", "CONTENT-TYPE:"})
_NEED_TLS = "530 5.7.0 Use STARTTLS first"
_NEED_LOGIN = "530 5.7.0 Log in first"
_WRONG = "535 5.7.8 The username or the password is wrong"
_NO_LOGINS = "454 4.7.0 Logins cannot be checked now; try again later"
_CANCELED = "501 5.7.0 The login is canceled"


LocalSender = Callable[[], Awaitable[SenderLogin | None]]


@dataclass(frozen=True, slots=True)
class SmtpService:
    """Shared by all connections. `local_sender` returns the sender of local programs that do not log in, if any."""

    submissions: Submissions
    logins: Logins
    limits: SmtpSessionLimits
    room: Room
    context: ssl.SSLContext | None = None
    allow_plain_login: bool = False
    local_sender: LocalSender | None = None
    show_clients: bool = False


@dataclass(slots=True)
class _Envelope:
    sender: SenderLogin
    mail: MailFrom
    recipients: list[Recipient] = field(default_factory=list[Recipient])
    refused: int = 0


class SmtpSession(SmtpConnection):
    def __init__(self, service: SmtpService, *, implicit: bool = False) -> None:
        host = service.submissions.options.host
        super().__init__(host, service.limits, service.room, service.context, implicit=implicit)
        self._service = service
        self._answer_login: Callable[[str], None] | None = None
        self._client = ""
        self._is_extended = False
        self._sender: SenderLogin | None = None
        self._is_logged_in = False
        self._envelope: _Envelope | None = None
        self._logins = 0
        self._messages = 0
        self._commands: dict[str, Callable[[str], None]] = {
            "EHLO": self._ehlo,
            "HELO": self._helo,
            "STARTTLS": self._starttls,
            "AUTH": self._auth,
            "MAIL": self._mail_from,
            "RCPT": self._rcpt_to,
            "DATA": self._data,
            "RSET": self._rset,
            "NOOP": lambda _: self._reply("250 2.0.0 Ok"),
            "VRFY": lambda _: self._reply("252 2.5.0 Send some mail, and it will be tried"),
            "HELP": lambda _: self._reply("214 2.0.0 See RFC 5321 and RFC 6409"),
            "QUIT": self._quit,
        }

    def _take_command(self, text: str) -> None:
        if self._answer_login is not None:
            answer, self._answer_login = self._answer_login, None
            self._longest_line = LONGEST_COMMAND
            answer(text)
            return
        verb, _, arguments = text.partition(" ")
        command = self._commands.get(verb.upper())
        if command is not None:
            command(arguments.strip(" "))
        elif verb.upper() in _FOREIGN:
            self._end("421 4.7.0 This is not HTTP", "errors")
        else:
            self._mistake("500 5.5.1 The command is unknown")

    def _begin_again(self) -> None:
        self._client, self._is_extended, self._sender = "", False, None
        self._end_mail()

    def _helo(self, name: str) -> None:
        if self._introduce(name, extended=False):
            self._reply(f"250 {self._host}")

    def _ehlo(self, name: str) -> None:
        if not self._introduce(name, extended=True):
            return
        options = self._service.submissions.options
        words = [options.host, "PIPELINING", f"SIZE {options.limits.size}", "8BITMIME", "SMTPUTF8", "DSN"]
        words += ["ENHANCEDSTATUSCODES", f"FUTURERELEASE {int(LONGEST_HOLD.total_seconds())} {self._latest()}"]
        if self._is_secure:
            words.append("REQUIRETLS")
        elif self._context is not None:
            words.append("STARTTLS")
        if self._may_log_in:
            words.append("AUTH PLAIN LOGIN")
        self._replies += [f"250-{word}" for word in words[:-1]]
        self._reply(f"250 {words[-1]}")

    def _latest(self) -> str:
        return f"{self._service.submissions.clock() + LONGEST_HOLD:%Y-%m-%dT%H:%M:%SZ}"

    def _introduce(self, name: str, *, extended: bool) -> bool:
        if not name:
            self._mistake("501 5.5.4 Say your name")
            return False
        self._client = name if _HELO.fullmatch(name) else "unknown"
        self._is_extended = extended
        self._end_mail()
        return True

    @property
    def _may_log_in(self) -> bool:
        return self._is_secure or (self._is_local and self._service.allow_plain_login)

    def _starttls(self, arguments: str) -> None:
        if self._context is None or self._is_secure or arguments:
            return self._mistake("502 5.5.1 STARTTLS is not available" if not arguments else "501 5.5.4 Send STARTTLS")
        if self._unread:  # it would be read as if it had come encrypted
            return self._end("501 5.5.2 Nothing may follow STARTTLS before the handshake", "errors")
        self._reply("220 2.0.0 Begin the handshake")
        return self._begin_handshake()

    def _auth(self, arguments: str) -> None:
        if not self._may_log_in:
            return self._mistake("538 5.7.11 Use STARTTLS before AUTH" if self._context else _NEED_TLS)
        if not self._is_extended or self._sender is not None:
            return self._mistake("503 5.5.1 Send EHLO first" if not self._is_extended else "503 5.5.1 Not now")
        mechanism, _, initial = arguments.partition(" ")
        match mechanism.upper():
            case "PLAIN":
                self._ask_login("", self._plain, initial)
            case "LOGIN":
                self._ask_login("VXNlcm5hbWU6", self._login_name, initial)
            case _:
                self._mistake("504 5.5.4 Use PLAIN or LOGIN")
        return None

    def _ask_login(self, prompt: str, answer: Callable[[str], None], initial: str = "") -> None:
        if initial:
            answer("" if initial == "=" else initial)
        else:
            self._reply(f"334 {prompt}")
            self._answer_login, self._longest_line = answer, LONGEST_LOGIN

    def _plain(self, text: str) -> None:
        decoded = _decode_base64(text)
        parts = [] if decoded is None else decoded.split("\0")
        if len(parts) != 3 or parts[0] not in ("", parts[1]):
            return self._mistake(_CANCELED if text == "*" else "501 5.5.2 This is not PLAIN")
        return self._log_in(parts[1], parts[2])

    def _login_name(self, text: str) -> None:
        name = _decode_base64(text)
        if name is None:
            return self._mistake(_CANCELED if text == "*" else "501 5.5.2 This is not base64")
        return self._ask_login("UGFzc3dvcmQ6", lambda answer: self._login_password(name, answer))

    def _login_password(self, name: str, text: str) -> None:
        password = _decode_base64(text)
        if password is None:
            return self._mistake(_CANCELED if text == "*" else "501 5.5.2 This is not base64")
        return self._log_in(name, password)

    def _log_in(self, name: str, password: str) -> None:
        self._logins += 1
        self._await(self._check_login(name, password))

    async def _check_login(self, name: str, password: str) -> None:
        try:
            found = await self._service.logins.log_in(name, password, self.address)
        except StoreError:
            self._reply(_NO_LOGINS)
            return
        match found:
            case "wrong":
                self._reply(_WRONG)
                if self._logins >= self._limits.logins:
                    self._end("421 4.7.0 There were too many wrong logins", "errors")
            case "throttled" | "busy":
                self._end("421 4.7.0 Too many logins have failed; try again later", "errors")
            case _:
                self._sender, self._is_logged_in, self.is_stranger = found, True, False
                self._reply("235 2.7.0 Welcome")

    def _mail_from(self, arguments: str) -> None:
        if not self._client:
            return self._mistake("503 5.5.1 Send EHLO first")
        if self._envelope is not None:
            return self._mistake("503 5.5.1 There is a mail already; send DATA or RSET")
        if self._sender is not None:
            return self._begin_mail(self._sender, arguments)
        if self._is_local and self._service.local_sender is not None:
            return self._await(self._begin_local(self._service.local_sender, arguments))
        return self._mistake(_NEED_LOGIN if self._may_log_in or self._context is None else _NEED_TLS)

    async def _begin_local(self, look_up: LocalSender, arguments: str) -> None:
        self._sender = await look_up()
        if self._sender is None:
            self._mistake(_NEED_LOGIN)
            return
        self.is_stranger = False
        self._begin_mail(self._sender, arguments)

    def _begin_mail(self, sender: SenderLogin, arguments: str) -> None:
        submissions = self._service.submissions
        if self._messages >= self._limits.messages:
            return self._end("421 4.7.0 That is enough for one connection; connect again", None)
        try:
            mail = read_mail(arguments, submissions.clock(), secure=self._is_secure)
            if mail.size > self._limits.size:
                raise SubmissionRefused("SIZE", "the message is too large", "send a smaller one", 552, "5.3.4")
            submissions.check_envelope_sender(sender, mail.address)
        except SubmissionRefused as refused:
            return self._mistake(reply_to(refused))
        self._envelope = _Envelope(sender, mail)
        return self._reply("250 2.1.0 Ok")

    def _rcpt_to(self, arguments: str) -> None:
        envelope = self._envelope
        if envelope is None:
            return self._mistake("503 5.5.1 Send MAIL first")
        most = self._service.submissions.options.limits.recipients
        if len(envelope.recipients) >= most:
            envelope.refused += 1  # the client may go on with them in another mail, but not for ever
            text = "452 4.5.3 There are too many recipients"
            return self._reply(text) if envelope.refused <= most else self._mistake(text)
        try:
            envelope.recipients.append(read_rcpt(arguments, smtputf8=envelope.mail.smtputf8))
        except SubmissionRefused as refused:
            return self._mistake(reply_to(refused))
        return self._reply("250 2.1.5 Ok")

    def _data(self, arguments: str) -> None:
        if self._envelope is None:
            return self._mistake("503 5.5.1 Send MAIL first")
        if not self._envelope.recipients:
            return self._mistake("554 5.5.1 There is no recipient")
        if arguments:
            return self._mistake("501 5.5.4 Send DATA")
        self._begin_content()
        return self._reply("354 End the message with a line that has a single dot")

    async def _take_message(self, content: bytes) -> None:
        envelope = self._envelope
        if envelope is None:
            raise AssertionError("content comes after an envelope")
        self._end_mail()
        self._messages += 1
        recipients = tuple(dict.fromkeys(envelope.recipients))
        protocol = self._protocol(envelope.mail)
        given = Submission(envelope.sender, envelope.mail, recipients, content, "smtp", self._client_in_trace, protocol)
        accepted = await self._service.submissions.submit(given)
        self._reply(f"250 2.0.0 Ok: queued as {accepted.id}")

    @property
    def _client_in_trace(self) -> str:
        """The client in `Received`. Where it submits from is nobody's business, unless the settings say so."""
        if not self._service.show_clients:
            return "unknown"
        peer = self._transport.get_extra_info("peername")
        return f"{self._client} ([{'IPv6:' if ':' in peer[0] else ''}{peer[0]}])"

    def _protocol(self, mail: MailFrom) -> str:
        kind = "UTF8SMTP" if mail.smtputf8 else "ESMTP" if self._is_extended else "SMTP"
        if kind == "SMTP":
            return kind
        return f"{kind}{'S' if self._is_secure else ''}{'A' if self._is_logged_in else ''}"

    def _end_mail(self) -> None:
        self._envelope = None

    def _rset(self, _arguments: str) -> None:
        self._end_mail()
        self._reply("250 2.0.0 Ok")

    def _quit(self, _arguments: str) -> None:
        self._end("221 2.0.0 Bye", None)


def _decode_base64(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
