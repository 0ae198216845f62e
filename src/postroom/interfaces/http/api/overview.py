"""The overview: the road of messages, what needs a person, spend, accounts, and the kill switch."""

from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from postroom.core.access import ANSWER_AGAIN, STEER
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Answer, Arguments, Done, Nothing, Reason
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.actions.approvals import count_waiting
from postroom.operations.overview.attention import Need

OVERVIEW = Noun("Overview")
WindowName = Literal["24h", "7d", "30d"]
WINDOWS: dict[WindowName, timedelta] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


class OverviewQuery(Arguments):
    window: WindowName = Field("24h", description="The window of the road.")


class ControlForm(Answer):
    """Whether changes to mailboxes are allowed now. Without `paused_since` they are."""

    paused_since: datetime | None
    paused_because: str
    paused_everywhere: bool
    model: str | None
    waiting: list[str] = Field(description="What begins when everything is resumed, line by line; empty if it runs.")


class UntrustedTrouble(Answer):
    reason: str | None
    trouble: str | None


class AccountLineForm(Answer):
    """An account: whether it is in use, and its connector's last report."""

    email: str
    provider: str = Field(description="`gmail`, or `imap`.")
    server: str | None = Field(description="The server that the mail is read from, over IMAP.")
    state: str
    level: str | None
    connector: str
    heard_at: datetime | None
    ingested: int
    refused: int
    set_aside: int
    dies_at: datetime | None = Field(description="When its consent ends, if that is soon.")
    acts_from: datetime | None = Field(description="Since when mail is acted on; none while all is decided in shadow.")
    remedy: str | None
    untrusted: UntrustedTrouble


class UntrustedDetail(Answer):
    detail: str


class AttentionForm(Answer):
    """Something that needs a person."""

    need: Need
    count: int
    about: str
    untrusted: UntrustedDetail


class RoadLinkForm(Answer):
    """How many went from one place to the next. `stage` 0 is from source to tier, 1 to the decider, 2 to the end."""

    stage: int
    start: str
    end: str
    tier: str
    count: int


class TierWaitForm(Answer):
    """Upper bounds of the waits in a tier: half of the messages, and all but one in twenty, waited less."""

    queue: str
    tier: str
    count: int
    half_ms: int
    most_ms: int


class RoadForm(Answer):
    since: datetime
    until: datetime
    came_in: int
    links: list[RoadLinkForm]
    waits: list[TierWaitForm]
    tiers: dict[str, int]


class SpendForm(Answer):
    """The cost of the model today, in US cents."""

    spent_today_cents: float
    left_today_cents: float
    calls_today: int
    next_budget_at: datetime


class OverviewAnswer(Answer):
    """`spend` is null without a model. `in_line` is how many wait now in each tier, over all queues."""

    control: ControlForm
    attention: list[AttentionForm]
    approvals_waiting: int
    in_line: dict[str, int]
    hidden_today: int = Field(
        description="Messages that the model and agents have hidden today without approval; `/mail?state=hidden` "
        "lists them."
    )
    road: RoadForm
    accounts: list[AccountLineForm]
    spend: SpendForm | None


@OVERVIEW.get("/overview")
async def read_overview(call: Call, query: OverviewQuery) -> OverviewAnswer:
    """What came in and what became of it, what needs a person, and whether changes are paused."""
    overview = call.parts.overview
    accounts = await overview.accounts()
    spend = await overview.spend()
    return OverviewAnswer(
        control=ControlForm.of(await overview.control_state()),
        attention=[AttentionForm.of(each) for each in await overview.attention(accounts)],
        approvals_waiting=await count_waiting(call.database),
        in_line=dict(await overview.in_line()),
        hidden_today=(await overview.hidden_today()).count,
        road=RoadForm.of(await overview.road(WINDOWS[query.window])),
        accounts=[AccountLineForm.of(each) for each in accounts],
        spend=None if spend is None else SpendForm.of(spend),
    )


class PausedAnswer(Done):
    """A pause in effect."""

    on_wire: int = Field(description="How many requests had left before it. They may still take effect.")
    silent_processes: int = Field(
        description="How many processes did not answer. They can send nothing more; what they had sent is unknown."
    )


@OVERVIEW.post("/pause", STEER)
async def pause(call: Call, body: Reason) -> PausedAnswer:
    """Stop all changes to mailboxes, everywhere. When it answers, no request starts any more; it says how many had
    left before and may still take effect. Safe to repeat."""
    stopped = await call.parts.overview.pause(call.signed(body.reason))
    done = f"Paused: nothing is changed in any mailbox until it is resumed; {stopped.in_words()}."
    return PausedAnswer(done=done, on_wire=stopped.on_wire, silent_processes=stopped.silent)


@OVERVIEW.post("/resume", ANSWER_AGAIN)
async def resume(call: Call, body: Nothing) -> Done:
    """Allow changes to mailboxes again. Safe to repeat."""
    await call.parts.overview.resume(call.signed())
    return Done(done="Resumed: what waited goes on.")
