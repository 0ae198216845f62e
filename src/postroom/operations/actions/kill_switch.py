"""The kill switch: stop all changes to mailboxes, everywhere or in one account, and allow them again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from postroom.core.access import ANSWER_AGAIN, READ, STEER
from postroom.core.counted import counted
from postroom.core.views import Done
from postroom.operations.accounts.accounts import find_account, list_accounts
from postroom.operations.actions.pausing import Stopped, in_flight, stop
from postroom.operations.caller import Caller
from postroom.operations.nouns import OVERVIEW
from postroom.operations.operation import ADDS_ONCE, READS, Argument, command, dialogue, form, post, tool
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.triage.act.approval_notice import cause_of
from postroom.words.jobs import WAITING_WORK

Account = Annotated[str | None, Argument("Only this account's mailbox; default: all.", typed_as="--account ADDRESS")]
UNEXPLAINED = "by the user"


@dataclass(frozen=True, slots=True)
class PausedAnswer(Done):
    """A pause in effect."""

    scope: Annotated[str, "The id of an account, or `all`."]
    reason: str
    since: datetime
    on_wire: Annotated[int, "How many requests had left before it. They may still take effect."]
    silent_processes: Annotated[
        int, "How many processes did not answer. They can send nothing more; what they had sent is unknown."
    ]

    @property
    def in_flight(self) -> str:
        return in_flight(self.on_wire, self.silent_processes)


@dataclass(frozen=True, slots=True)
class PauseView:
    """`account` is null for the pause of all mailboxes."""

    account: str | None
    reason: str
    set_by: str
    since: datetime


@dataclass(frozen=True, slots=True)
class StoppedView(PauseView):
    """A pause in effect: `on_wire` requests had been sent before it, `silent_processes` did not confirm it."""

    on_wire: int
    silent_processes: int


@dataclass(frozen=True, slots=True)
class PausesView:
    """`paused` is true if all changes are paused; `pauses` are all that are in effect."""

    paused: bool
    pauses: Sequence[PauseView]


@dataclass(frozen=True, slots=True)
class ResumedAnswer(Done):
    """The end of a pause."""

    was_paused: bool
    jobs_released: Annotated[int, "How many waiting jobs continue."]


@OVERVIEW.operation(
    STEER,
    post("/pause"),
    form("/pause", "Paused: nothing is changed in any mailbox until you resume; {in_flight}."),
    command("pause"),
    signs=True,
)
async def pause(by: Caller, /, account: Account = None) -> PausedAnswer:
    """Stop all changes to mailboxes, everywhere or in one account. When it answers, no process changes or sends
    anything; it says how many requests had left before and may still take effect. Mail still arrives and is decided on;
    actions wait, and show the reason. Safe to repeat."""
    stopped = await pause_changes(by, account, by.signature.reason or UNEXPLAINED)
    where = "any mailbox" if account is None else f"the mailbox of {account}"
    done = f"Paused: nothing is changed in {where} until you resume; {in_flight(stopped.on_wire, stopped.silent)}."
    scope, reason, since = stopped.pause.scope, stopped.pause.reason, stopped.pause.since
    return PausedAnswer(done, scope, reason, since, stopped.on_wire, stopped.silent)


@OVERVIEW.operation(ANSWER_AGAIN, post("/resume"), form("/resume", "Resumed: what waited goes on."), dialogue("resume"))
async def resume(by: Caller, /, account: Account = None) -> ResumedAnswer:
    """Allow changes to mailboxes again, everywhere or in one account. Safe to repeat."""
    released = await resume_changes(by, account)
    if released is None:
        return ResumedAnswer("Nothing was paused.", was_paused=False, jobs_released=0)
    done = f"Resumed; {counted(released, 'waiting job')} released."
    return ResumedAnswer(done, was_paused=True, jobs_released=released)


@OVERVIEW.operation(STEER, tool("mutations.pause", "Stop every change to mailboxes", ADDS_ONCE))
async def pause_mailboxes(
    by: Caller,
    /,
    reason: Annotated[str, Argument("The reason; shown with everything that waits.")],
    account: Annotated[str | None, Argument("Only the mailbox of this address; else all mailboxes.")] = None,
) -> StoppedView:
    """Pauses all changes to all mailboxes, or to that of one account, until a person resumes
    them on the page or with `postroom resume`; no tool does. Mail is still ingested and decided on; actions wait.
    """
    stopped = await pause_changes(by.because(reason), account, reason)
    pause = stopped.pause
    address = await _address_of(by.database, pause.scope)
    return StoppedView(address, pause.reason, pause.set_by, pause.since, stopped.on_wire, stopped.silent)


@OVERVIEW.operation(READ, tool("mutations.status", "Show whether changes are paused", READS))
async def list_pauses(database: Database, /) -> PausesView:
    """Lists the pauses in effect: the mailbox or all, the reason, since when, and who set them."""
    found = await database.run(pauses.standing_pauses())
    shown = [PauseView(await _address_of(database, each.scope), each.reason, each.set_by, each.since) for each in found]
    return PausesView(any(each.scope == pauses.ALL for each in found), shown)


async def _address_of(database: Database, scope: str) -> str | None:
    """The address of the account that a pause is about; None for all."""
    if scope == pauses.ALL:
        return None
    return next((each.email for each in await list_accounts(database) if str(each.id) == scope), scope)


async def pause_changes(by: Caller, account: str | None, reason: str) -> Stopped:
    """Pause. When this returns, no process changes or sends anything more."""
    return await stop(by, await _scope(by.database, account), reason)


async def resume_changes(by: Caller, account: str | None) -> int | None:
    """Resume. Return how many waiting jobs continue; None if nothing was paused."""
    return await by.run(pauses.resume(await _scope(by.database, account), by.signature, by.clock()))


async def released_by_resuming(database: Database, account: str | None) -> list[str] | None:
    """Say what would begin if the pause ended now, line by line; None if there is no such pause."""
    scope = await _scope(database, account)
    if not await database.run(pauses.is_paused(scope)):
        return None
    return [_in_words(each) for each in await database.run(pauses.waiting_work(scope))]


def _in_words(waiting: pauses.WaitingWork) -> str:
    if waiting.actor is not None:
        what = waiting.kind.replace("_", " ")
        return f"{waiting.number:,} × {what}, asked for by {cause_of(waiting.actor, waiting.agent)}"
    return f"{waiting.number:,} × {WAITING_WORK.get(waiting.kind, waiting.kind)}"


async def _scope(database: Database, account: str | None) -> str:
    return pauses.ALL if account is None else str((await find_account(database, account)).id)
