"""The commands by which the owner of a mailbox over IMAP mends it."""

from postroom.core.mail.account_repair import connect_command
from postroom.mailboxes.imap.facts import NAME


def password_command(email: str) -> str:
    """The command to give a new password."""
    return connect_command(NAME, email)


def sign_in_command(email: str, app: str) -> str:
    """The command to consent again to a mailbox that is opened with access tokens."""
    return f"{password_command(email)} --sign-in {app}"
