"""The overview: the road of messages, what needs a person, spend, accounts, and the kill switch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from postroom.core.access import ANSWER_AGAIN, STEER
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Arguments, Done, Nothing, Reason
from postroom.interfaces.http.api.handwritten import Noun
from postroom.operations.accounts.account_status import AccountLine
from postroom.operations.actions.approvals import count_waiting
from postroom.operations.overview.attention import Attention
from postroom.operations.overview.overview import ControlState
from postroom.operations.overview.road import Road
from postroom.operations.rules.model import ModelStatus

OVERVIEW = Noun("Overview")
WindowName = Literal["24h", "7d", "30d"]
WINDOWS: dict[WindowName, timedelta] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


class OverviewQuery(Arguments):
    window: WindowName = Field("24h", description="The window of the road.")


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


@OVERVIEW.get("/overview")
async def read_overview(call: Call, query: OverviewQuery) -> OverviewAnswer:
    """What came in and what became of it, what needs a person, and whether changes are paused."""
    overview = call.parts.overview
    accounts = await overview.accounts()
    return OverviewAnswer(
        control=await overview.control_state(),
        attention=await overview.attention(accounts),
        approvals_waiting=await count_waiting(call.database),
        in_line=await overview.in_line(),
        hidden_today=(await overview.hidden_today()).count,
        road=await overview.road(WINDOWS[query.window]),
        accounts=accounts,
        spend=await overview.spend(),
    )


@dataclass(frozen=True, slots=True)
class PausedAnswer(Done):
    """A pause in effect."""

    on_wire: Annotated[int, "How many requests had left before it. They may still take effect."]
    silent_processes: Annotated[
        int, "How many processes did not answer. They can send nothing more; what they had sent is unknown."
    ]


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
