"""Who calls: roles, and the callers that have them. Each operation says which roles may ask for it (`core/access.py`).

A connector is bound to one endpoint identity and to channels. It ingests and reports for these only, so that events of
a build server never show up as mail. An agent may be bound to one account: then other accounts' mail does not exist for
it, nor do the queues, which hold the events of all accounts. A sender submits mail on behalf of the one sender that its
token is bound to, and sees its outcome; nothing else exists for it. A program that watches Postroom reads metrics and
health, and no mail. No tool approves anything: that is for people. `core/actions/safety.py` decides what an agent may
undo.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from postroom.core.mail.providers import PROVIDERS
from postroom.core.queue import envelope
from postroom.core.queue.envelope import MAIL

CHANNELS = frozenset(envelope.CHANNELS)
# A stream carries the events of whichever program writes to it.
STREAMS = frozenset({"redis"})


def channels_of(identity: str) -> frozenset[str]:
    """The default channels of an endpoint. Only mailboxes have the mail channel."""
    source = identity.partition(":")[0].lower()
    if source == MAIL or source in PROVIDERS:
        return frozenset({MAIL})
    return frozenset({source}) if source in CHANNELS - STREAMS else CHANNELS - {MAIL}


class Role(StrEnum):
    CONNECTOR = "connector"
    DASHBOARD = "dashboard"
    AGENT = "agent"
    ADMIN = "admin"
    SENDER = "sender"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: its role, the endpoint it is bound to (connectors only), and the token that proves it.

    `token_id` is None for parts of this process, which need no token. `account_id` is the only account whose mail an
    agent may see; None for all. `channels` are those a connector may ingest from; None for the default ones of its
    identity. `sender_id` is the sender on whose behalf a caller of that role submits mail.
    """

    role: Role
    identity: str | None = None
    token_id: UUID | None = None
    account_id: UUID | None = None
    channels: frozenset[str] | None = None
    sender_id: int | None = None

    @property
    def allowed_channels(self) -> frozenset[str]:
        """The channels whose envelopes the caller may ingest."""
        if self.channels is not None or self.identity is None:
            return CHANNELS if self.channels is None else self.channels
        return channels_of(self.identity)

    @property
    def is_bound_agent(self) -> bool:
        """Whether the caller is an agent that may see one account only."""
        return self.role is Role.AGENT and self.account_id is not None

    @property
    def actor(self) -> str:
        """The caller's name in the audit log."""
        return f"token:{self.token_id}" if self.token_id is not None else f"process:{self.identity or self.role}"
