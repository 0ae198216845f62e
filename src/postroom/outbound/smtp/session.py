"""A conversation with one mail server: its beginning, and one transaction after another."""

import asyncio
import base64
import ssl
from collections.abc import Sequence
from typing import Literal, NamedTuple

from postroom.core.hosts import bare_name
from postroom.core.outbound.replies import Phase, Reply, ReplyLines, cleaned, found_out
from postroom.core.outbound.transport import Leaving, RecipientOutcome, decided
from postroom.outbound.smtp.channel import Channel
from postroom.outbound.smtp.errors import ConnectionLost, HostFailed
from postroom.outbound.smtp.lines import xtext
from postroom.outbound.smtp.options import SmtpOptions, Timeouts, TlsContexts
from postroom.outbound.smtp.transaction import Envelope, EnvelopeRecipient, Transaction

Tls = Literal["none", "opportunistic", "checked", "implicit"]


class ServerPlace(NamedTuple):
    """Where to connect, and what must be true of the connection. `name` is the one in the certificate."""

    name: str
    address: str
    port: int
    tls: Tls


class SmtpCredentials(NamedTuple):
    """Who logs in, and the password or the access token. `over_plain` allows it without TLS: only to this machine."""

    username: str
    password: str
    kind: Literal["password", "xoauth2", "oauthbearer"] = "password"
    over_plain: bool = False


class TlsFailed(HostFailed):
    """The handshake failed: where encryption may be left out, the host is tried once more without."""


async def open_session(
    place: ServerPlace, options: SmtpOptions, contexts: TlsContexts, credentials: SmtpCredentials | None = None
) -> "SmtpClientSession":
    """Connect, introduce ourselves, encrypt and log in as the place demands. Raises HostFailed or ConnectionLost."""
    shown = place.name if place.name == place.address else f"{place.name}[{place.address}]"
    loop, times = asyncio.get_running_loop(), options.timeouts
    try:
        async with asyncio.timeout(times.connect):
            _, channel = await loop.create_connection(lambda: Channel(shown), place.address, place.port)
    except (OSError, TimeoutError, ValueError) as error:
        why = f"no connection within {times.connect:g} s" if isinstance(error, TimeoutError) else _why(error)
        raise HostFailed(found_out("4.4.1", why, "connect", shown)) from None
    session = SmtpClientSession(channel, options.hostname, times)
    try:
        await session.begin(place, options, contexts, credentials)
    except BaseException:
        channel.abort()
        raise
    return session


