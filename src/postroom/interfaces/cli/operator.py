"""The person at the command line, as the audit log names them."""

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroom.operations.people.audit import Signature


def operator_signature(reason: str | None = None) -> "Signature":
    """Return the operator as an administrator, by login name: anyone who can open the database can change all of it."""
    from postroom.core.roles import Role
    from postroom.operations.people.audit import signature

    return signature(f"cli:{_login()}", Role.ADMIN, reason)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # in a container the user id may have no name
        return "unknown"
