"""The errors of the IMAP client, as one branch of the error tree.

    MailboxError
    └── ImapError
        ├── ImapSignInRefused   the server does not accept the password, the app password or the token
        ├── NotSecure           no TLS, or a certificate that is not the server's: nothing was sent over it
        ├── Unreachable         no connection, no answer in time, or the connection ended in the middle
        ├── Busy                too many connections or commands: [LIMIT], [INUSE]
        ├── ServerFailed        [UNAVAILABLE], [SERVERBUG], [CONTACTADMIN], or NO without a reason that we know
        ├── MailboxFull         [OVERQUOTA]: only a person can make room
        ├── NoSuchMessage       it is in no folder, or marked as deleted
        ├── NoSuchFolder        [NONEXISTENT], [TRYCREATE]
        ├── FolderForbidden     [NOPERM], or a folder that can only be read
        ├── NotOffered          the server lacks the extension that this needs
        ├── CommandRefused      BAD, [CANNOT], [CLIENTBUG]
        ├── QueryRefused        IMAP has no words for this search, and a wider one would find something else
        ├── TooBusy             this machine was too busy to send the command: the server knows nothing of it
        ├── NoPermit            a change without a permit: a bug of ours
        └── BadAnswer           not IMAP: the connection is closed, since nothing after it can be trusted
            └── AnswerTooLarge

Each is also one of the kinds of `MailboxError`, which is all that others need to know. No message quotes what we sent,
nor the server's own text, which may quote it or the mail; only its response code is kept.
"""

import re
import ssl
from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from postroom.core.errors import (
    LabelMissing,
    MailboxBusy,
    MailboxError,
    MailboxFailed,
    MailboxRefused,
    MailboxUnreachable,
    MessageGone,
    NeedsPerson,
    NeedsRepair,
    NotAllowed,
    NotSent,
    RequestRefused,
    UnreadableAnswer,
)

BUSY_FOR = timedelta(minutes=5)

SignInCause = Literal["password", "app_password", "expired", "policy", "web", "insecure", "token"]
"""The cause of a refused sign-in: the password, or something that no password changes."""


class ImapError(MailboxError):
    """The root of all errors of the IMAP client."""


class ImapSignInRefused(ImapError, NeedsPerson):
    """The server does not let us in. `cause` is what has to change, as far as it says so."""

    def __init__(self, host: str, code: str | None = None, cause: SignInCause = "password") -> None:
        super().__init__(f"{host} {_CAUSES[cause]} ({code or 'no reason given'}); {REMEDIES[cause]}")
        self.host = host
        self.code = code
        self.cause: SignInCause = cause


_CAUSES: Mapping[SignInCause, str] = {
    "password": "does not accept the user name or the password",
    "app_password": "wants an app password, not the account's own",
    "expired": "says that the password has expired",
    "policy": "does not let this user in, whatever the password",
    "web": "wants the owner to sign in on the web once, and to confirm that it was them",
    "insecure": "wants the connection to be secured first",
    "token": "does not accept the access token",
}
REMEDIES: Mapping[SignInCause, str] = {
    "password": "give the right one, which may be a new one, or an app password of the provider",
    "app_password": "create one at the provider and give it",
    "expired": "set a new one at the provider and give it",
    "policy": "ask the provider, or whoever administers the server, to allow IMAP for this user",
    "web": "do that in a browser, and try again",
    "insecure": "use its port for TLS, or STARTTLS",
    "token": "consent again, as the owner of this mailbox",
}
_CAUSE_OF_CODE: Mapping[str | None, SignInCause] = {
    "AUTHORIZATIONFAILED": "policy",
    "CONTACTADMIN": "policy",
    "NOPERM": "policy",
    "EXPIRED": "expired",
    "PRIVACYREQUIRED": "insecure",
    "WEBALERT": "web",
}
# How providers say it that have no code for it. Only whether a phrase is there is used, nothing of the text.
_CAUSE_OF_PHRASE: Mapping[str, SignInCause] = {
    "application-specific password": "app_password",
    "app-specific password": "app_password",
    "app password": "app_password",
    "application password": "app_password",
    "web login required": "web",
    "log in via your web browser": "web",
    "basicauthblocked": "policy",
    "basic authentication is disabled": "policy",
    "not enabled for imap": "policy",
    "imap access is disabled": "policy",
    "imap is disabled": "policy",
    "disabled for imap": "policy",
    "authenticated but not connected": "policy",
}


class NotSecure(ImapError, NeedsRepair):
    """The connection is not secure, so nothing was sent over it."""

    def __init__(self, host: str, problem: str, remedy: str | None = None) -> None:
        usual = "check the host name and the port, and if the server is yours, give it a valid certificate"
        super().__init__(f"the connection to {host} is not secure: {problem}; {remedy or usual}")


_RENEW = "renew it, or tell whoever runs the server; after that, work continues by itself"
_OTHER_NAME = "use the name that it is for as the host, or give the server a certificate for this name"
_TRUST = (
    "if the server is yours, trust its certificate by `postroom account add imap --ca-file FILE`; if it is not, "
    "somebody else may be answering"
)
# By OpenSSL's codes (X509_V_ERR_…).
_REMEDY_FOR_CERTIFICATE: Mapping[int, str] = {
    9: _RENEW,
    10: _RENEW,
    18: _TRUST,
    19: _TRUST,
    20: _TRUST,
    21: _TRUST,
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}