class SmtpClientSession:
    def __init__(self, channel: Channel, hostname: str, times: Timeouts) -> None:
        self._channel = channel
        self._hostname = hostname
        self._times = times
        self._extensions: dict[str, str] = {}
        self._must_reset = False
        self._may_have_our_name = False
        self.messages = 0
        self.sent_whole = False
        """Whether the last content was written to its final dot: from then on only a reply tells what became of it."""

    @property
    def tls(self) -> str | None:
        return self._channel.tls

    @property
    def is_usable(self) -> bool:
        return self._channel.is_quiet

    def abort(self) -> None:
        self._channel.abort()

    async def close(self) -> None:
        await self._channel.close(self._times.quit)

    async def begin(
        self, place: ServerPlace, options: SmtpOptions, contexts: TlsContexts, credentials: SmtpCredentials | None
    ) -> None:
        if not options.allow_private and options.smart_host is None and self._channel.leads_to_ourselves:
            raise HostFailed(found_out("4.4.6", "it is this machine itself", "connect", self._channel.host))
        # A smart host is chosen by a person, and often another program on this machine.
        self._may_have_our_name = options.smart_host is not None
        if place.tls == "implicit":
            await self._encrypt(contexts.checked, place.name)
        greeting = await self._channel.reply("greeting", self._times.greeting)
        if greeting.code != 220:
            raise HostFailed(greeting)
        await self._hello()
        if place.tls == "checked" or (place.tls == "opportunistic" and "STARTTLS" in self._extensions):
            await self._start_tls(place, contexts)
        if credentials is not None:
            await self._log_in(credentials)

    async def _hello(self) -> None:
        """EHLO, or HELO for servers that know no other."""
        lines = await self._ask_lines(f"EHLO {self._hostname}", "ehlo", self._times.ehlo)
        if 500 <= lines.code <= 504 or lines.code == 550:
            lines = ReplyLines([], lines.code)
            reply = await self._ask(f"HELO {self._hostname}", "ehlo", self._times.ehlo)
        else:
            reply = lines.reply(self._channel.host, "ehlo")
        if reply.code != 250:
            raise HostFailed(reply)
        has_our_name = bare_name(reply.text.partition(" ")[0]) == bare_name(self._hostname)
        if has_our_name and not self._may_have_our_name:
            raise HostFailed(found_out("4.4.6", "it introduces itself by our own name", "ehlo", self._channel.host))
        self._extensions = _extensions(lines.lines[1:])

    async def _start_tls(self, place: ServerPlace, contexts: TlsContexts) -> None:
        must = place.tls == "checked"
        if "STARTTLS" not in self._extensions:
            raise HostFailed(found_out("4.7.4", "it offers no encryption, which is required", "starttls", self._host))
        reply = await self._ask("STARTTLS", "starttls", self._times.tls)
        if reply.code == 220:
            await self._encrypt(contexts.checked if must else contexts.unchecked, place.name)
            await self._hello()
        elif must:
            raise HostFailed(reply)

    async def _encrypt(self, context: ssl.SSLContext, name: str) -> None:
        try:
            await self._channel.start_tls(context, name, self._times.tls)
        except (OSError, TimeoutError, ValueError) as error:  # ValueError for a name that no certificate can have
            raise TlsFailed(found_out("4.7.5", f"encryption failed: {_why(error)}", "starttls", self._host)) from None

    async def _log_in(self, credentials: SmtpCredentials) -> None:
        if not self._channel.is_encrypted and not credentials.over_plain:
            raise HostFailed(found_out("4.7.10", "no password is sent unencrypted", "auth", self._host))
        methods = self._extensions.get("AUTH", "").upper().split()
        if credentials.kind != "password":
            reply = await self._with_token(credentials, methods)
        elif "PLAIN" in methods:
            secret = _b64(f"\0{credentials.username}\0{credentials.password}".encode())
            reply = await self._ask(f"AUTH PLAIN {secret}", "auth", self._times.mail)
        elif "LOGIN" in methods:
            reply = await self._ask("AUTH LOGIN", "auth", self._times.mail)
            for secret in (credentials.username, credentials.password):
                if reply.code == 334:
                    reply = await self._ask(_b64(secret.encode()), "auth", self._times.mail)
        else:
            raise HostFailed(found_out("4.7.0", "it offers neither AUTH PLAIN nor LOGIN", "auth", self._host))
        if reply.code != 235:
            raise HostFailed(reply)

    async def _with_token(self, credentials: SmtpCredentials, methods: Sequence[str]) -> Reply:
        """By an access token. A server that refuses it explains itself first, and waits for an empty answer."""
        wanted = credentials.kind.upper()
        other = "OAUTHBEARER" if wanted == "XOAUTH2" else "XOAUTH2"
        mechanism = next((each for each in (wanted, other) if each in methods), None)
        if mechanism is None:
            raise HostFailed(found_out("4.7.0", f"it does not offer AUTH {wanted}", "auth", self._host))
        user, token = credentials.username, credentials.password
        if mechanism == "XOAUTH2":
            message, last_word = f"user={user}\x01auth=Bearer {token}\x01\x01", ""
        else:
            name = user.replace("=", "=3D").replace(",", "=2C")
            message, last_word = f"n,a={name},\x01auth=Bearer {token}\x01\x01", _b64(b"\x01")
        reply = await self._ask(f"AUTH {mechanism} {_b64(message.encode())}", "auth", self._times.mail)
        return await self._ask(last_word, "auth", self._times.mail) if reply.code == 334 else reply

    def refusal(self, envelope: Envelope) -> Reply | None:
        """Why this server can not take the mail at all, by the extensions that it offers."""
        limit = self._extensions.get("SIZE", "")
        if limit.isdecimal() and 0 < int(limit[:18]) < envelope.size:
            return found_out(
                "5.3.4", f"it takes at most {limit[:18]} bytes, and this is {envelope.size}", "mail", self._host
            )
        if envelope.is_8bit and not self._offers_8bit:
            return found_out("5.6.3", "it takes no 8-bit content, and mail is not rewritten", "mail", self._host)
        if envelope.needs_utf8 and "SMTPUTF8" not in self._extensions:
            return found_out("5.6.7", "it takes no addresses or headers in UTF-8", "mail", self._host)
        return None

    async def transact(
        self, envelope: Envelope, recipients: Sequence[EnvelopeRecipient], leaving: Leaving
    ) -> list[RecipientOutcome]:
        """Send the mail to the recipients. Raises ConnectionLost if nothing has left and nobody is decided."""
        self.messages += 1
        self.sent_whole = False
        if (refusal := self.refusal(envelope)) is not None:
            return [decided(each.position, refusal) for each in recipients]
        transaction = Transaction(self._channel, self._times, recipients, leaving)
        mail, rcpt = self._mail(envelope), [self._rcpt(each) for each in recipients]
        try:
            if self._must_reset and (reply := await self._ask("RSET", "mail", self._times.mail)).code != 250:
                raise ConnectionLost(reply)
            if "PIPELINING" in self._extensions:
                await transaction.pipelined(mail, rcpt, envelope.wire)
            else:
                await transaction.step_by_step(mail, rcpt, envelope.wire)
        except BaseException:
            self._channel.abort()
            raise
        finally:
            self.sent_whole = transaction.is_whole
        self._must_reset = not transaction.is_complete
        if any(each.reply.code == 421 for each in transaction.outcomes):
            self._channel.abort()
        knows_reports = "DSN" in self._extensions
        return [each._replace(reported_there=knows_reports and each.result == "sent") for each in transaction.outcomes]

    def _mail(self, envelope: Envelope) -> bytes:
        given = [f"MAIL FROM:<{envelope.sender}>"]
        if "SIZE" in self._extensions:
            given.append(f"SIZE={envelope.size}")
        if self._offers_8bit and (envelope.is_8bit or envelope.declared_8bit):
            given.append("BODY=8BITMIME")
        if envelope.needs_utf8:
            given.append("SMTPUTF8")
        if "DSN" in self._extensions:
            given += [f"ENVID={xtext(envelope.envelope_id)}"] if envelope.envelope_id is not None else []
            given += ["RET=FULL"] if envelope.return_full else []
        return f"{' '.join(given)}\r\n".encode()

    def _rcpt(self, recipient: EnvelopeRecipient) -> bytes:
        asked = ""
        if "DSN" in self._extensions:
            asked = f" NOTIFY={','.join(recipient.notify).upper()}" if recipient.notify else ""
            kind, separator, address = (recipient.original or "").partition(";")
            if separator and kind.isascii() and kind.replace("-", "").isalnum():
                # An address of the type utf-8 is kept as it is written here (RFC 6533); any other is kept decoded.
                asked += f" ORCPT={kind};{address if kind.lower() == 'utf-8' else xtext(address)}"
        return f"RCPT TO:<{recipient.address}>{asked}\r\n".encode()

    @property
    def _offers_8bit(self) -> bool:
        return "8BITMIME" in self._extensions

    @property
    def _host(self) -> str:
        return self._channel.host

    async def _ask(self, command: str, phase: Phase, seconds: float) -> Reply:
        return (await self._ask_lines(command, phase, seconds)).reply(self._host, phase)

    async def _ask_lines(self, command: str, phase: Phase, seconds: float) -> ReplyLines:
        self._channel.write(f"{command}\r\n".encode(), phase)
        return await self._channel.reply_lines(phase, seconds)


def _extensions(lines: Sequence[bytes]) -> dict[str, str]:
    """Keywords and their parameters. `AUTH=…` is how some old servers write AUTH."""
    found: dict[str, str] = {}
    for line in lines:
        keyword, _, parameters = cleaned(line).strip().partition(" ")
        if keyword.upper().startswith("AUTH="):
            keyword, parameters = "AUTH", f"{keyword[5:]} {parameters}"
        found.setdefault(keyword.upper(), parameters.strip())
    return found


def _b64(secret: bytes) -> str:
    return base64.b64encode(secret).decode("ascii")


def _why(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
