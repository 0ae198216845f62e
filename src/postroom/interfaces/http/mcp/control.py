"""The tools for the kill switch: pause changes to mailboxes, and show what is paused. Only people resume them."""

from collections.abc import Mapping

from pydantic import Field
from typing_extensions import TypedDict

from postroom.core.access import READ, STEER
from postroom.interfaces.http.mcp.tool import ADDS_ONCE, READS, Arguments, Call, NoArguments, Text, tool
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.actions.kill_switch import pause_changes
from postroom.operations.caller import Caller
from postroom.store.actions import pauses
from postroom.store.engine.codecs import time_text


class PauseForm(TypedDict):
    """`account` is null for the pause of all mailboxes."""

    account: str | None
    reason: str
    set_by: str
    since: str


class PauseArguments(Arguments):
    reason: Text = Field(min_length=1, max_length=500, description="The reason; shown with everything that waits.")
    account: Text | None = Field(
        None, min_length=1, max_length=500, description="Only the mailbox of this address; else all mailboxes."
    )


class StoppedAnswer(PauseForm):
    """A pause in effect: `on_wire` requests had been sent before it, `silent_processes` did not confirm it."""

    on_wire: int
    silent_processes: int


@tool("mutations.pause", "Stop every change to mailboxes", ADDS_ONCE, roles=STEER.tokens)
async def pause(call: Call, arguments: PauseArguments) -> StoppedAnswer:
    """Pauses all changes to all mailboxes, or to that of one account, until a person resumes
    them on the page or with `postroom resume`; no tool does. Mail is still ingested and decided on; actions wait.
    """
    services, signed = call.services, call.signed(arguments.reason)
    stopped = await pause_changes(
        Caller(services.database, signed, services.clock), arguments.account, arguments.reason
    )
    shown = _pause(stopped.pause, await _addresses(call))
    return {**shown, "on_wire": stopped.on_wire, "silent_processes": stopped.silent}


class StatusAnswer(TypedDict):
    """`paused` is true if all changes are paused; `pauses` are all that are in effect."""

    paused: bool
    pauses: list[PauseForm]


@tool("mutations.status", "Show whether changes are paused", READS, roles=READ.tokens)
async def status(call: Call, arguments: NoArguments) -> StatusAnswer:
    """Lists the pauses in effect: the mailbox or all, the reason, since when, and who set them."""
    standing = await call.services.database.run(pauses.standing_pauses())
    accounts = await _addresses(call)
    return {
        "paused": any(each.scope == pauses.ALL for each in standing),
        "pauses": [_pause(each, accounts) for each in standing],
    }


def _pause(pause: pauses.Pause, accounts: Mapping[str, str]) -> PauseForm:
    account = None if pause.scope == pauses.ALL else accounts.get(pause.scope, pause.scope)
    return {"account": account, "reason": pause.reason, "set_by": pause.set_by, "since": time_text(pause.since)}


async def _addresses(call: Call) -> dict[str, str]:
    """The addresses of all accounts, by the scopes of their pauses."""
    return {str(each.id): each.email for each in await list_accounts(call.services.database)}


TOOLS = (pause, status)