def bad_certificate(host: str, error: ssl.SSLCertVerificationError) -> NotSecure:
    """The error for a certificate that was not accepted: whether it is nobody's, not for this time, or not for this
    name decides what to do.
    """
    said = error.verify_message.rstrip(".")
    return NotSecure(host, f"its certificate is not valid ({said})", _REMEDY_FOR_CERTIFICATE.get(error.verify_code))


class Unreachable(ImapError, MailboxUnreachable):
    """No connection, no answer in time, or only part of one."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"{host} was not reached: {problem}; it may work later")


class NoConnectionLeft(ImapError, MailboxBusy):
    """As many mailboxes wait for news as may."""

    def __init__(self) -> None:
        super().__init__("as many mailboxes wait for news as may; raise imap.most_connections")


class Busy(ImapError, MailboxBusy):
    """The server has too many connections or commands of this account, or somebody else holds the mailbox."""

    def __init__(self, command: str, code: str) -> None:
        super().__init__(f"{command}: the server wants us to wait ({code})", BUSY_FOR)
        self.code = code


class ServerFailed(ImapError, MailboxFailed):
    """The server failed on its own side, or refuses without a reason that we know."""

    def __init__(self, command: str, code: str | None) -> None:
        super().__init__(f"{command}: the server did not do it ({code or 'no reason given'}); it may work later")
        self.code = code


class TooBusy(ImapError, NotSent):
    """The gate was asked again and again, and its clearance was over each time before the command could leave."""


class MailboxFull(ImapError, NeedsRepair):
    """The mailbox is full."""

    def __init__(self, command: str) -> None:
        super().__init__(f"{command}: the mailbox is full (OVERQUOTA); make room in it, and waiting work continues")
        self.code = "OVERQUOTA"


class NoSuchMessage(ImapError, MessageGone):
    """The message is in no folder of the mailbox."""

    def __init__(self) -> None:
        super().__init__("no folder has the message any more")


class NoSuchFolder(ImapError, LabelMissing):
    """The mailbox has no folder, or no keyword, of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the mailbox has no folder or label {name[:100]!r}")
        self.code = "NONEXISTENT"


class FolderForbidden(ImapError, NotAllowed):
    """The server does not let this account do this in this folder."""

    def __init__(self, command: str, code: str | None = "NOPERM") -> None:
        super().__init__(f"{command}: the server does not allow it ({code}); ask for the right, or exclude the folder")
        self.code = code


class NotOffered(ImapError, NotAllowed):
    """The server lacks the extension that this needs."""

    def __init__(self, what: str, extension: str) -> None:
        super().__init__(f"{what}; the server has no {extension}")
        self.code = extension


class CommandRefused(ImapError, RequestRefused):
    """The server does not accept the command as it is."""

    def __init__(self, command: str, code: str | None = None) -> None:
        super().__init__(f"{command}: the server does not accept it ({code or 'BAD'})")
        self.code = code


class QueryRefused(ImapError, RequestRefused):
    """The search cannot be expressed for this server. The message says which part, and what to write instead."""


class NoPermit(ImapError, MailboxRefused):
    """A command that changes the mailbox was asked for without a permit."""

    def __init__(self, command: str) -> None:
        super().__init__(f"{command} changes the mailbox, but came without a permit; nothing was sent")


class BadAnswer(ImapError, UnreadableAnswer):
    """An answer that is not IMAP. The connection is closed: nothing after it can be trusted."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the server's answer cannot be read: {problem}")


class AnswerTooLarge(BadAnswer):
    """An answer larger than what was asked for."""

    is_too_large = True


_BUSY = frozenset({"LIMIT", "INUSE"})
_ADDING = frozenset({"APPEND", "UID COPY", "UID MOVE", "CREATE"})
_TOO_MANY = re.compile(r"too many (simultaneous )?(connections|logins)|(connection|bandwidth) limit", re.IGNORECASE)
_FAILED = frozenset({"UNAVAILABLE", "SERVERBUG", "CONTACTADMIN", "CORRUPTION", "EXPUNGEISSUED"})
_FORBIDDEN = frozenset({"NOPERM", "READ-ONLY"})


def refusal(command: str, kind: str, code: str | None) -> ImapError:
    """The error for an answer NO or BAD with this response code."""
    if code in _BUSY or (code == "OVERQUOTA" and command not in _ADDING):
        # Gmail says OVERQUOTA, too, for too many commands or bytes.
        return Busy(command, code)
    if code == "OVERQUOTA":
        return MailboxFull(command)
    if code in _FORBIDDEN:
        return FolderForbidden(command, code)
    if code in ("NONEXISTENT", "TRYCREATE"):
        return NoSuchFolder("it named")
    if code in _FAILED or (kind == "NO" and code not in ("CANNOT", "CLIENTBUG", "TOOBIG", "BADCHARSET")):
        return ServerFailed(command, code)
    return CommandRefused(command, code)


def sign_in_refusal(host: str, code: str | None, text: str = "", usual: SignInCause = "password") -> ImapError:
    """The error for a refused LOGIN or AUTHENTICATE; `usual` is the cause if it names none. Gmail has no code for too
    many connections, only a text.
    """
    if code in _BUSY or code == "OVERQUOTA" or _TOO_MANY.search(text):
        return Busy("sign-in", code or "too many connections")
    if code in ("UNAVAILABLE", "SERVERBUG"):
        return ServerFailed("sign-in", code)
    said = text.casefold()
    for phrase, cause in _CAUSE_OF_PHRASE.items():
        if phrase in said:
            return ImapSignInRefused(host, code, cause)
    return ImapSignInRefused(host, code, _CAUSE_OF_CODE.get(code) or usual)
