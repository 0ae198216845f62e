"""Which role may call which tool. A tool that is not listed for a role does not exist for it.

A connector is bound to one endpoint identity and to channels. It ingests and reports for these only, so that what a
build server sends never shows up as mail. An agent may be bound to one account: then other accounts' mail does not
exist for it, nor do the queues, which hold the events of all accounts. No tool approves anything: that is for people.
What an agent may undo is in `core/actions/safety.py`.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from postroom.core.queue.envelope import PROVIDERS

CHANNELS = frozenset(PROVIDERS)
MAIL = "email"
MAIL_SOURCES = frozenset({"gmail", "imap", "email"})
# A stream carries the events of whichever program writes to it.
STREAMS = frozenset({"redis"})


def channels_of(identity: str) -> frozenset[str]:
    """The default channels of an endpoint. Only mailboxes have the mail channel."""
    source = identity.partition(":")[0].lower()
    if source in MAIL_SOURCES:
        return frozenset({MAIL})
    return frozenset({source}) if source in CHANNELS - STREAMS else CHANNELS - {MAIL}


class Role(StrEnum):
    CONNECTOR = "connector"
    DASHBOARD = "dashboard"
    AGENT = "agent"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: its role, the endpoint it is bound to (connectors only), and the token that proves it.

    `token_id` is None for parts of this process, which need no token. `account_id` is the only account whose mail an
    agent may see; None for all. `channels` are those a connector may ingest from; None for the default ones of its
    identity.
    """

    role: Role
    identity: str | None = None
    token_id: UUID | None = None
    account_id: UUID | None = None
    channels: frozenset[str] | None = None

    @property
    def allowed_channels(self) -> frozenset[str]:
        """The channels whose envelopes the caller may ingest."""
        if self.channels is not None or self.identity is None:
            return CHANNELS if self.channels is None else self.channels
        return channels_of(self.identity)

    @property
    def actor(self) -> str:
        """The caller's name in the audit log."""
        return f"token:{self.token_id}" if self.token_id is not None else f"process:{self.identity or self.role}"


TOOLS: dict[str, frozenset[Role]] = {
    "ingest": frozenset({Role.CONNECTOR, Role.ADMIN}),
    "ingest.batch": frozenset({Role.CONNECTOR, Role.ADMIN}),
    "connector.heartbeat": frozenset({Role.CONNECTOR}),
    "credentials.access_token": frozenset({Role.CONNECTOR}),
    "mail.changes": frozenset({Role.CONNECTOR}),
    "contacts.export": frozenset({Role.CONNECTOR}),
    "contacts.add": frozenset({Role.DASHBOARD, Role.ADMIN}),
    "contacts.written_to": frozenset({Role.CONNECTOR}),
    "filters.export": frozenset({Role.CONNECTOR}),
    "connector.requests": frozenset({Role.CONNECTOR}),
    "connector.reply": frozenset({Role.CONNECTOR}),
    "connector.request": frozenset({Role.DASHBOARD, Role.ADMIN}),
    "connector.list": frozenset({Role.DASHBOARD, Role.ADMIN}),
    "queue.next": frozenset({Role.AGENT, Role.ADMIN}),
    "queue.ack": frozenset({Role.AGENT, Role.ADMIN}),
    "queue.nack": frozenset({Role.AGENT, Role.ADMIN}),
    "queue.peek": frozenset({Role.AGENT, Role.DASHBOARD, Role.ADMIN}),
    "queue.stats": frozenset({Role.AGENT, Role.DASHBOARD, Role.ADMIN}),
    "queue.replay": frozenset({Role.ADMIN}),
    "mail.search": frozenset({Role.AGENT, Role.ADMIN}),
    "mail.read": frozenset({Role.AGENT, Role.ADMIN}),
    "mail.propose_action": frozenset({Role.AGENT, Role.ADMIN}),
    "actions.list": frozenset({Role.AGENT, Role.DASHBOARD, Role.ADMIN}),
    "actions.undo": frozenset({Role.AGENT, Role.DASHBOARD, Role.ADMIN}),
    "decisions.explain": frozenset({Role.AGENT, Role.DASHBOARD, Role.ADMIN}),
    "mutations.pause": frozenset({Role.DASHBOARD, Role.ADMIN}),
    "mutations.resume": frozenset({Role.DASHBOARD, Role.ADMIN}),
    "mutations.status": frozenset({Role.DASHBOARD, Role.ADMIN}),
}
# Queues hold the events of every account: an agent that is bound to one account has none of these tools.
ACROSS_ACCOUNTS = frozenset({"queue.next", "queue.ack", "queue.nack", "queue.peek", "queue.stats"})


def tools_of(principal: Principal) -> frozenset[str]:
    """The tools that exist for the caller."""
    tools = frozenset(tool for tool, roles in TOOLS.items() if principal.role in roles)
    return tools - ACROSS_ACCOUNTS if _is_bound_agent(principal) else tools


def is_of_other_accounts(principal: Principal, tool: str) -> bool:
    """Whether the caller lacks the tool only because it is bound to one account."""
    return tool in ACROSS_ACCOUNTS and _is_bound_agent(principal)


def _is_bound_agent(principal: Principal) -> bool:
    return principal.role is Role.AGENT and principal.account_id is not None
