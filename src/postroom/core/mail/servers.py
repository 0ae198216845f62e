"""The servers of a mailbox that is reached over IMAP, as its owner gave them: where they are and how to sign in."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Security = Literal["tls", "starttls", "plain"]
SignInKind = Literal["password", "xoauth2", "oauthbearer"]
AppName = Literal["google", "microsoft"]
"""Whose app gets the access tokens."""
LabelsAs = Literal["keywords", "folders"]


@dataclass(frozen=True, slots=True)
class MailServers:
    """Where an account's mail is read and, if it can send, handed over. `given_at` is when its owner last gave these
    and the password; a refusal of an older password no longer matters.

    `files_sent_mail` tells whether the server itself puts what is sent into the sent folder. `trusted_certificates` are
    trusted for both servers in addition to the system's, in PEM. `authserv_ids` are the names, with blanks between
    them, under which the hosts that receive the mail report on authentication, as far as its owner named them.
    """

    imap_host: str
    imap_port: int
    imap_security: Security
    smtp_host: str | None
    smtp_port: int | None
    smtp_security: Security | None
    user_name: str
    sign_in: SignInKind
    labels_as: LabelsAs
    files_sent_mail: bool
    given_at: datetime
    trusted_certificates: str | None = None
    authserv_ids: str = ""
