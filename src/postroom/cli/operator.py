"""Who sits at the command line, as the audit log names them."""

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroom.manage.audit import Signature


def operator_signature(reason: str | None = None) -> "Signature":
    """Whoever can open the database can do everything with it: an administrator, by the name of their login."""
    from postroom.core.roles import Role
    from postroom.manage.audit import signature

    return signature(f"cli:{_login()}", Role.ADMIN, reason)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # a container may run under a number that has no name
        return "unknown"
