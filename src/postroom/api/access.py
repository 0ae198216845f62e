"""Who may call an operation: people by their role, programs by the role of their token.

No token answers an approval, acts on mail as its owner, or does what people are asked a fresh proof for: such acts are
a person's own.
"""

from dataclasses import dataclass

from postroom.core.roles import Role
from postroom.core.visitors import PersonRole


@dataclass(frozen=True, slots=True)
class Access:
    """`person` is the lowest role of people that may call, `tokens` are the roles of tokens that may.

    With `is_fresh`, people must have proved who they are a few minutes ago.
    """

    person: PersonRole
    tokens: frozenset[Role] = frozenset()
    is_fresh: bool = False


_PROGRAMS = frozenset({Role.DASHBOARD, Role.ADMIN})

ANYBODY = Access("viewer", frozenset(Role))
"""Everybody who is known."""
READ = Access("viewer", _PROGRAMS)
STEER = Access("operator", _PROGRAMS)
"""Acts that the role `dashboard` may do over MCP too."""
OPERATE = Access("operator", frozenset({Role.ADMIN}))
ADMINISTER = Access("admin", frozenset({Role.ADMIN}))
ANSWER = Access("operator")
"""People only: an answer to an approval, and what is done to mail as its owner's own act."""
ANSWER_AGAIN = Access("operator", is_fresh=True)
"""People only, who have proved again who they are."""
OWN = Access("admin")
"""Admins only, and no token: what concerns tokens."""
OWN_AGAIN = Access("admin", is_fresh=True)
