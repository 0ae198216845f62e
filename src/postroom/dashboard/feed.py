"""What the dashboard needs from below: the lines of the page, its totals, the accounts, and word of every change.

The pages know this protocol and nothing of the store behind it. Every text in a `MessageLine` may come from a
stranger's mail; nothing here is trusted, and everything is made fit to be shown in `display`.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One message: how it arrived, what was decided and why, and what came of it."""

    inbox_id: UUID
    seq: int
    accepted_at: datetime
    tier: str
    assignment_rule: str | None
    sender: str
    subject: str
    state: str
    """`waiting`, `leased`, `done` or `failed`."""
    decision: str | None = None
    """For instance `archive`, `apply_label Receipts` or `keep`."""
    source: str | None = None
    """Who decided: `deterministic` for a rule, `model`, …"""
    rule_name: str | None = None
    rationale: str | None = None
    action_state: str | None = None
    action_error: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts at the top of the page."""

    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    """Messages that wait in the buffer, by tier, in the order of the tiers."""
    decided: int = 0
    actions_completed: int = 0
    actions_failed: int = 0
    approvals: int = 0
    """Actions that wait for the owner's yes."""
    jobs_queued: int = 0
    jobs_running: int = 0
    jobs_failed: int = 0


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One account: whether it is used, what was consented to, and what its connector was last heard to say."""

    email: str
    state: str
    """`active`, `paused` or `needs_consent`."""
    reason: str | None = None
    level: str | None = None
    connector: str = "never"
    """`online`, `stale` or `offline`; `never` when none has ever reported."""
    heard_at: datetime | None = None
    trouble: str | None = None
    """What the connector says of itself when it is not well."""
    ingested: int = 0
    refused: int = 0
    set_aside: int = 0
    """Messages that the mailbox has not given so far; they are tried again."""
    dies_at: datetime | None = None
    """When its consent ends, if that is soon."""
    remedy: str | None = None
    """What has to be put right before the command helps, if it is not the consent."""
    command: str | None = None
    """What the owner runs to put it right, if there is something to put right."""
    retry: str | None = None
    """What the owner runs to have mail that was left out tried once more, if there is any."""


@dataclass(frozen=True, slots=True)
class ControlState:
    """Whether anything may be changed now, whether the page may let it go on, and who decides."""

    paused_since: datetime | None = None
    paused_because: str = ""
    paused_everywhere: bool = True
    model: str | None = None
    may_resume: bool = False


class Feed(Protocol):
    """Where the page's content comes from."""

    async def lines(self, limit: int) -> list[MessageLine]:
        """The newest messages, newest first."""
        ...

    async def totals(self) -> Totals: ...

    async def accounts(self) -> list[AccountLine]:
        """The accounts that were not removed, oldest first."""
        ...

    async def standing(self) -> ControlState: ...

    def changes(self) -> AsyncIterator[None]:
        """Yields at once, and then whenever something may have changed since the last value was taken.

        Coalesced: many changes while the reader is busy make one value ready, and none is lost. The reader looks
        again by itself every few seconds, so changes made by other processes may go unannounced.
        """
        ...
