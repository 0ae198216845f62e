"""The form token as an answer carries it: masked, so that no two answers carry the same text.

Answers are compressed, and the size of a compressed answer tells how much of it repeats. Whoever could put guesses into
a page beside the token, and see the sizes, would learn the token letter by letter (BREACH). A mask that is random in
each answer leaves nothing to learn. The token itself stays the same for the session.
"""

import secrets

from postroom.core import base64url
from postroom.core.visitors import Visitor


def masked_form_token(visitor: Visitor) -> str:
    """Return the visitor's token under a new mask, for one answer."""
    token = visitor.form_token.encode()
    mask = secrets.token_bytes(len(token))
    return base64url.encode(mask + _combine(mask, token))


def is_form_token(given: str, visitor: Visitor) -> bool:
    """Whether the text is the visitor's token under any mask."""
    return secrets.compare_digest(unmasked(given), visitor.form_token.encode())


def unmasked(given: str) -> bytes:
    """Return the token under the mask; nothing if it is none."""
    try:
        content = base64url.decode(given)
    except ValueError:
        return b""
    middle, odd = divmod(len(content), 2)
    return b"" if odd else _combine(content[:middle], content[middle:])


def _combine(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
