"""Who may call an operation, on every interface: people by their role, programs by the role of their token.

No token answers an approval, acts on mail as its owner, ends a pause, or does anything that needs a fresh proof: such
acts are a person's own.

The JSON API and the streams of the pages serve only the roles in `SEES_ALL`. Tokens of the other roles are bound to an
account, an endpoint or a sender, or have queues of their own: MCP and `/v1` keep them within these bounds. For a role
in `SEES_ALL`, an operation has one access, whatever the interface; `tests/security/test_same_access.py` compares them.
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


SEES_ALL = frozenset({Role.DASHBOARD, Role.ADMIN})
"""The roles of tokens that see everything, and so may use every interface."""

READS_METRICS = SEES_ALL | {Role.METRICS}
"""The roles of tokens that read `/metrics`."""
ANYBODY = Access("viewer", frozenset(Role) - {Role.METRICS})
"""Everybody who is known, but for those that read metrics and nothing else."""
READ = Access("viewer", SEES_ALL)
STEER = Access("operator", SEES_ALL)
"""Acts that can be repeated or taken back: pause, undo, sync, backfills."""
OPERATE = Access("operator", frozenset({Role.ADMIN}))
ADMINISTER = Access("admin", frozenset({Role.ADMIN}))
ANSWER = Access("operator")
"""People only: answers to approvals, and the owner's own acts on their mail."""
ANSWER_AGAIN = Access("operator", is_fresh=True)
"""People only, who have proved again who they are."""
CONNECTORS = Access("admin", frozenset({Role.CONNECTOR}))
"""What connectors ask and report, over MCP alone."""
SENDERS = Access("admin", frozenset({Role.SENDER}))
"""What senders ask about their own mail, over MCP and `/v1/messages`."""
OWN = Access("admin")
"""Admins only, and no token: what concerns tokens."""
OWN_AGAIN = Access("admin", is_fresh=True)
