"""The overview page's data: the road of messages, what needs a person, spend, accounts, the newest messages.

Every text in a `MailLine` may come from a stranger's mail. Nothing here is trusted; the page makes it safe to show.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Literal

from postroom.core.access import READ
from postroom.core.days import day_began
from postroom.operations.accounts.account_status import AccountLine, account_lines
from postroom.operations.actions.approvals import count_waiting
from postroom.operations.actions.kill_switch import released_by_resuming
from postroom.operations.mail.mail_lines import MailLine, MailQuestion, count_hidden, list_lines
from postroom.operations.nouns import OVERVIEW
from postroom.operations.operation import Argument, get
from postroom.operations.overview.attention import Attention, needs_attention
from postroom.operations.overview.channels import changes_on
from postroom.operations.overview.first_steps import FirstSteps, first_steps
from postroom.operations.overview.road import Road, read_road
from postroom.operations.overview.today import Today, read_today
from postroom.operations.rules.model import ModelStatus, model_status
from postroom.settings.outbound import OutboundSettings
from postroom.settings.sections import ModelSettings
from postroom.store.accounts import accounts
from postroom.store.actions import decisions, pauses
from postroom.store.engine.database import Database
from postroom.store.intake import acceptance, history
from postroom.store.jobs import jobs
from postroom.system.wall_clock import Clock, wall_clock

CHANNELS = (acceptance.CHANNEL, accounts.CHANNEL, decisions.CHANNEL, jobs.CHANNEL, pauses.CHANNEL)
WindowName = Literal["24h", "7d", "30d"]
WINDOWS: dict[WindowName, timedelta] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


@dataclass(frozen=True, slots=True)
class ControlState:
    """Whether changes are allowed now, and which model decides besides the rules."""

    paused_since: datetime | None = None
    paused_because: str = ""
    paused_everywhere: bool = True
    model: str | None = None
    waiting: Annotated[
        Sequence[str], "The work that begins when everything is resumed, line by line; empty if it runs."
    ] = ()


@dataclass(frozen=True, slots=True)
class HiddenToday:
    """Messages that the model and agents have hidden today without a person's approval, newest first."""

    count: int
    lines: Sequence[MailLine]


@dataclass(eq=False, slots=True)
class Overview:
    """Read the overview from the database, and signal announced changes."""

    database: Database
    clock: Clock = wall_clock
    _: KW_ONLY
    model: ModelSettings | None = None
    zone: tzinfo = UTC
    """`zone` is that of the owner's day."""
    outbound: OutboundSettings | None = None
    """Without them, outgoing mail is not judged."""

    async def lines(self, limit: int) -> Sequence[MailLine]:
        """Return the newest mail, newest first."""
        return (await list_lines(self.database, MailQuestion(kind="mail"), limit)).lines

    async def in_line(self) -> Mapping[str, int]:
        """Return how many wait now, by tier, over all queues."""
        counts = Counter[str]()
        for each in await self.database.run(history.depths()):
            counts[each.tier] += each.count if each.state == "waiting" else 0
        return +counts

    async def road(self, window: timedelta) -> Road:
        return await read_road(self.database, window, self.clock)

    async def attention(self, accounts: list[AccountLine]) -> list[Attention]:
        return await needs_attention(self.database, accounts, self.clock, self.outbound)

    async def first_steps(
        self, accounts: list[AccountLine], control: "ControlState", *, has_mail: bool, has_events: bool
    ) -> FirstSteps | None:
        """Return the steps that lead into a new installation; None when they are behind."""
        if not accounts and (has_mail or has_events):
            return None  # it is used without a mailbox
        is_paused, has_model = control.paused_since is not None, self.model is not None
        return await first_steps(self.database, accounts, has_mail=has_mail, has_model=has_model, is_paused=is_paused)

    async def spend(self) -> ModelStatus | None:
        """Return what the model has cost today; None without one."""
        if self.model is None:
            return None
        return await model_status(self.database, self.model, self.clock, zone=self.zone)

    async def hidden_today(self, zone: tzinfo | None = None, most: int = 5) -> HiddenToday:
        """Return what was hidden since the reader's midnight, or the owner's, and not brought back."""
        since = day_began(self.clock(), zone or self.zone)
        count = await count_hidden(self.database, since)
        if not count:
            return HiddenToday(0, ())
        asked = MailQuestion(kind="mail", state="hidden", since=since)
        return HiddenToday(count, (await list_lines(self.database, asked, most)).lines)

    async def today(self, zone: tzinfo) -> Today:
        """Return what was done since the reader's midnight and not undone."""
        return await read_today(self.database, self.clock(), zone)

    async def count_waiting(self) -> int:
        """Return the number of actions that wait for a yes."""
        return await count_waiting(self.database)

    async def accounts(self) -> list[AccountLine]:
        return await account_lines(self.database, self.clock())

    async def control_state(self) -> ControlState:
        found = await self.database.run(pauses.standing_pauses())
        if not found:
            return ControlState(model=self._model_name)
        everywhere = [each for each in found if each.scope == pauses.ALL]
        first = (everywhere or found)[0]
        waiting = await released_by_resuming(self.database, None) if everywhere else None
        return ControlState(first.since, first.reason, bool(everywhere), self._model_name, waiting or ())

    @property
    def _model_name(self) -> str | None:
        return None if self.model is None else self.model.name

    def changes(self) -> AsyncIterator[None]:
        return changes_on(self.database, CHANNELS)


@dataclass(frozen=True, slots=True)
class OverviewAnswer:
    """`spend` is null without a model. `in_line` is how many wait now in each tier, over all queues."""

    control: ControlState
    attention: Sequence[Attention]
    approvals_waiting: int
    in_line: Mapping[str, int]
    hidden_today: Annotated[
        int,
        "Messages that the model and agents have hidden today without approval; `/mail?state=hidden` lists them.",
    ]
    road: Road
    accounts: Sequence[AccountLine]
    spend: ModelStatus | None


@OVERVIEW.operation(READ, get("/overview"))
async def read_overview(
    overview: Overview, /, window: Annotated[WindowName, Argument("The window of the road.")] = "24h"
) -> OverviewAnswer:
    """New mail and its outcomes, open tasks, and whether changes are paused."""
    accounts = await overview.accounts()
    return OverviewAnswer(
        control=await overview.control_state(),
        attention=await overview.attention(accounts),
        approvals_waiting=await overview.count_waiting(),
        in_line=await overview.in_line(),
        hidden_today=(await overview.hidden_today()).count,
        road=await overview.road(WINDOWS[window]),
        accounts=accounts,
        spend=await overview.spend(),
    )
