"""Passwords of senders and people: hashed with argon2id, so that reading the database reveals none.

Hashing takes about 50 ms and 64 MiB on purpose; callers on an event loop use a thread.
"""

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from postroom.core.errors import BadInput

SHORTEST, LONGEST = 12, 512
_hasher = PasswordHasher()


def hash_password(password: str, field: str = "sender") -> str:
    """Hash a new password. Raises BadInput if it is too short to resist guessing, or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        remedy = f"use {SHORTEST} to {LONGEST}, such as from `openssl rand -base64 24`"
        raise BadInput(field, f"the password has {len(password)} characters", remedy)
    if not password.isprintable():
        raise BadInput(field, "the password contains a character that cannot be typed", "leave it out")
    return _hasher.hash(password)


def is_password(password: str, password_hash: str) -> bool:
    """Whether this is the password with this hash."""
    try:
        return _hasher.verify(password_hash, password)
    except (Argon2Error, InvalidHashError):
        return False
