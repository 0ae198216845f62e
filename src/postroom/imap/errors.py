"""The errors of the IMAP client, as one branch of the error tree.

    MailboxError
    └── ImapError
        ├── SignInRefused       the server does not accept the password, the app password or the token
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
        ├── NoPermit            a change without a permit: a bug of ours
        └── BadAnswer           not IMAP: the connection is closed, since nothing after it can be trusted
            └── AnswerTooLarge

Each is also one of the kinds of `MailboxError`, which is all that others need to know. No message quotes what we sent,
nor the server's own text, which may quote it or the mail; only its response code is kept.
"""

from datetime import timedelta

from postroom.core.errors import (
    LabelMissing,
    MailboxBusy,
    MailboxError,
    MailboxFailed,
    MailboxRefused,
    MailboxUnreachable,
    MessageGone,
    NeedsPerson,
    NotAllowed,
    RequestRefused,
    UnreadableAnswer,
)

BUSY_FOR = timedelta(minutes=5)


class ImapError(MailboxError):
    """The root of all errors of the IMAP client."""


class SignInRefused(ImapError, NeedsPerson):
    """The server does not let us in. `code` tells whether password or policy is why, if it says so."""

    def __init__(self, host: str, code: str | None = None) -> None:
        super().__init__(
            f"{host} does not accept the sign-in ({code or 'no reason given'}): {_REMEDIES.get(code, _SIGN_IN)}"
        )
        self.code = code


_SIGN_IN = (
    "the password may be wrong or may have been changed, or the provider may want an app password; give the account a "
    "new one, and waiting work continues"
)
_REMEDIES: dict[str | None, str] = {
    "AUTHENTICATIONFAILED": _SIGN_IN,
    "AUTHORIZATIONFAILED": "this user may not open the mailbox; ask the mailbox's provider",
    "EXPIRED": "the password has expired; set a new one at the provider, then give it to the account",
    "PRIVACYREQUIRED": "the server wants TLS; use its port for TLS, or STARTTLS",
    "WEBALERT": "the provider wants its owner to sign in on the web once, and to confirm that it was them",
    "ALERT": "the provider wants its owner to sign in on the web once, and to confirm that it was them",
    "CONTACTADMIN": "the administrator of the mail server must be asked",
}


class NotSecure(ImapError, NeedsPerson):
    """The connection is not secure, so nothing was sent over it."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(
            f"the connection to {host} is not secure: {problem}; check the host name and the port, and if the server "
            "is yours, give it a valid certificate"
        )


class Unreachable(ImapError, MailboxUnreachable):
    """No connection, no answer in time, or only part of one."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"{host} was not reached: {problem}; this is retried")


class Busy(ImapError, MailboxBusy):
    """The server has too many connections or commands of this account, or somebody else holds the mailbox."""

    def __init__(self, command: str, code: str) -> None:
        super().__init__(f"{command}: the server wants us to wait ({code})", BUSY_FOR)
        self.code = code


class ServerFailed(ImapError, MailboxFailed):
    """The server failed on its own side, or refuses without a reason that we know."""

    def __init__(self, command: str, code: str | None) -> None:
        super().__init__(f"{command}: the server did not do it ({code or 'no reason given'}); this is retried")
        self.code = code


class MailboxFull(ImapError, NeedsPerson):
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


class NoPermit(ImapError, MailboxRefused):
    """A command that changes the mailbox was asked for without a permit."""

    def __init__(self, command: str) -> None:
        super().__init__(f"{command} changes the mailbox, but came without a permit; nothing was sent")


class BadAnswer(ImapError, UnreadableAnswer):
    """What came is not IMAP. The connection is closed: nothing after it can be trusted."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the server's answer cannot be read: {problem}")


class AnswerTooLarge(BadAnswer):
    """An answer larger than what was asked for."""

    is_too_large = True


_BUSY = frozenset({"LIMIT", "INUSE"})
_FAILED = frozenset({"UNAVAILABLE", "SERVERBUG", "CONTACTADMIN", "CORRUPTION", "EXPUNGEISSUED"})
_FORBIDDEN = frozenset({"NOPERM", "READ-ONLY"})


def refusal(command: str, kind: str, code: str | None) -> ImapError:
    """The error for an answer NO or BAD with this response code."""
    if code in _BUSY:
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


def sign_in_refusal(host: str, kind: str, code: str | None) -> ImapError:
    """The error for a refused LOGIN or AUTHENTICATE."""
    if code in _BUSY:
        return Busy("sign-in", code)
    if code in ("UNAVAILABLE", "SERVERBUG"):
        return ServerFailed("sign-in", code)
    return SignInRefused(host, code)
